/**
 * Which minutes one visit to an allocation sends (NET-4.3): the five most recent complete ones and up to 55 older ones.
 *
 * After an outage the older ones are those that were missed; else they are the next stretch of a sweep that goes over
 * the last 24 hours again and again, so that late data reaches operations too. All values are seconds since 1970 on
 * whole minutes; ranges hold their start and not their end.
 */
export const minuteSeconds = 60;
const recentSeconds = 5 * minuteSeconds;
/** The older minutes of one visit. */
export const historySeconds = 55 * minuteSeconds;
const windowSeconds = 24 * 3600;

/** How far an allocation generation has been delivered. */
export interface Cursor {
  /** Every complete minute before this was acknowledged or found empty once. */
  deliveredUntil: number;
  /** Where the sweep goes on. */
  sweptUntil: number;
}

export interface Visit {
  recentFrom: number;
  recentTo: number;
  historyFrom: number;
  historyTo: number;
  isCatchingUp: boolean;
  /** The oldest minute that the allocation may have and that is still swept. */
  floor: number;
}

/** The first whole minute that belongs to the assignment alone (NET-2.3). */
export function firstWholeMinute(assignedAtMs: number): number {
  return Math.ceil(assignedAtMs / 60_000) * minuteSeconds;
}

/** Where a generation that was never visited starts. */
export function createCursor(assignedFrom: number, completeUntil: number): Cursor {
  const floor = Math.max(assignedFrom, completeUntil - windowSeconds);
  return { deliveredUntil: floor, sweptUntil: floor };
}

/** The next visit; null while the assignment has no complete minute yet. */
export function planVisit(cursor: Cursor, assignedFrom: number, completeUntil: number): Visit | null {
  const floor = Math.max(assignedFrom, completeUntil - windowSeconds);
  if (floor >= completeUntil) return null;
  const recentFrom = Math.max(floor, completeUntil - recentSeconds);
  const isCatchingUp = cursor.deliveredUntil < recentFrom;
  const isSweepInside = cursor.sweptUntil >= floor && cursor.sweptUntil < recentFrom;
  const historyFrom = isCatchingUp
    ? Math.max(cursor.deliveredUntil, floor)
    : isSweepInside
      ? cursor.sweptUntil
      : floor;
  const historyTo = Math.min(historyFrom + historySeconds, recentFrom);
  return { recentFrom, recentTo: completeUntil, historyFrom, historyTo, isCatchingUp, floor };
}

/** The cursor after a visit was acknowledged, or found empty, up to `historyDone` of its older minutes. */
export function advanceCursor(cursor: Cursor, visit: Visit, historyDone: number): Cursor {
  const isThrough = historyDone >= visit.recentFrom;
  if (visit.isCatchingUp) {
    return { ...cursor, deliveredUntil: isThrough ? visit.recentTo : historyDone };
  }
  return { deliveredUntil: visit.recentTo, sweptUntil: isThrough ? visit.floor : historyDone };
}

/** What is known of a site's captures. */
export interface CaptureProgress {
  captureId: number;
  /** Start of the newest minute that it has closed, null for none yet. */
  newestMinute: number | null;
}

/** A capture without a closed minute for this long delays no delivery. */
const silentAfterSeconds = 5 * minuteSeconds;
/** After this time a minute counts as complete without the missing captures; the sweep sends later data again. */
const latenessSeconds = 60;

/** The newest closed minutes of the captures that listen, by their ids. */
export function deliveredMinutes(captures: readonly CaptureProgress[], nowMs: number): Map<number, number> {
  const now = Math.floor(nowMs / 1000);
  return new Map(
    captures.flatMap(({ captureId, newestMinute }) =>
      newestMinute !== null && newestMinute + minuteSeconds > now - silentAfterSeconds
        ? [[captureId, newestMinute]]
        : [],
    ),
  );
}

/** The end of a site's complete minutes: every listening capture has closed them, or their lateness has passed. */
export function completeUntil(captures: readonly CaptureProgress[], nowMs: number): number {
  const now = Math.floor(nowMs / 1000);
  const thisMinute = now - (now % minuteSeconds);
  const late = now - latenessSeconds;
  const surely = late - (late % minuteSeconds);
  const newest = [...deliveredMinutes(captures, nowMs).values()];
  if (newest.length === 0) return surely;
  const closed = Math.min(...newest) + minuteSeconds;
  return Math.max(surely, Math.min(closed, thisMinute));
}
