/**
 * A sensor to be killed: the real collector, spool and uplink, on a clock that runs many times as fast, with a capture
 * that counts a known number of bytes in each minute. It prints when it runs, and each committed minute.
 *
 * usage: killed-sensor.ts JSON    (`KilledSensorInput`)
 */

import type { Clock } from '#common/clock/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import { MinuteCollector } from '#sensor/collection/minute-collector.ts';
import { createMonitorClient } from '#sensor/monitor-client/index.ts';
import { recordKinds } from '#sensor/records/index.ts';
import { createSpool } from '#sensor/spool/index.ts';
import { bytesOfMinute, sampleMinute } from '#sensor/testing/sample-minutes.ts';
import { steadyMoment } from '#sensor/testing/steady-moment.ts';
import { createUplink } from '#sensor/uplink/index.ts';
import { announcing, type PlantedFault, withFault } from './planted-faults.ts';

export interface KilledSensorInput {
  directory: string;
  url: string;
  /** Wall time at which the fast clock showed `startMinute`. */
  epochMs: number;
  startMinute: number;
  speed: number;
  fault: PlantedFault | null;
  /** Collect this many minutes, deliver everything and stop; null: run until killed. */
  drainAfterMinutes: number | null;
}

function fastClock(input: KilledSensorInput): Clock {
  return {
    nowMs: () => input.startMinute * 1000 + (Date.now() - input.epochMs) * input.speed,
    monotonicMs: () => performance.now() * input.speed,
    wait: (ms, signal) =>
      new Promise((resolve) => {
        if (signal?.aborted) return resolve();
        const timer = setTimeout(resolve, ms / input.speed);
        signal?.addEventListener('abort', () => {
          clearTimeout(timer);
          resolve();
        });
      }),
  };
}

async function main(input: KilledSensorInput): Promise<void> {
  const clock = fastClock(input);
  const { directory, fault } = input;
  const bytesMax = 64 * 1024 * 1024;
  const sensorVersion = '0.1.0';
  const spool = withFault(
    createSpool({ directory, bytesMax, kinds: recordKinds, sensorVersion, clock, reporter: silentReporter }),
    fault,
  );
  spool.open();
  const client = createMonitorClient(input.url);
  const uplink = createUplink({
    spool,
    client,
    clock,
    reporter: silentReporter,
  });
  const collector = new MinuteCollector({
    captures: ['eth0'],
    reporter: silentReporter,
    onCommitted: () => uplink.wake(),
    spool: announcing(spool, fault),
  });
  const startMs = clock.nowMs();
  collector.start(steadyMoment(startMs));
  collector.listening('eth0', startMs, 0);
  await uplink.start();
  process.stdout.write('runs\n');
  let next = Math.floor(startMs / 60_000) * 60;
  const endMinute =
    input.drainAfterMinutes === null ? Number.POSITIVE_INFINITY : next + input.drainAfterMinutes * 60;
  while (next < endMinute || spool.status().pendingUploads > 0) {
    const nowMs = Math.min(clock.nowMs(), endMinute * 1000 + 5000);
    for (; next < endMinute && (next + 60) * 1000 <= nowMs; next += 60) {
      const observedMs = Math.min(60_000, (next + 60) * 1000 - startMs);
      const bytes = Math.floor((bytesOfMinute(next) * observedMs) / 60_000);
      collector.report(sampleMinute(next, bytes, Math.floor(observedMs)), null);
    }
    collector.tick(steadyMoment(nowMs));
    await clock.wait(500);
  }
  await uplink.stop();
  spool.close();
}

if (import.meta.main) await main(JSON.parse(process.argv[2]!) as KilledSensorInput);
