/**
 * Proof with real programs on a veth pair: downloads as fast as the machine can, scans from outside and crowds of visitors
 * by TLS are no attack, with the default thresholds and with thresholds lowered to a third or a half of what there was.
 *
 * With the lowered thresholds each must be an incident of severity info, else they were not lowered enough to show
 * anything. The same recordings with a fault planted between tcpdump and the detector must be an attack.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { defaultThresholds } from '#sensor/detector/index.ts';
import { openToolLink, record, requireTools } from '#sensor/testing/tool-link.ts';
import { type OrdinaryTraffic, ordinaryPackages, ordinaryTraffic } from './ordinary-programs.ts';
import {
  describeIncident,
  detectRecorded,
  isInbound,
  medianOf,
  type RecordedFrame,
  readRecorded,
  wholeSeconds,
  writeRecorded,
} from './recorded-traffic.ts';

export const name = 'ordinary-peaks';

interface Fault {
  name: string;
  /** What it is planted into. */
  of: 'download' | 'crowd' | 'scan';
  spoil: (frames: RecordedFrame[]) => RecordedFrame[];
}

const faults: readonly Fault[] = [
  {
    name: 'what the protected address sends is not seen',
    of: 'download',
    spoil: (frames) => frames.filter(isInbound),
  },
  {
    name: 'answers to openings are not seen',
    of: 'crowd',
    spoil: (frames) => frames.filter(({ bytes }) => ((bytes[47] ?? 0) & 0x12) !== 0x12),
  },
  { name: 'all ports are one', of: 'scan', spoil: (frames) => frames.map(withPort443) },
  { name: 'one source is many', of: 'scan', spoil: (frames) => frames.map(withOtherSource) },
];

export interface ProveOptions {
  /** Runs; they take turns. */
  n: number;
  seed: number;
  report: (line: string) => void;
  traffic?: readonly OrdinaryTraffic[];
  /**
   * Keeps the order of the packets but puts them at even distances, so that the machine's speed has no part in the result.
   */
  isEven?: boolean;
}

export async function prove({ n, seed, report, traffic = ordinaryTraffic, isEven = false }: ProveOptions) {
  const tools = new Set(traffic.flatMap(({ needs }) => (needs ? [needs] : [])));
  const packages = Object.fromEntries([...tools].map((tool) => [tool, ordinaryPackages[tool]]));
  requireTools({ ip: 'iproute2', tcpdump: 'tcpdump', openssl: 'openssl', ...packages });
  const folder = mkdtempSync(join(tmpdir(), 'svc-ordinary-'));
  const offences: string[] = [];
  const kept = new Map<Fault['of'], Run>();
  try {
    for (let i = 0; i < n; i += 1) {
      const one = traffic[(i + seed) % traffic.length]!;
      const run = await recordOrdinary(one, folder, isEven);
      const { low, offence } = await judgeRun(run, one);
      report(`${one.what}: ${run.said}; thresholds divided by ${run.divisor.toFixed(1)}: ${low}`);
      if (offence !== null) offences.push(`${one.what}: ${offence}`);
      const sort = sortOf(one);
      if (sort !== null && !kept.has(sort)) kept.set(sort, run);
    }
    for (const offence of offences) report(`OFFENCE ${offence}`);
    const sorts = new Set(traffic.map(sortOf));
    const planted = faults.filter((fault) => sorts.has(fault.of));
    const caught = await plant(planted, kept, folder, report);
    return {
      claim:
        'real downloads, scans from outside and crowds by TLS at two or three times the thresholds are no attack',
      tried: n,
      failures: offences.length,
      plantedBugsCaught: `${caught} of ${planted.length}`,
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const evenSeconds = 8;
const evenFrom = 1_700_000_000;

function spreadEvenly(frames: readonly RecordedFrame[]): void {
  for (const [i, frame] of frames.entries()) {
    const at = (i * evenSeconds) / frames.length;
    frame.seconds = evenFrom + Math.floor(at);
    frame.nanoseconds = Math.floor((at % 1) * 1e9);
  }
}

interface Run {
  file: string;
  frames: RecordedFrame[];
  divisor: number;
  said: string;
}

async function recordOrdinary(one: OrdinaryTraffic, folder: string, isEven: boolean): Promise<Run> {
  const file = join(folder, 'ordinary.pcap');
  const seconds = isEven ? 3 : 5;
  const link = openToolLink({ mergesSegments: one.mergesSegments ?? false });
  try {
    let running: Promise<unknown> = Promise.resolve();
    if (one.isUnderWay) {
      running = one.run(link, folder, seconds);
      await wait(1500);
    }
    await record(link, file, () => (one.isUnderWay ? running : one.run(link, folder, seconds)));
  } finally {
    link.close();
  }
  const frames = readRecorded(file);
  if (isEven) {
    spreadEvenly(frames);
    writeRecorded(file, frames);
  }
  const whole = wholeSeconds(frames, one.direction);
  const packets = medianOf(whole, (second) => second.packets);
  const bits = medianOf(whole, (second) => second.bytes * 8);
  const openings = medianOf(whole, (second) => second.openings);
  const { pps, bps, syn_pps: synPps } = defaultThresholds[one.direction === 'in' ? 'inbound' : 'outbound'];
  const reached = one.peak === 'volume' ? Math.max(packets / pps, bits / bps) : openings / synPps;
  if (reached === 0) throw new Error(`${one.what}: there was no traffic`);
  const said = `${packets} packets, ${(bits / 1e6).toFixed(0)} Mbit and ${openings} openings a second`;
  return { file, frames, divisor: one.ratio / reached, said };
}

async function judgeRun({ file, divisor }: Run, one: OrdinaryTraffic) {
  const found = [await detectRecorded(file, 1), await detectRecorded(file, divisor)] as const;
  const attacks = found.flat().filter(({ severity }) => severity === 'attack');
  const low = found[1].map(describeIncident).join(', ') || 'no incident';
  if (attacks.length > 0) return { low, offence: attacks.map(describeIncident).join(', ') };
  return { low, offence: found[1].length > 0 ? null : `not over the lowered thresholds (${one.peak})` };
}

function sortOf({ what, needs, direction, mergesSegments }: OrdinaryTraffic): Fault['of'] | null {
  if (what.endsWith('visitors at once, TLS')) return 'crowd';
  if (needs === 'curl' && direction === 'in' && !mergesSegments && what.includes('IPv4')) return 'download';
  return what === 'nmap -sS -p-' ? 'scan' : null;
}

/** Judges kept recordings with each fault. Returns the number of faults that showed. */
async function plant(
  planted: readonly Fault[],
  kept: ReadonlyMap<string, Run>,
  folder: string,
  report: (line: string) => void,
) {
  let caught = 0;
  for (const fault of planted) {
    const run = kept.get(fault.of);
    if (!run) {
      report(`planted "${fault.name}": NO RECORDING of a ${fault.of}`);
      continue;
    }
    const spoilt = join(folder, 'spoilt.pcap');
    const copies = run.frames.map((frame) => ({ ...frame, bytes: frame.bytes.slice() }));
    writeRecorded(spoilt, fault.spoil(copies));
    const found = await detectRecorded(spoilt, run.divisor);
    const attack = found.find(({ severity }) => severity === 'attack');
    report(`planted "${fault.name}": ${attack ? describeIncident(attack) : 'NOT NOTICED'}`);
    if (attack) caught += 1;
  }
  return caught;
}

function withPort443(frame: RecordedFrame): RecordedFrame {
  if (isInbound(frame)) frame.bytes.set([443 >> 8, 443 & 255], 36);
  return frame;
}

/** Takes the source from the port that was asked. */
function withOtherSource(frame: RecordedFrame): RecordedFrame {
  if (isInbound(frame)) frame.bytes.set(frame.bytes.subarray(36, 38), 28);
  return frame;
}
