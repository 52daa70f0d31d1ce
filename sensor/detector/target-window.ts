/** What is judged of one target: the latest seconds of its counters. */
import type { TrafficDetail } from '#sensor/attack-counters/index.ts';
import type { Target } from './incident.ts';
import type { DirectionName, DirectionThresholds } from './thresholds.ts';
import { type Counts, emptyCounts } from './traffic.ts';
import { windowSeconds } from './trigger.ts';

/** One second of a target: its direction and the opposite one. */
export interface TargetSecond {
  counts: Counts;
  opposite: Counts;
  /** The part of it that belongs to no target of its own: only that may be an attack on this one. Missing: all of it. */
  unassigned?: TargetSecond;
}

export interface TargetWindow {
  target: Target;
  direction: DirectionName;
  thresholds: DirectionThresholds;
  /** Counters of a drill. Its incidents are apart from those of traffic. */
  isDrill?: boolean;
  /** A part of it was dropped by the filter, so nothing is known of its ports. */
  isFiltered?: boolean;
  /** The last closed seconds, the newest last. */
  seconds: readonly TargetSecond[];
  detail: TrafficDetail | null;
  /** Of a target of many hosts, what does not follow from its counters, by second. */
  overall?: {
    /** Ratios that an attack has at least. */
    attack: readonly number[];
    /** Ratios of all traffic. */
    volume: readonly number[];
  };
}

/** A host without any traffic. */
export function emptyWindow(
  target: string,
  direction: DirectionName,
  thresholds: DirectionThresholds,
): TargetWindow {
  const seconds = Array.from(
    { length: windowSeconds },
    (): TargetSecond => ({ ...{ counts: emptyCounts(), opposite: emptyCounts() } }),
  );
  return { target: { kind: 'host', value: target }, direction, thresholds, seconds, detail: null };
}

/** The clock of one judgement, unix milliseconds. */
export interface ClosedSecond {
  /** Start of the closed second. */
  at: number;
  /** When it is judged: its end, or the last packet of a capture that ends in it. */
  judgedAt: number;
  /** False when the second is known only in part, or is judged late: then no incident begins and none recovers. */
  isWhole: boolean;
  /** Packets were lost in it: an incident may begin, for there were at least so many, and none recovers. */
  isLossy: boolean;
  /** For a minute packets of one direction only were seen: missing answers say nothing. */
  isOneDirection?: boolean;
}
