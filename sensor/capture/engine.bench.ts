/**
 * Measures how many packets a second the engine processes on one core with full analysis of a mixed capture in memory,
 * compared with a bare walk over the same frames that only adds up their IP lengths.
 */
import { createCapture } from '#sensor/capture/index.ts';
import { createMixedCapture, type MixedCapture } from '#sensor/testing/mixed-capture.ts';

export const name = 'engine';

const flows = 20_000;
const runs = 7;

interface Measured {
  /** Packets per second of the wall clock. */
  rate: number;
  /** Processor time of one packet in nanoseconds; less affected by other work on the machine than the rate. */
  nanoseconds: number;
}

/**
 * Runs the benchmark and reports one line: packets per second and processor time per packet, medians of several runs.
 */
export async function run(report: (line: string) => void): Promise<void> {
  const capture = createMixedCapture(flows);
  const measured: Measured[] = [];
  for (let i = 0; i < runs; i += 1) measured.push(measure(capture));
  const rate = median(measured.map((one) => one.rate));
  const nanoseconds = median(measured.map((one) => one.nanoseconds));
  const walk = median(Array.from({ length: runs }, () => measureWalk(capture)));
  const packets = capture.frames.toLocaleString('en-US');
  report(
    `engine: ${Math.round(rate / 1000).toLocaleString('en-US')} kpps, ${nanoseconds.toFixed(0)} ns of processor time a packet ` +
      `(median of ${runs} runs; ${packets} packets, ${flows.toLocaleString('en-US')} flows, names and minute reports included); ` +
      `a bare walk over the frames takes ${walk.toFixed(0)} ns, the engine ${(nanoseconds / walk).toFixed(1)} times that`,
  );
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1]!;
}

/** Processor time, in nanoseconds, to read only a frame's type and IP length. */
function measureWalk(mixed: MixedCapture): number {
  const view = new DataView(mixed.bytes.buffer);
  const startedCpu = process.cpuUsage();
  let sum = 0;
  for (let frame = 0; frame < mixed.frames; frame += 1) {
    const at = mixed.offsets[frame]!;
    const type = view.getUint16(at + 12);
    sum += type === 0x86dd ? 40 + view.getUint16(at + 18) : view.getUint16(at + 16);
  }
  const cpu = process.cpuUsage(startedCpu);
  if (sum === 0) throw new Error('the walk saw no frame');
  return ((cpu.user + cpu.system) * 1000) / mixed.frames;
}

/** One pass with a new capture, including the report of its minute. */
function measure(mixed: MixedCapture): Measured {
  const capture = createCapture({
    name: 'bench0',
    role: 'uplink',
    linkType: 1,
    registrableDomain: (host) => host.split('.').slice(-2).join('.'),
    local: { prefixes: ['192.0.2.0/24', '2001:db8::/32'], addresses: [] },
  });
  const started = process.hrtime.bigint();
  const startedCpu = process.cpuUsage();
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
  const cpu = process.cpuUsage(startedCpu);
  const counted = reports.reduce((sum, one) => sum + one.totals.packets, 0);
  if (counted !== frames) throw new Error(`the engine counted ${counted} of ${frames} packets`);
  return { rate: frames / elapsed, nanoseconds: ((cpu.user + cpu.system) * 1000) / frames };
}
