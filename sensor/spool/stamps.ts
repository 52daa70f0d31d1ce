import { type ClockStamp, clockStepMs, setClockFrom } from '#sensor/host-time/index.ts';

/** The clock of an upload, and the first minute that it stamped; what an upload tells of earlier times is not by it. */
export interface StampedBy extends ClockStamp {
  since: number;
}

/** The clock of the latest commit, and the last minute that was committed by it. */
export interface CommittedBy extends ClockStamp {
  throughMinute: number;
}

// By which clock the uploads of the queue were stamped: runs of positions, because a clock is rarely set.

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

// Stamps an upload again: what a wrong clock called one minute is by the right one another. Its kinds of records move it.

/** By how much an upload's times are to be moved. */
export interface Shift {
  /** Whole minutes. */
  seconds: number;
  /** The clocks differ by more than whole minutes, so that minutes of one are cut out of two of the other. */
  isUneven: boolean;
  /** The first minute that the wrong clock stamped. */
  since: number;
  /** No gap reaches further. */
  lastMinute: number;
  /** Nothing is known of the clock that stamped it, as of an older sensor's. */
  isUnknown: boolean;
}

/** What the queue knows of an upload. */
export interface Stamped {
  by: StampedBy;
  /** The last minute that it tells of. */
  lastMinute: number;
  hasMinutes: boolean;
  /** The last minute of all that wait and were stamped by the same clock. */
  newestOfClock(): number;
}

/**
 * How an upload moves to the clock of now, which is right; null: it stays. Of the same boot the uptime tells exactly, and of
 * another one in which the monitor told the time. Of a boot without that only what can't be is moved, a minute that has not come or one before clocks were set: behind all that
 * waits, just before this boot, where it is at the latest.
 */
export function findShift(
  upload: Stamped,
  clock: ClockStamp,
  nowMs: number,
  rightClocks: readonly ClockStamp[] = [],
): Shift | null {
  const { by } = upload;
  const thisMinute = Math.floor(nowMs / 60_000) * 60;
  const isSameBoot = by.bootId !== '' && by.bootId === clock.bootId;
  const right = isSameBoot ? clock : rightClocks.find((one) => one.bootId === by.bootId);
  if (right) {
    const exactMs = right.offsetMs - by.offsetMs;
    const seconds = Math.round(exactMs / 60_000) * 60;
    const isUneven = Math.abs(exactMs - seconds * 1000) >= clockStepMs;
    return seconds === 0
      ? null
      : { seconds, isUneven, since: by.since, lastMinute: thisMinute, isUnknown: false };
  }
  const isUnset = upload.lastMinute < setClockFrom && thisMinute >= setClockFrom;
  if (upload.lastMinute <= thisMinute && !isUnset) return null;
  const bootMinute = Math.floor(clock.offsetMs / 60_000) * 60;
  const end = by.bootId === '' || clock.bootId === '' ? thisMinute : Math.min(bootMinute, thisMinute);
  // A gap alone is cut: how far it really reached, the minutes that were collected tell.
  const seconds = upload.hasMinutes ? end - 60 - upload.newestOfClock() : 0;
  return { seconds, isUneven: true, since: by.since, lastMinute: end - 60, isUnknown: by.bootId === '' };
}
