/**
 * Proof with packet captures: floods of every class, IPv4 and IPv6, inbound and outbound, at 1.1 to 10 times a threshold and
 * from any moment of a second, beside ordinary traffic. `sensor detect` names each by its class as one incident of severity
 * attack of the right address, and decides within 3 s of its first packet from 2 times on, within 6 s below.
 *
 * The floods are ours, so their truth is known by construction; `other-tools` has those of other programs. The same captures
 * with a fault planted between the file and the detector must not be named right, or the proof shows nothing.
 */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { seededRandom } from '#common/random/index.ts';
import { defaultThresholds } from '#sensor/detector/index.ts';
import {
  createCrowd,
  createFlood,
  createTransfer,
  dividedThresholds,
  type FloodClass,
  type FloodShape,
  floodClasses,
  packetsAtThreshold,
  type Stream,
  startSecond,
  storedStreams,
  victim,
} from '#sensor/testing/attack-traffic.ts';
import { frameFaults } from './frame-faults.ts';
import {
  describeIncident,
  detectRecorded,
  type FoundIncident,
  type RecordedFrame,
  writeRecorded,
} from './recorded-traffic.ts';

export const name = 'attack-captures';

export const plantedFaults = frameFaults.map((fault) => fault.name);

export interface ProveOptions {
  /** Captures of each class. */
  n: number;
  seed: number;
  report: (line: string) => void;
}

const ratios = [1.1, 1.5, 2, 5, 10] as const;
/** Default thresholds divided by as much, so that a capture needs few packets. */
const divisor = 100;
const protectedPrefixes = ['192.0.2.0/24', '2001:db8:7::/48'];
const rightShareMin = 0.95;

interface Capture {
  shape: FloodShape;
  /** First packet of the flood, in seconds after the start. */
  from: number;
  frames: RecordedFrame[];
}

export async function prove({ n, seed, report }: ProveOptions) {
  const random = seededRandom(seed);
  const folder = mkdtempSync(join(tmpdir(), 'svc-attack-captures-'));
  const file = join(folder, 'attack.pcap');
  const times = new Map<number, number[]>(ratios.map((ratio) => [ratio, []]));
  const late: string[] = [];
  const wrong: string[] = [];
  const kept = new Map<FloodClass, Capture>();
  try {
    for (const floodClass of floodClasses) {
      let right = 0;
      for (let i = 0; i < n; i += 1) {
        const capture = createCapture(shapeOf(floodClass, i), random);
        writeRecorded(file, capture.frames);
        const found = attacksOf(await detectRecorded(file, divisor, protectedPrefixes));
        const offence = offenceOf(capture, found);
        const title = `${describe(capture.shape)} from ${capture.from.toFixed(2)}`;
        if (offence !== null) {
          wrong.push(`${title}: ${offence}`);
          continue;
        }
        right += 1;
        const took = Date.parse(found[0]!.detected_at) / 1000 - startSecond - capture.from;
        times.get(capture.shape.ratio)!.push(took);
        if (took > (capture.shape.ratio >= 2 ? 3 : 6))
          late.push(`${title}: decided after ${took.toFixed(2)} s`);
        if (capture.shape.version === 4 && capture.shape.direction === 'inbound')
          kept.set(floodClass, capture);
      }
      report(`${floodClass}: ${right} of ${n} right`);
      if (right < n * rightShareMin) late.push(`${floodClass}: right in ${right} of ${n} only`);
    }
    for (const line of [...wrong, ...late].slice(0, 40)) report(line);
    for (const [ratio, taken] of times) report(`${ratio} times: ${timesText(taken)}`);
    const caught = await plant(kept, file, report);
    const tried = n * floodClasses.length;
    return {
      claim: `floods in packet captures are one attack each, of the right class and address, in ${percent(tried - wrong.length, tried)} %, decided within 6 s, from 2 times on within 3 s`,
      tried,
      failures: late.length,
      plantedBugsCaught: `${caught} of ${frameFaults.length}`,
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The i-th shape of a class: all ratios, families and directions in turn. */
function shapeOf(floodClass: FloodClass, i: number): FloodShape {
  const turn = Math.floor(i / ratios.length);
  // Outbound, connections have no threshold of their own.
  const isOutbound = floodClass !== 'connection_flood' && (turn & 2) === 2;
  return {
    class: floodClass,
    ratio: ratios[i % ratios.length]!,
    version: (turn & 1) === 0 ? 4 : 6,
    direction: isOutbound ? 'outbound' : 'inbound',
  };
}

function createCapture(shape: FloodShape, random: () => number): Capture {
  const thresholds = dividedThresholds(divisor);
  const from = 2 + random();
  const to = from + (shape.ratio >= 2 ? 5 : 8);
  const streams: Stream[] = [
    {
      step: createFlood(shape, Math.floor(random() * 1e9)),
      perSecond: shape.ratio * packetsAtThreshold(shape, thresholds),
      from,
      to,
    },
    ...besides(shape.version, to, random),
  ];
  const frames = storedStreams(streams).map((frame) => ({ ...frame, wireLength: frame.bytes.length }));
  return { shape, from, frames };
}

/** A transfer and clients of a web server, together far below the thresholds. */
function besides(version: 4 | 6, to: number, random: () => number): Stream[] {
  const { pps } = dividedThresholds(divisor).inbound;
  const peer = version === 4 ? '203.0.113.80' : '2001:db8:80::80';
  const transfer =
    random() < 0.5
      ? createTransfer('tcp', peer, victim(version))
      : createTransfer('tcp', victim(version), peer);
  return [
    { step: transfer, perSecond: (pps * random()) / 20, from: 0, to },
    {
      step: createCrowd(version, Math.floor(random() * 1e9)),
      perSecond: 1 + random() * 2,
      from: random(),
      to,
    },
  ];
}

const attacksOf = (found: readonly FoundIncident[]) => found.filter(({ severity }) => severity === 'attack');

function offenceOf({ shape }: Capture, attacks: readonly FoundIncident[]): string | null {
  const wanted = `${victim(shape.version)} ${shape.direction} ${shape.class} attack`;
  if (attacks.length === 1 && describeIncident(attacks[0]!) === wanted) return null;
  return attacks.length === 0 ? 'no attack' : attacks.map(describeIncident).join(', ');
}

/** Judges a capture of a class with each fault. Returns the number of faults that showed. */
async function plant(kept: ReadonlyMap<FloodClass, Capture>, file: string, report: (line: string) => void) {
  let caught = 0;
  for (const fault of frameFaults) {
    const capture = kept.get(fault.class);
    if (!capture) {
      report(`planted "${fault.name}": NO CAPTURE of ${fault.class}`);
      continue;
    }
    const frames = capture.frames.map((frame) => ({ ...frame, bytes: frame.bytes.slice() }));
    for (const frame of frames) if (frame.bytes[12] === 0x08) fault.spoil(frame);
    writeRecorded(file, frames);
    const offence = offenceOf(capture, attacksOf(await detectRecorded(file, divisor, protectedPrefixes)));
    report(`planted "${fault.name}": ${offence ?? 'NOT NOTICED'}`);
    if (offence !== null) caught += 1;
  }
  return caught;
}

function describe({ class: floodClass, ratio, version, direction }: FloodShape): string {
  const rate =
    ratio * packetsAtThreshold({ class: floodClass, ratio, version, direction }, defaultThresholds);
  return `${floodClass} IPv${version} ${direction} at ${ratio} (${Math.round(rate / divisor)} packets/s)`;
}

function timesText(taken: number[]): string {
  if (taken.length === 0) return 'none';
  const sorted = taken.toSorted((a, b) => a - b);
  return `decided ${taken.length} times, median ${sorted[taken.length >> 1]!.toFixed(2)} s, worst ${sorted.at(-1)!.toFixed(2)} s`;
}

const percent = (part: number, whole: number) => ((part / whole) * 100).toFixed(1);
