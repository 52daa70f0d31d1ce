/**
 * Proof with random counter histories: an attack of any class is decided in time, with its class, and recovers after
 * sixty healthy seconds that were observed; ordinary traffic, short bursts and traffic below the thresholds never make
 * an incident of severity attack.
 *
 * A history is a list of seconds with exact counters, so one history costs no packets. The same run with a fault planted
 * between the histories and the judge must fail, or the proof shows nothing.
 */
import { seededRandom } from '#common/random/index.ts';
import { Bin, Kind } from '#sensor/attack-counters/index.ts';
import type { Incident } from '#sensor/detector/incident.ts';
import { Judge } from '#sensor/detector/judge.ts';
import type { TargetSecond } from '#sensor/detector/target-window.ts';
import { type DirectionName, defaultThresholds } from '#sensor/detector/thresholds.ts';
import { emptyCounts } from '#sensor/detector/traffic.ts';

export const name = 'attack-decisions';

/** Each stands for a class of errors in the counters, the clock or the judge. */
export const plantedFaults = [
  'a second counts twice',
  'every other second is lost',
  'kinds are mixed up',
  'two-way traffic counts as one-way',
  'missing seconds count as healthy',
  'a late second is judged',
] as const;
export type PlantedFault = (typeof plantedFaults)[number];

export interface ProveOptions {
  n: number;
  seed: number;
  report: (line: string) => void;
}

const ratios = [1.1, 1.5, 2, 5, 10] as const;
const startMs = 1_700_000_000_000;

type Named = readonly [
  Incident['class'],
  number,
  'pps' | 'syn_pps' | 'udp_pps' | 'icmp_pps' | 'fragment_pps',
  number,
];
/** Class, kind of its packets, metric that they reach, bytes of a packet. */
const classes: readonly Named[] = [
  ['fragment_flood', Kind.fragment, 'fragment_pps', 300],
  ['amplification', Kind.reflection, 'udp_pps', 480],
  ['syn_flood', Kind.opening, 'syn_pps', 44],
  ['synack_reflection', Kind.openingAnswer, 'pps', 44],
  ['ack_flood', Kind.segment, 'pps', 60],
  ['rst_flood', Kind.reset, 'pps', 40],
  ['udp_flood', Kind.datagram, 'udp_pps', 64],
  ['icmp_flood', Kind.icmp, 'icmp_pps', 84],
  ['protocol_flood', Kind.protocol, 'pps', 90],
];

/** What a history is of; only an attack may become an incident of severity attack. */
type Sort = 'attack' | 'below' | 'burst' | 'ordinary' | 'late';

interface History {
  sort: Sort;
  direction: DirectionName;
  class: Incident['class'];
  ratio: number;
  /** Moment of the first packet, and after the last, in seconds. */
  from: number;
  to: number;
  /** One entry a second; null where nothing was observed. */
  seconds: (TargetSecond | null)[];
  isLate: boolean[];
}

/** Runs `n` histories, then a small run with each planted fault. */
export async function prove({ n, seed, report }: ProveOptions) {
  const times: Record<string, number[]> = Object.fromEntries(ratios.map((ratio) => [ratio, []]));
  const offences = run(n, seed, null, times);
  for (const offence of offences.slice(0, 20)) report(offence);
  for (const ratio of ratios) {
    const taken = times[ratio]!.sort((a, b) => a - b);
    if (taken.length > 0)
      report(
        `${ratio} times: decided ${taken.length} times, median ${(taken[taken.length >> 1]! / 1000).toFixed(2)} s, worst ${(taken.at(-1)! / 1000).toFixed(2)} s`,
      );
  }
  let caught = 0;
  for (const fault of plantedFaults) {
    const found = run(Math.min(n, 300), seed, fault, null);
    report(`planted "${fault}": ${found[0] ?? 'NOT NOTICED'}`);
    if (found.length > 0) caught += 1;
  }
  return {
    claim:
      'attacks at 1.1 to 10 times a threshold are named and decided within 6 s, from 2 times on within 3 s; ordinary traffic is no attack',
    tried: n,
    failures: offences.length,
    plantedBugsCaught: `${caught} of ${plantedFaults.length}`,
  };
}

function run(
  n: number,
  seed: number,
  fault: PlantedFault | null,
  times: Record<string, number[]> | null,
): string[] {
  const random = seededRandom(seed);
  const offences: string[] = [];
  for (let i = 0; i < n; i += 1) {
    const history = randomHistory(random);
    const offence = judge(history, fault, times);
    if (offence === null) continue;
    const { sort, class: name_, direction, ratio, from } = history;
    offences.push(
      `history ${i}: ${sort} ${name_} ${direction} at ${ratio} from ${from.toFixed(2)}: ${offence}`,
    );
  }
  return offences;
}

function randomHistory(random: () => number): History {
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)]!;
  const sort: Sort = random() < 0.5 ? 'attack' : pick(['below', 'burst', 'ordinary', 'late'] as const);
  const direction = pick(['inbound', 'outbound'] as const);
  const [className, kind, metric, bytes] = pick(classes);
  const ratio = sort === 'below' ? 0.9 : sort === 'burst' ? 1 + random() * 40 : pick(ratios);
  const threshold = Math.min(defaultThresholds[direction][metric], defaultThresholds[direction].pps);
  const from = 3 + random();
  const length = sort === 'burst' ? 0 : sort === 'late' ? 8 : 7 + random() * 20;
  const history: History = {
    sort,
    direction,
    class: className,
    ratio,
    from,
    to: Math.ceil(from + length),
    seconds: [],
    isLate: [],
  };
  // Ordinary traffic of both directions beside it.
  const beside = random() * (sort === 'below' ? 0.05 : 0.9);
  const ordinary = (sort === 'ordinary' ? ratio : beside) * defaultThresholds.inbound.pps;
  const gapAt = sort === 'attack' && random() < 0.3 ? Math.ceil(history.to) + 10 : -1;
  const end = Math.ceil(history.to) + (sort === 'attack' ? 75 : 3);
  for (let second = 0; second < end; second += 1) {
    const jitter = 0.99 + random() * 0.02;
    const part = Math.max(0, Math.min(second + 1, history.to) - Math.max(second, from));
    const attack = sort === 'ordinary' ? 0 : Math.round(part * ratio * threshold * jitter);
    const one = secondOf(kind, attack, bytes, Math.round(ordinary * jitter));
    history.seconds.push(one);
    history.isLate.push(sort === 'late');
  }
  if (gapAt >= 0) history.seconds.splice(gapAt, 0, ...new Array<null>(100).fill(null));
  return history;
}

function secondOf(kind: number, packets: number, bytes: number, ordinary: number): TargetSecond {
  const counts = emptyCounts();
  const opposite = emptyCounts();
  counts[Kind.twoWaySegment] = ordinary;
  counts[Bin.bytes + Kind.twoWaySegment] = ordinary * 900;
  opposite[Kind.twoWaySegment] = ordinary >> 1;
  opposite[Bin.bytes + Kind.twoWaySegment] = (ordinary >> 1) * 60;
  counts[kind]! += packets;
  counts[Bin.bytes + kind]! += packets * bytes;
  return { counts, opposite };
}

/** Judges a history. Returns what is wrong, or null. */
function judge(
  history: History,
  fault: PlantedFault | null,
  times: Record<string, number[]> | null,
): string | null {
  const subject = new Judge();
  const target = { kind: 'host', value: '192.0.2.7' } as const;
  const past: TargetSecond[] = [];
  let observed = 0;
  let recoverable = -1;
  for (const [i, second] of history.seconds.entries()) {
    const at = startMs + i * 1000;
    const isLost = second === null;
    if (isLost && fault !== 'missing seconds count as healthy') {
      subject.noteGap();
      past.length = 0;
      continue;
    }
    const one = broken(second ?? secondOf(0, 0, 0, 0), fault, i);
    past.push(one);
    if (fault === 'a second counts twice') past.push(one);
    while (past.length > 5) past.shift();
    if (i >= history.to && !isLost) observed += 1;
    if (observed === 60 && recoverable < 0) recoverable = at + 1000;
    const isWhole = !history.isLate[i] || fault === 'a late second is judged';
    const { direction } = history;
    const thresholds = defaultThresholds[direction];
    const window = { target, direction, thresholds, seconds: [...past], detail: null };
    subject.close({ at, judgedAt: at + 1000, isWhole, isLossy: false }, [window]);
  }
  const attacks = subject.incidents.filter(({ severity }) => severity === 'attack');
  if (history.sort !== 'attack') return attacks.length === 0 ? null : `an attack: ${attacks[0]!.class}`;
  if (attacks.length !== 1) return `${attacks.length} incidents`;
  const [attack] = attacks;
  const took = attack!.detectedAt - startMs - history.from * 1000;
  times?.[history.ratio]?.push(took);
  if (attack!.class !== history.class) return `class ${attack!.class}`;
  if (took > (history.ratio >= 2 ? 3000 : 6000)) return `decided after ${Math.round(took)} ms`;
  if (attack!.recoveredAt !== (recoverable < 0 ? null : recoverable))
    return `recovered at ${attack!.recoveredAt}, not ${recoverable}`;
  return null;
}

function broken(second: TargetSecond, fault: PlantedFault | null, i: number): TargetSecond {
  const { counts, opposite } = second;
  if (fault === 'every other second is lost' && i % 2 === 0) return secondOf(0, 0, 0, 0);
  if (fault === 'kinds are mixed up') {
    const mixed = counts.slice();
    mixed.set(counts.subarray(0, 13), 1);
    mixed[0] = counts[13]!;
    return { counts: mixed, opposite };
  }
  if (fault === 'two-way traffic counts as one-way') {
    const oneWay = counts.slice();
    oneWay[Kind.segment]! += counts[Kind.twoWaySegment]!;
    oneWay[Kind.twoWaySegment] = 0;
    return { counts: oneWay, opposite };
  }
  return second;
}
