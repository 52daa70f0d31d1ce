/** By which clock the uploads of the queue were stamped: runs of positions, because a clock is rarely set. */
import { type ClockStamp, clockStepMs } from '#sensor/host-time/index.ts';
import type { CommittedBy, StampedBy } from './stamps.ts';

/** From this position up to the next run's. */
export interface StampRun extends StampedBy {
  position: number;
}

/** Runs kept at most; the oldest are forgotten, and with them by which clock their uploads were stamped. */
const runsMax = 256;
/** Boots whose right clock is kept. */
const bootsMax = 8;
/** A blank boot: by a clock that nothing is known of. */
const unknown: StampedBy = { bootId: '', offsetMs: 0, since: 0 };

export function stampAt(runs: readonly StampRun[], position: number): StampedBy {
  return runs.findLast((run) => run.position <= position) ?? unknown;
}

/** True when nothing set the clock between the two. */
export function isSameClock(one: ClockStamp, other: ClockStamp): boolean {
  return one.bootId === other.bootId && Math.abs(one.offsetMs - other.offsetMs) < clockStepMs;
}

/** The clock of a commit, and the last minute of all that were made by it one after the other. */
export function committedBy(
  last: CommittedBy | undefined,
  { bootId, offsetMs }: ClockStamp,
  throughMinute: number,
): CommittedBy {
  const isSame = last !== undefined && isSameClock(last, { bootId, offsetMs });
  return {
    bootId,
    offsetMs,
    throughMinute: isSame ? Math.max(last.throughMinute, throughMinute) : throughMinute,
  };
}

/** The runs with uploads from this position on stamped by this clock. */
export function addRun(
  runs: readonly StampRun[],
  position: number,
  by: StampedBy = unknown,
): readonly StampRun[] {
  const last = stampAt(runs, position);
  if (isSameClock(last, by) && last.since === by.since) return runs;
  return [...runs.filter((run) => run.position < position), { ...by, position }].slice(-runsMax);
}

/** The runs with the upload at this position alone stamped by this clock. */
export function stampOne(runs: readonly StampRun[], position: number, by: StampedBy): readonly StampRun[] {
  const next = stampAt(runs, position + 1);
  return [
    ...runs.filter((run) => run.position < position),
    { ...by, position },
    { ...next, position: position + 1 },
    ...runs.filter((run) => run.position > position + 1),
  ].slice(-runsMax);
}

/** The runs without those of positions before the first one that waits. */
export function dropRunsBefore(runs: readonly StampRun[], position: number): readonly StampRun[] {
  const first = runs.findLastIndex((run) => run.position <= position);
  return first <= 0 ? runs : runs.slice(first);
}

/** The right clocks of each boot with this one; null where it is known, or its boot is not. */
export function withRightClock(known: readonly ClockStamp[], right: ClockStamp): ClockStamp[] | null {
  const last = known.at(-1);
  const isKnown = last?.bootId === right.bootId && Math.abs(last.offsetMs - right.offsetMs) < 30_000;
  if (right.bootId === '' || isKnown) return null;
  return [...known.filter((one) => one.bootId !== right.bootId), right].slice(-bootsMax);
}
