/**
 * A sensor that does one cycle under the eyes of a tracer: collect a minute, store it, upload it, take the receipt,
 * prune. It says `ready` when its modules are loaded, waits for a line on standard input, and says each minute
 * that it has committed and each receipt that it has stored. It ends with 0 when everything was delivered, with 3 when that took longer than the
 * given time of its clock.
 *
 * usage: cycle-sensor.ts JSON    (`CycleSensorInput`)
 */

import { once } from 'node:events';
import { flushCompileCache } from 'node:module';
import type { Clock } from '#common/clock/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import { createMinuteCollector } from '#sensor/collection/minute-collector.ts';
import { createMonitorClient } from '#sensor/monitor-client/index.ts';
import { createSpool, type Spool } from '#sensor/spool/index.ts';
import { steadyMoment } from '#sensor/testing/steady-moment.ts';
import { createUplink } from '#sensor/uplink/index.ts';
import { announcing, misguideSqlite, type PlantedFault, withFault } from './planted-faults.ts';
import { bytesOfMinute, sampleMinute } from './sample-minutes.ts';

export interface CycleSensorInput {
  directory: string;
  url: string;
  minute: number;
  /** How many times as fast as ours its clock runs. */
  speed: number;
  /** Time of its clock for the whole cycle. */
  patienceMs: number;
  fault: PlantedFault | null;
}

const tickMs = 500;

async function main(input: CycleSensorInput): Promise<void> {
  const startMs = input.minute * 1000;
  const endMs = startMs + 62_000;
  const bytesMax = 64 * 1024 * 1024;
  // Else compiled code would be written in the middle of the cycle.
  flushCompileCache();
  process.stdout.write('ready\n');
  await once(process.stdin, 'data');
  process.stdin.destroy();
  const began = performance.now();
  const passedMs = () => (performance.now() - began) * input.speed;
  const clock: Clock = {
    nowMs: () => endMs,
    monotonicMs: passedMs,
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
  const { directory } = input;
  misguideSqlite(input.fault);
  const kept = withFault(
    createSpool({ directory, bytesMax, sensorVersion: '0.1.0', clock, reporter: silentReporter }),
    input.fault,
  );
  const spool: Spool = {
    ...kept,
    acknowledge(upload, receipt) {
      kept.acknowledge(upload, receipt);
      process.stdout.write(`receipt ${upload.sequence}\n`);
    },
  };
  await untilItOpens(() => spool.open(), clock, input, passedMs);
  const client = createMonitorClient(input.url);
  const uplink = createUplink({
    spool,
    client,
    clock,
    reporter: silentReporter,
  });
  const collector = createMinuteCollector({
    captures: ['eth0'],
    reporter: silentReporter,
    onCommitted: () => uplink.wake(),
    spool: announcing(spool, input.fault),
  });
  collector.start(steadyMoment(startMs));
  collector.listening('eth0', startMs, 0);
  collector.report(sampleMinute(input.minute, bytesOfMinute(input.minute)), null);
  await uplink.start();
  collector.tick(steadyMoment(endMs));
  while (!spool.isCovered(input.minute) || spool.status().pendingUploads > 0) {
    if (passedMs() > input.patienceMs) process.exit(3);
    await clock.wait(tickMs);
    collector.tick(steadyMoment(endMs));
  }
  await uplink.stop();
  spool.close();
}

/** A sensor whose disk fails at its start is started again by its supervisor; here it tries again by itself. */
async function untilItOpens(
  open: () => void,
  clock: Clock,
  input: CycleSensorInput,
  passedMs: () => number,
): Promise<void> {
  for (;;) {
    try {
      open();
      return;
    } catch {
      if (passedMs() > input.patienceMs) process.exit(3);
      await clock.wait(tickMs);
    }
  }
}

if (import.meta.main) await main(JSON.parse(process.argv[2]!) as CycleSensorInput);
