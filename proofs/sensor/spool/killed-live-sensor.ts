/**
 * A sensor to be killed that captures on a real interface: the real ring, packet path, collector, spool and uplink, on
 * a clock that runs many times as fast. The kernel's timestamps are converted to that clock, so a minute takes a second
 * or two. It prints when it runs, and each committed minute.
 *
 * usage: killed-live-sensor.ts JSON    (`KilledLiveSensorInput`)
 */

import { silentReporter } from '#common/reporter/index.ts';
import { createCapture } from '#sensor/capture/index.ts';
import { MinuteCollector } from '#sensor/collection/minute-collector.ts';
import { createMonitorClient } from '#sensor/monitor-client/index.ts';
import { openSource } from '#sensor/packet-source/index.ts';
import { recordKinds } from '#sensor/records/index.ts';
import { createSpool } from '#sensor/spool/index.ts';
import { steadyMoment } from '#sensor/testing/steady-moment.ts';
import { createUplink } from '#sensor/uplink/index.ts';
import { fastClock } from '../killed-process.ts';
import { announcing, type PlantedFault, withFault } from './planted-faults.ts';

export interface KilledLiveSensorInput {
  interfaceName: string;
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

/** Real delay of frames from the kernel; the ring passes on a block after 40 ms. */
const settleMs = 300;
const pollMs = 20;

async function main(input: KilledLiveSensorInput): Promise<void> {
  const { speed, directory, fault } = input;
  const toFast = (wallMs: number) => input.startMinute * 1000 + (wallMs - input.epochMs) * speed;
  const clock = fastClock(input);
  const bytesMax = 64 * 1024 * 1024;
  const spool = withFault(
    createSpool({
      directory,
      bytesMax,
      kinds: recordKinds,
      sensorVersion: '0.1.0',
      clock,
      reporter: silentReporter,
    }),
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
    captures: [input.interfaceName],
    reporter: silentReporter,
    onCommitted: () => uplink.wake(),
    spool: announcing(spool, fault),
  });
  const { source } = await openSource({
    kind: 'live',
    interfaceName: input.interfaceName,
    ringMiB: 64,
    method: 'ring',
  });
  const capture = createCapture({
    name: input.interfaceName,
    role: 'uplink',
    linkType: source.linkType,
    registrableDomain: () => null,
    local: { prefixes: ['10.0.0.0/8'], addresses: [] },
  });
  const sinceMs = clock.nowMs();
  collector.start(steadyMoment(sinceMs));
  capture.listeningSince(sinceMs);
  collector.listening(input.interfaceName, sinceMs, 0);
  await uplink.start();
  process.stdout.write('runs\n');
  const endMs =
    input.drainAfterMinutes === null ? Number.POSITIVE_INFINITY : sinceMs + input.drainAfterMinutes * 60_000;
  const isDone = () => clock.nowMs() > endMs + 60_000 && spool.status().pendingUploads === 0;
  while (!isDone()) {
    // Read before the ring, so that a pause of the process closes no minute with unread frames.
    const readUntilMs = clock.nowMs() - settleMs * speed;
    await source.poll(pollMs, (bytes, offset, captured, wire, seconds, nanoseconds, vlanTci, segments) => {
      const atMs = toFast(seconds * 1000 + nanoseconds / 1e6);
      const second = Math.floor(atMs / 1000);
      const fraction = Math.floor((atMs - second * 1000) * 1e6);
      capture.observe(bytes, offset, captured, wire, second, fraction, vlanTci, segments);
    });
    const dropped = source.takeDropped();
    if (dropped > 0) capture.addKernelDropped(dropped);
    const closable = Math.min(readUntilMs, endMs);
    for (const report of capture.closeMinutes(closable)) collector.report(toMinute(report), null);
    collector.tick(steadyMoment(Math.min(readUntilMs, endMs + 5000)));
    await new Promise((resolve) => setImmediate(resolve));
  }
  source.close();
  await uplink.stop();
  spool.close();
}

/** The minute that is sent to the monitor for a report. */
function toMinute(report: ReturnType<ReturnType<typeof createCapture>['closeAll']>[number]) {
  return { ...report, role: 'uplink' as const };
}

if (import.meta.main) await main(JSON.parse(process.argv[2]!) as KilledLiveSensorInput);
