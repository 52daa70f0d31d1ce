/**
 * A sensor that performs one cycle under a tracer: collect a minute, store it, upload it, store the receipt, prune. It
 * prints `ready` when its modules are loaded, waits for a line on standard input, and prints each committed minute and
 * each stored receipt. Exit code 0 when everything was delivered, 3 after the time limit of its clock.
 *
 * usage: cycle-sensor.ts JSON    (`CycleSensorInput`)
 */

import { once } from 'node:events';
import { flushCompileCache } from 'node:module';
import type { Clock } from '#common/clock/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import { createMinuteCollector } from '#sensor/collection/minute-collector.ts';
import { createMonitorClient } from '#sensor/monitor-client/index.ts';
import { recordKinds } from '#sensor/records/index.ts';
import { createSpool, type Spool } from '#sensor/spool/index.ts';
import { bytesOfMinute, sampleMinute } from '#sensor/testing/sample-minutes.ts';
import { steadyMoment } from '#sensor/testing/steady-moment.ts';
import { createUplink } from '#sensor/uplink/index.ts';
import { announcing, misguideSqlite, type PlantedFault, withFault } from './planted-faults.ts';

export interface CycleSensorInput {
  directory: string;
  url: string;
  minute: number;
  /** Speed of its clock as a factor. */
  speed: number;
  /** Time limit of its clock for the whole cycle. */
  patienceMs: number;
  fault: PlantedFault | null;
}

const tickMs = 500;

async function main(input: CycleSensorInput): Promise<void> {
  const startMs = input.minute * 1000;
  const endMs = startMs + 62_000;
  const bytesMax = 64 * 1024 * 1024;
  // Otherwise compiled code would be written during the cycle.
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
    createSpool({
      directory,
      bytesMax,
      kinds: recordKinds,
      sensorVersion: '0.1.0',
      clock,
      reporter: silentReporter,
    }),
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

/** A supervisor restarts a sensor whose disk fails at the start; this process retries by itself. */
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
