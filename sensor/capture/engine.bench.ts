/**
 * How many packets a second the engine takes, one core, full analysis, on a mixed capture in memory.
 */
import { createCapture } from '#sensor/capture/index.ts';
import { createMixedCapture, type MixedCapture } from '#sensor/testing/mixed-capture.ts';

export const name = 'engine';

const flows = 20_000;
const runs = 7;

/** Runs the benchmark and reports one line: packets per second (the median of several runs) and its inverse. */
export async function run(report: (line: string) => void): Promise<void> {
  const capture = createMixedCapture(flows);
  const rates: number[] = [];
  for (let i = 0; i < runs; i += 1) rates.push(measure(capture));
  rates.sort((a, b) => a - b);
  const median = rates[runs >> 1]!;
  report(
    `engine: ${Math.round(median / 1000).toLocaleString('en-US')} kpps, ${(1e9 / median).toFixed(0)} ns a packet ` +
      `(median of ${runs} runs; ${capture.frames.toLocaleString('en-US')} packets, ${flows.toLocaleString('en-US')} flows, names and minute reports included)`,
  );
}

/** Packets per second of one pass with a new capture, its minute's report included. */
function measure(mixed: MixedCapture): number {
  const capture = createCapture({
    name: 'bench0',
    role: 'uplink',
    linkType: 1,
    registrableDomain: (host) => host.split('.').slice(-2).join('.'),
    local: { prefixes: ['192.0.2.0/24', '2001:db8::/32'], addresses: [] },
  });
  const started = process.hrtime.bigint();
  const { bytes, offsets, captured, wire, times, frames } = mixed;
  for (let frame = 0; frame < frames; frame += 1) {
    const ms = times[frame]!;
    const seconds = 1_700_000_040 + Math.floor(ms / 1000);
    capture.observe(
      bytes,
      offsets[frame]!,
      captured[frame]!,
      wire[frame]!,
      seconds,
      (ms % 1000) * 1_000_000,
      -1,
    );
  }
  const reports = capture.closeMinutes(1_700_000_200_000);
  const elapsed = Number(process.hrtime.bigint() - started) / 1e9;
  const counted = reports.reduce((sum, report) => sum + report.totals.packets, 0);
  if (counted !== frames) throw new Error(`the engine counted ${counted} of ${frames} packets`);
  return frames / elapsed;
}
