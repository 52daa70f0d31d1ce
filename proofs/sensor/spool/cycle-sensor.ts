/**
 * A sensor that performs one cycle under a tracer: collect a minute, store it, upload it, store the receipt, prune. It
 * prints `ready` when its modules are loaded, waits for a line on standard input, and prints each committed minute and
 * each stored receipt. Exit code 0 when everything was delivered, 3 after the time limit of its clock.
 *
 * Its time passes in ticks, and not while a request is under way, so it is the same on a slow machine.
 *
 * usage: cycle-sensor.ts JSON    (`CycleSensorInput`)
 */

import { once } from 'node:events';
import { flushCompileCache } from 'node:module';
import { setTimeout as rest } from 'node:timers/promises';
import { type Clock, createTestClock } from '#common/clock/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import { MinuteCollector } from '#sensor/collection/minute-collector.ts';
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
  /** Time limit of its clock for the whole cycle. */
  patienceMs: number;
  /** Prints `time` and the milliseconds that have passed with each tick, for the reader of the trace. */
  saysTime?: boolean;
  fault: PlantedFault | null;
}

const tickMs = 500;
/** What a tick takes of ours. */
const restMs = 5;

async function main(input: CycleSensorInput): Promise<void> {
  const startMs = input.minute * 1000;
  const endMs = startMs + 62_000;
  const bytesMax = 64 * 1024 * 1024;
  // Otherwise compiled code would be written during the cycle.
  flushCompileCache();
  process.stdout.write('ready\n');
  await once(process.stdin, 'data');
  process.stdin.destroy();
  const time = createTestClock(endMs);
  const clock: Clock = { ...time, nowMs: () => endMs };
  const tick = async () => {
    if (time.monotonicMs() > input.patienceMs) process.exit(3);
    await rest(restMs);
    await time.advance(tickMs);
    if (input.saysTime) process.stdout.write(`time ${time.monotonicMs()}\n`);
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
  while (!opens(spool)) await tick();
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
    spool: announcing(spool, input.fault),
  });
  collector.start(steadyMoment(startMs));
  collector.listening('eth0', startMs, 0);
  collector.report(sampleMinute(input.minute, bytesOfMinute(input.minute)), null);
  await uplink.start();
  collector.tick(steadyMoment(endMs));
  while (!spool.isCovered(input.minute) || spool.status().pendingUploads > 0) {
    if (time.waiting() > 0) await tick();
    else await rest(restMs);
    collector.tick(steadyMoment(endMs));
  }
  await uplink.stop();
  spool.close();
}

/** A supervisor restarts a sensor whose disk fails at the start; this process tries again by itself. */
function opens(spool: Spool): boolean {
  try {
    spool.open();
    return true;
  } catch {
    return false;
  }
}

if (import.meta.main) await main(JSON.parse(process.argv[2]!) as CycleSensorInput);
