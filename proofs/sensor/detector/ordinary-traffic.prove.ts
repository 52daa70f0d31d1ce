/**
 * Proof with generated packets: heavy ordinary traffic of all kinds is no attack, at 1 to 20 times a threshold, by IPv4 and IPv6,
 * begun before the recording and within it, alone and ten kinds at once, to one address or to several.
 *
 * The same traffic without its answers, or without the addresses of its peers, must be an attack, or the proof shows nothing.
 */
import { seededRandom } from '#common/random/index.ts';
import { Detector, type Thresholds } from '#sensor/detector/index.ts';
import { dividedThresholds, observeStreams, type Stream } from '#sensor/testing/attack-traffic.ts';
import { createOrdinary, ordinaryKinds } from '#sensor/testing/ordinary-traffic.ts';

export const name = 'ordinary-traffic';

export interface ProveOptions {
  /** Captures; the kinds take turns. */
  n: number;
  seed: number;
  report: (line: string) => void;
  /** Of so many captures, one has ten kinds at once. */
  tenAtOnceEvery?: number;
}

const names = Object.keys(ordinaryKinds);
/** Default thresholds divided, so that a capture has few packets; some captures have many peers instead. */
const divisors = { few: 200, many: 20 } as const;
const scope = { prefixes: ['192.0.2.0/24', '2001:db8:7::/48'], addresses: [] };
const seconds = 8;
const plantedCaptures = 10;
/** Of so many other captures, one has many peers. */
const manyPeersEvery = 16;
/** Captures with many peers have ten times as many packets. */
const manyPeersRatioMax = 4;

interface Capture {
  title: string;
  thresholds: Thresholds;
  streams: Stream[];
}

/** By the frame's source at these positions. */
const isSent = (frame: Uint8Array) =>
  frame[12] === 0x08 ? frame[26] === 192 && frame[27] === 0 : frame[22] === 0x20 && frame[23] === 0x01;

const faults: readonly { name: string; spoil: (frames: Uint8Array[], turn: number) => Uint8Array[] }[] = [
  { name: 'answers are not seen', spoil: (frames) => frames.filter((frame) => !isSent(frame)) },
  {
    name: 'each packet is of another peer',
    spoil: (frames, turn) =>
      frames.map((frame) => {
        const copy = frame.slice();
        const remote = (frame[12] === 0x08 ? [26, 30] : [22, 38])[isSent(frame) ? 1 : 0]!;
        copy.set([turn & 255, (turn >> 8) & 255], remote + 1);
        return copy;
      }),
  },
];
export const plantedFaults = faults.map((fault) => fault.name);

/** A capture's number has its seed above. */
const numberOfSeed = 1_000_000;

export async function prove({ n, seed, report, tenAtOnceEvery }: ProveOptions) {
  let failures = 0;
  for (let i = 0; i < n; i += 1) failures += judge(seed * numberOfSeed + i, report, tenAtOnceEvery);
  const random = seededRandom(seed);
  let caught = 0;
  for (const fault of faults) {
    const spoilt = Array.from({ length: plantedCaptures }, (_, i) => {
      const capture = createOne(i * 5, random, { ratio: 4 });
      return { ...capture, streams: capture.streams.map((stream) => spoilStream(stream, fault.spoil)) };
    });
    const shown = spoilt.filter((capture) => attacksOf(capture).length > 0);
    report(`planted "${fault.name}": ${shown.length} of ${spoilt.length} are attacks`);
    if (shown.length * 2 > spoilt.length) caught += 1;
  }
  return {
    claim: `${names.length} kinds of heavy ordinary traffic at 1 to 20 times a threshold, alone and ten at once, are no attack`,
    tried: n,
    failures,
    plantedBugsCaught: `${caught} of ${faults.length}`,
  };
}

/** Judges the capture of a number alone. */
export async function replay({ only, report }: { only: number; report: (line: string) => void }) {
  return { failures: judge(only, report) };
}

/** 1 for a capture that is called an attack. */
function judge(number: number, report: (line: string) => void, tenAtOnceEvery = 5): number {
  const capture = createCapture(number % numberOfSeed, seededRandom(number), tenAtOnceEvery);
  const attacks = attacksOf(capture);
  if (attacks.length > 0) report(`capture ${number}: ${capture.title}: ${attacks.join(', ')}`);
  return attacks.length > 0 ? 1 : 0;
}

function createCapture(i: number, random: () => number, tenAtOnceEvery: number): Capture {
  if (i % tenAtOnceEvery !== tenAtOnceEvery - 1) {
    if (i % manyPeersEvery !== 0) return createOne(i, random);
    return createOne(i, random, { divisor: divisors.many, ratio: manyPeersRatioMax ** random() });
  }
  const isOneAddress = random() < 0.5;
  const turns = Array.from({ length: 10 }, (_, other) => i + other * 7);
  const isScanned = isOneAddress && turns.some((turn) => names[turn % names.length] === 'port scan');
  const all = turns.map((turn, other) =>
    createOne(turn, random, { host: isOneAddress ? 7 : 7 + other, isScanned }),
  );
  return {
    title: `to ${isOneAddress ? 'one address' : 'ten addresses'}: ${all.map(({ title }) => title).join('; ')}`,
    thresholds: all[0]!.thresholds,
    streams: all.flatMap(({ streams }) => streams),
  };
}

interface One {
  /** A scan goes on beside it. Who opens what is sampled, which by divided thresholds tells a scan from few visits only. */
  isScanned?: boolean;
  ratio?: number;
  divisor?: number;
  host?: number;
}

/** A capture of the i-th kind. */
function createOne(
  i: number,
  random: () => number,
  { ratio = 20 ** random(), divisor = divisors.few, host = 7, isScanned = false }: One = {},
): Capture {
  const kind = names[i % names.length]!;
  const version = random() < 0.5 ? 4 : 6;
  const isUnderWay = random() < 0.5;
  const { ratioMax, repeats, direction } = ordinaryKinds[kind]!;
  const isVisited = !repeats && direction === 'inbound' && kind !== 'port scan';
  const times = Math.min(ratio, isScanned && isVisited ? 0.5 : ratioMax);
  const from = isUnderWay ? 0 : 1 + random() * 2;
  const local = version === 4 ? `192.0.2.${host}` : `2001:db8:7::${host}`;
  const thresholds = dividedThresholds(divisor);
  const { step, perSecond } = createOrdinary(kind, {
    ...{ version, thresholds, ratio: times, local, isUnderWay },
    seed: Math.floor(random() * 1e9),
  });
  return {
    title: `${kind}, IPv${version}, ${times.toFixed(1)} times, ${isUnderWay ? 'under way' : `from ${from.toFixed(2)}`}`,
    thresholds,
    streams: [{ step, perSecond, from, to: seconds }],
  };
}

function attacksOf({ thresholds, streams }: Capture): string[] {
  const detector = new Detector({ scope, thresholds, key: [1, 2] });
  observeStreams(detector, streams);
  return detector
    .finish()
    .incidents.filter(({ severity }) => severity === 'attack')
    .map((one) => `${one.class} ${one.direction} of ${one.target.value}`);
}

function spoilStream(stream: Stream, spoil: (typeof faults)[number]['spoil']): Stream {
  let turn = 0;
  return { ...stream, step: () => spoil(stream.step(), turn++) };
}
