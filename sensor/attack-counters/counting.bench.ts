/**
 * Measures what counting for the detector adds to the packet path: the same frames through an engine without and one with
 * counters, in turn in one process, both with their tables full. Handing the seconds over is included.
 *
 * They take turns after 20,000 frames, so that other work on the machine meets both.
 */
import { loadavg } from 'node:os';
import { createCapture } from '#sensor/capture/index.ts';
import { createThresholdBook, defaultThresholds } from '#sensor/detector/index.ts';
import { createFlood } from '#sensor/testing/flood-capture.ts';
import { ethernet, udp } from '#sensor/testing/frames.ts';
import { createMixedCapture } from '#sensor/testing/mixed-capture.ts';
import { LiveCounters } from './index.ts';

export const name = 'counting';

const rounds = 15;
const framesPerTurn = 20_000;
/** Rounds until V8 has compiled everything and the tables are full. */
const warmUp = 3;
const firstSecond = 1_700_000_040;

/** Frames of one round, by second; their positions, and their lengths. */
interface Traffic {
  bytes: Uint8Array;
  offsets: ArrayLike<number>;
  captured: ArrayLike<number>;
  wire: ArrayLike<number>;
  seconds: Int32Array;
}

const local = { prefixes: ['192.0.2.0/24', '2001:db8::/32', '10.1.0.0/16'], addresses: [] };
const one = { prefixes: [], addresses: ['192.0.2.1'] };
/** The addresses of the traffic, and others until there are 4,096. */
const many = {
  prefixes: [],
  addresses: Array.from({ length: 4096 }, (_, i) =>
    i < 255 ? `192.0.2.${i + 1}` : `10.77.${i >> 8}.${i & 255}`,
  ),
};
const wide = { prefixes: ['10.1.0.0/16'], addresses: [] };

export async function run(report: (line: string) => void): Promise<void> {
  const mixed = mixedTraffic();
  const flood = floodTraffic(false);
  measure('ordinary traffic, 1 address protected', mixed, one, report);
  measure('ordinary traffic, 4,096 addresses', mixed, many, report);
  measure('flood of new flows on 16 addresses, 1 protected', flood, one, report);
  measure('flood of new flows on 16 addresses, 4,096 protected', flood, many, report);
  measure('flood of one flow, 4,096 addresses', oneFlow(), many, report);
  measure('flood over a /16, all of it protected', floodTraffic(true), wide, report);
}

function measure(
  title: string,
  traffic: Traffic,
  scope: { prefixes: string[]; addresses: string[] },
  report: (line: string) => void,
): void {
  const limits = createThresholdBook(defaultThresholds).sets.map(({ hostLimits }) => hostLimits);
  const counters = new LiveCounters({ number: 1, scope, groups: [], limits });
  const plain = newCapture();
  const counting = newCapture();
  counting.setTap(counters);
  const ratios: number[] = [];
  const costs: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const { without, withThem } = costsOf(traffic, plain, counting, counters, firstSecond + round * 60);
    if (round < warmUp) continue;
    ratios.push(withThem / without);
    costs.push(without);
  }
  const middle = (values: number[]) => values.sort((a, b) => a - b)[values.length >> 1]!;
  report(
    `${title.padEnd(52)} ${middle(ratios).toFixed(2)} of the path without (${middle(costs).toFixed(0)} ns a packet; load ${loadavg()[0]!.toFixed(1)})`,
  );
}

function newCapture() {
  return createCapture({
    name: 'bench0',
    role: 'uplink',
    linkType: 1,
    registrableDomain: (host) => host.split('.').slice(-2).join('.'),
    local,
    // The same for both: where flows fall in the table makes a difference of some percent.
    hashKey: [0x2f6e2b1, 0x5a17c3d],
  });
}

/** Processor time of one packet in nanoseconds, without the counters and with them. */
function costsOf(
  traffic: Traffic,
  plain: ReturnType<typeof newCapture>,
  counting: ReturnType<typeof newCapture>,
  counters: LiveCounters,
  firstSecondOfRound: number,
): { without: number; withThem: number } {
  const { offsets } = traffic;
  let without = 0;
  let withThem = 0;
  let handedOver = 0;
  const took = (work: () => void) => {
    const started = process.cpuUsage();
    work();
    const used = process.cpuUsage(started);
    return ((used.user + used.system) * 1000) / offsets.length;
  };
  for (let from = 0; from < offsets.length; from += framesPerTurn) {
    const to = Math.min(from + framesPerTurn, offsets.length);
    const feedCounting = () => {
      feed(traffic, counting, from, to, firstSecondOfRound);
      handedOver += counters.takeSeconds().length;
    };
    const feedPlain = () => feed(traffic, plain, from, to, firstSecondOfRound);
    // Which of them is first, and finds the frames in no cache, changes from turn to turn.
    const isCountingFirst = (from / framesPerTurn) % 2 === 1;
    if (isCountingFirst) withThem += took(feedCounting);
    without += took(feedPlain);
    if (!isCountingFirst) withThem += took(feedCounting);
  }
  const endMs = (firstSecondOfRound + 60) * 1000;
  without += took(() => plain.closeMinutes(endMs));
  withThem += took(() => counting.closeMinutes(endMs));
  if (handedOver === 0) throw new Error('no second was handed over');
  return { without, withThem };
}

function feed(
  { bytes, offsets, captured, wire, seconds }: Traffic,
  capture: ReturnType<typeof newCapture>,
  from: number,
  to: number,
  firstSecondOfRound: number,
): void {
  for (let frame = from; frame < to; frame += 1) {
    const second = firstSecondOfRound + seconds[frame]!;
    capture.observe(bytes, offsets[frame]!, captured[frame]!, wire[frame]!, second, 0, -1, 1);
  }
}

function mixedTraffic(): Traffic {
  const { bytes, offsets, captured, wire, times } = createMixedCapture(20_000);
  return { bytes, offsets, captured, wire, seconds: Int32Array.from(times, (ms) => Math.floor(ms / 1000)) };
}

/** 100,000 packets a second, each of a new flow. */
function floodTraffic(isWide: boolean): Traffic {
  const frames = 300_000;
  const stride = 64;
  const flood = createFlood(1);
  const bytes = new Uint8Array(frames * stride);
  const lengths = new Int32Array(frames);
  for (let i = 0; i < frames; i += 1) {
    const frame = flood.next();
    if (isWide) {
      const host = Math.imul(i, 40_503) & 0xffff;
      frame.set([10, 1, host >>> 8, host & 255], 30);
    }
    bytes.set(frame, i * stride);
    lengths[i] = frame.length;
  }
  return {
    bytes,
    offsets: Float64Array.from(lengths, (_, i) => i * stride),
    captured: lengths,
    wire: lengths,
    seconds: lengths.map((_, i) => Math.floor(i / 100_000)),
  };
}

/** 200,000 packets a second between two sockets. */
function oneFlow(): Traffic {
  const ends = { from: '11.2.3.4', fromPort: 999, to: '192.0.2.1', toPort: 7777 };
  const bytes = ethernet(udp(ends, new Uint8Array(60)));
  const lengths = new Int32Array(1_000_000).fill(bytes.length);
  return {
    bytes,
    offsets: new Float64Array(lengths.length),
    captured: lengths,
    wire: lengths,
    seconds: lengths.map((_, i) => Math.floor(i / 200_000)),
  };
}
