/** A sensor's spool and uplink on a clock of the test, against a real monitor. It counts what it is told to. */
import { silentReporter } from '#common/reporter/index.ts';
import type { TelemetryReceipt } from '#contracts/sensor-api/http.ts';
import { MinuteCollector } from '#sensor/collection/minute-collector.ts';
import { createMonitorClient, type MonitorClient } from '#sensor/monitor-client/index.ts';
import { recordKinds } from '#sensor/records/index.ts';
import { createSpool } from '#sensor/spool/index.ts';
import { sampleMinute } from '#sensor/testing/sample-minutes.ts';
import { steadyMoment } from '#sensor/testing/steady-moment.ts';
import { createUplink } from '#sensor/uplink/index.ts';
import { until } from '#service-kit/testing/until.ts';

/** Bytes of the minute with this number, from 0: a whole number of bits a second, another one for each minute. */
export const bytesOf = (i: number) => 7_500 * (i + 1);

export interface TestSensor {
  /** Collects this many further minutes into the spool. */
  collect(minutes: number): void;
  /** Sends everything that the spool holds to the monitor at this URL. */
  deliver(monitorUrl: string, credential: string): Promise<void>;
  /** What the monitor answered to each stored upload. */
  receipts: TelemetryReceipt[];
  close(): void;
}

/** Opens its spool in the directory; its first minute is `startMinute` (UTC, seconds). */
export function openSensor(directory: string, startMinute: number): TestSensor {
  let minute = startMinute;
  const receipts: TelemetryReceipt[] = [];
  const reporter = silentReporter;
  const clock = {
    nowMs: () => minute * 1000,
    monotonicMs: () => performance.now(),
    wait: () => new Promise<void>(() => {}),
  };
  const spool = createSpool({
    ...{ directory, bytesMax: 64 * 1024 * 1024, kinds: recordKinds, sensorVersion: '0.1.0' },
    ...{ clock, reporter },
  });
  spool.open();
  const collector = new MinuteCollector({ captures: ['eth0'], reporter, onCommitted: () => {}, spool });
  collector.start(steadyMoment(startMinute * 1000));
  collector.listening('eth0', startMinute * 1000, 0);
  return {
    receipts,
    collect(minutes) {
      for (const end = minute + minutes * 60; minute < end; ) {
        collector.report(sampleMinute(minute, bytesOf((minute - startMinute) / 60)), null);
        minute += 60;
        collector.tick(steadyMoment(minute * 1000 + 5_000));
      }
    },
    async deliver(monitorUrl, credential) {
      const client = createMonitorClient(monitorUrl);
      const noting: MonitorClient = {
        url: client.url,
        async request(order) {
          const answer = await client.request({ ...order, credential });
          if (answer.status !== 200) throw new Error(`the monitor answered ${answer.status}`);
          receipts.push(answer.json as TelemetryReceipt);
          return answer;
        },
      };
      const uplink = createUplink({ spool, client: noting, reporter });
      await uplink.start();
      await until('everything is delivered', 60_000, () => spool.status().pendingUploads === 0);
      await uplink.stop();
    },
    close: () => spool.close(),
  };
}
