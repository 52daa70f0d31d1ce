/**
 * A sensor to be killed while it probes: the real prober, collector, spool and uplink on a fast clock. It prints when
 * it runs, and each committed probe result.
 *
 * usage: probing-sensor.ts JSON    (`ProbingSensorInput`)
 */

import { silentReporter } from '#common/reporter/index.ts';
import type { ProbeResult } from '#contracts/sensor-api/telemetry.ts';
import { MinuteCollector } from '#sensor/collection/minute-collector.ts';
import { createMonitorClient } from '#sensor/monitor-client/index.ts';
import { createProber } from '#sensor/probes/index.ts';
import { recordKinds } from '#sensor/records/index.ts';
import { createSpool } from '#sensor/spool/index.ts';
import { sampleMinute } from '#sensor/testing/sample-minutes.ts';
import { steadyMoment } from '#sensor/testing/steady-moment.ts';
import { createUplink } from '#sensor/uplink/index.ts';
import { fastClock } from '../killed-process.ts';

export interface ProbingSensorInput {
  directory: string;
  url: string;
  epochMs: number;
  startMinute: number;
  speed: number;
  /** Reports results as committed that are only in memory, or sends them again with the next upload. */
  fault: 'kept_in_memory' | 'sent_twice' | null;
  drainAfterMinutes: number | null;
}

async function main(input: ProbingSensorInput): Promise<void> {
  const clock = fastClock(input);
  const { directory, fault } = input;
  const bytesMax = 64 * 1024 * 1024;
  const spool = createSpool({
    directory,
    bytesMax,
    kinds: recordKinds,
    sensorVersion: '0.1.0',
    clock,
    reporter: silentReporter,
  });
  spool.open();
  const client = createMonitorClient(input.url);
  const uplink = createUplink({
    spool,
    client,
    clock,
    reporter: silentReporter,
  });
  const prober = createProber({
    clock,
    reporter: silentReporter,
    attempt: async (probe) => ({ rttUs: 1000 * probe.id }),
  });
  const collector = new MinuteCollector({
    captures: ['eth0'],
    reporter: silentReporter,
    onCommitted: () => uplink.wake(),
    spool,
    records: [
      {
        kind: prober.kind,
        ready: () => (fault === 'kept_in_memory' ? [] : prober.ready()),
        committed(results: readonly ProbeResult[]) {
          announce(fault === 'kept_in_memory' ? prober.ready() : results);
          if (fault !== 'sent_twice') prober.committed(results);
        },
      },
    ],
  });
  const startMs = clock.nowMs();
  collector.start(steadyMoment(startMs));
  collector.listening('eth0', startMs, 0);
  await uplink.start();
  const probe = { kind: 'tcp' as const, target: 'x', port: 1, question: null, timeout_ms: 1000 };
  prober.follow([1, 2].map((id) => ({ ...probe, id, interval_seconds: 20 })));
  await prober.start();
  process.stdout.write('runs\n');
  let next = Math.floor(startMs / 60_000) * 60;
  const end =
    input.drainAfterMinutes === null ? Number.POSITIVE_INFINITY : next + input.drainAfterMinutes * 60;
  while (next < end || spool.status().pendingUploads > 0) {
    const nowMs = clock.nowMs();
    for (; next < end && (next + 60) * 1000 <= nowMs; next += 60) {
      collector.report(
        sampleMinute(next, 1, Math.floor(Math.min(60_000, (next + 60) * 1000 - startMs))),
        null,
      );
    }
    if (next < end) collector.tick(steadyMoment(nowMs));
    await clock.wait(500);
  }
  await prober.stop();
  await uplink.stop();
  spool.close();
}

function announce(results: readonly ProbeResult[]): void {
  for (const result of results) process.stdout.write(`${JSON.stringify(result)}\n`);
}

if (import.meta.main) await main(JSON.parse(process.argv[2]!) as ProbingSensorInput);
