import type { Clock } from '#common/clock/index.ts';
import { CodedError } from '#common/errors/index.ts';
import { isTrusted, type Lease, renewLease, underLease } from '#service-kit/leases/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { SiteDay } from '../control/engine-use-store.ts';
import * as store from '../control/move-store.ts';
import type { MeasuredDay } from './clickhouse-day-store.ts';
import {
  compareSums,
  type DayDifference,
  describeDifference,
  type SumBounds,
} from './clickhouse-day-store.ts';
import type { MoveEnds } from './move-ends.ts';

export type MoveStep = 'day' | 'rows' | 'copied' | 'check' | 'hold' | 'rest' | 'switch';

/** What each step of a move has. */
export interface Moving {
  db: () => Queryable;
  clock: Clock;
  ends: MoveEnds;
  lease: Lease;
  progress: MoveProgress;
  signal: AbortSignal;
  /** For tests: called before each step, with its name. */
  onStep?: ((step: MoveStep) => Promise<void>) | undefined;
}

/** Longer than the longest insert: what a killed process has sent is stored or refused when the next one begins. */
export const moveLeaseSeconds = 60;

const hour = 3600;
const ceilHour = (second: number) => Math.ceil(second / hour) * hour;
/** What is so near to its end is not compared: engines remove at their own times. */
const marginSeconds = 600;

export const stopped = (why = 'Stopped.') =>
  new CodedError('facts.move_stopped', `${why} The same command goes on from here.`);

/** Between two steps: throws `facts.move_stopped` where the move should or must not go on. */
export async function goOn(
  { db, clock, lease, signal, onStep }: Omit<Moving, 'ends' | 'progress'>,
  step: MoveStep,
): Promise<void> {
  await onStep?.(step);
  if (signal.aborted) throw stopped();
  if (!isTrusted({ clock }, lease) && !(await renewLease({ db, clock, ttlSeconds: moveLeaseSeconds }, lease)))
    throw stopped('The database did not answer in time.');
}

/** A transaction of the process that holds the lease. */
export const fenced = <T>(
  { db, lease }: Pick<Moving, 'db' | 'lease'>,
  work: (trx: Queryable) => Promise<T>,
) => underLease(db(), lease, work);

/** Days of the source, and those of them that are not copied as they are now. */
export async function listLeft(
  { db, ends }: Moving,
  isEnded: (day: number) => boolean,
): Promise<{ all: MeasuredDay[]; left: MeasuredDay[] }> {
  const { factsFrom } = await store.readKept(db());
  const begun = new Map((await store.listMoveDays(db())).map((one) => [keyOf(one), one]));
  const days = await ends.listDays(factsFrom);
  const listed = new Set(days.map(keyOf));
  // Of what changed and is not listed nothing is left but what was copied before.
  for (const one of await store.listChangedDays(db()))
    if (!listed.has(keyOf(one))) days.push({ ...one, captureMinutes: 0 });
  const all = days.filter(({ day }) => isEnded(day)).sort((a, b) => a.day - b.day || a.siteId - b.siteId);
  const left = all.filter((one) => {
    const known = begun.get(keyOf(one));
    return !known?.isWhole || known.hasChanged;
  });
  return { all, left };
}

const keyOf = ({ siteId, day }: SiteDay) => `${siteId} ${day}`;

/** Copies days anew and compares each. Throws `facts.move_differs`. */
export async function copyDays(moving: Moving, left: readonly MeasuredDay[]): Promise<void> {
  const { db, ends, progress } = moving;
  for (const one of left) {
    await goOn(moving, 'day');
    const kept = await store.readKept(db());
    const peersFrom = ceilHour(kept.pairsFrom);
    const isAgain = await fenced(moving, (trx) => store.beginDay(trx, { ...one, peersFrom }));
    await ends.copyDay({ ...one, kept, peersFrom, isAgain }, async (rows) => {
      progress.addRows(rows);
      await goOn(moving, 'rows');
    });
    await goOn(moving, 'copied');
    const differences = await compare(moving, { ...one, peersFrom });
    if (differences.length === 0) await fenced(moving, (trx) => store.setWhole(trx, one, true));
    else if (!(await isChanged(db(), one))) throw differing(differences);
    progress.addDay(one.captureMinutes);
  }
}

/** Compares every day that is copied and has not changed since. Those that differ are copied again by the next run; throws `facts.move_differs`. */
export async function checkDays(moving: Moving, say: (line: string) => void): Promise<void> {
  const differences: DayDifference[] = [];
  const whole = (await store.listMoveDays(moving.db())).filter((one) => one.isWhole && !one.hasChanged);
  say(`Comparing ${whole.length} ${whole.length === 1 ? 'day' : 'days'} of sites in both engines.`);
  for (const one of whole) {
    await goOn(moving, 'check');
    const found = await compare(moving, one);
    if (found.length === 0 || (await isChanged(moving.db(), one))) continue;
    differences.push(...found);
    await fenced(moving, (trx) => store.setWhole(trx, one, false));
  }
  if (differences.length > 0) throw differing(differences);
}

async function compare({ db, ends }: Moving, one: SiteDay & { peersFrom: number }): Promise<DayDifference[]> {
  const { factsFrom, pairsFrom } = await store.readKept(db());
  const bounds: SumBounds = {
    fromMinute: Math.max(one.day, ceilHour(factsFrom + marginSeconds)),
    toMinute: one.day + 86_400,
    pairsFrom: Math.ceil((pairsFrom + marginSeconds) / 60) * 60,
    peersFrom: one.peersFrom,
    peerPairsFrom: Math.max(one.peersFrom, ceilHour(pairsFrom + marginSeconds)),
  };
  const { source, target } = await ends.sumDay(one, bounds);
  return compareSums(one, source, target);
}

const isChanged = async (db: Queryable, one: SiteDay) =>
  (await store.listChangedDays(db)).some((changed) => keyOf(changed) === keyOf(one));

function differing(differences: readonly DayDifference[]): CodedError {
  const shown = differences.slice(0, 20).map((one) => `\n  ${describeDifference(one)}`);
  const more = differences.length > shown.length ? `\n  and ${differences.length - shown.length} more` : '';
  return new CodedError(
    'facts.move_differs',
    `The copy differs from the facts, so nothing was switched:${shown.join('')}${more}\nThe same command copies these days again.`,
  );
}

// What a move says of itself while it copies.

type MoveProgress = ReturnType<typeof createMoveProgress>;

interface Measured {
  captureMinutes: number;
}

const everyMs = 5_000;

export function createMoveProgress(clock: Clock, say: (line: string) => void) {
  let days = { done: 0, total: 0 };
  let minutes = { done: 0, left: 0 };
  let rows = 0;
  let begunMs = clock.monotonicMs();
  let saidMs = begunMs;
  const sum = (of: readonly Measured[]) => of.reduce((total, one) => total + one.captureMinutes, 0);
  const line = () => {
    const seconds = Math.max((clock.monotonicMs() - begunMs) / 1000, 0.001);
    const leftSeconds = minutes.done === 0 ? null : (seconds / minutes.done) * minutes.left;
    const rest = leftSeconds === null ? '' : `, ${durationText(leftSeconds)} left`;
    say(
      `${days.done} of ${days.total} days of sites, ${count(rows)} rows, ${count(rows / seconds)} rows/s${rest}`,
    );
    saidMs = clock.monotonicMs();
  };
  return {
    /** Of these days so many are left. */
    begin(all: readonly Measured[], left: readonly Measured[]) {
      days = { done: all.length - left.length, total: all.length };
      minutes = { done: 0, left: sum(left) };
      rows = 0;
      begunMs = clock.monotonicMs();
      if (left.length > 0) line();
    },
    addRows(more: number) {
      rows += more;
      if (clock.monotonicMs() - saidMs >= everyMs) line();
    },
    addDay(captureMinutes: number) {
      days.done += 1;
      minutes.done += captureMinutes;
      minutes.left -= captureMinutes;
      if (days.done === days.total || clock.monotonicMs() - saidMs >= everyMs) line();
    },
  };
}

const count = (value: number): string => Math.round(value).toLocaleString('en-US');

function durationText(seconds: number): string {
  if (seconds < 90) return `${Math.ceil(seconds)} s`;
  if (seconds < 5400) return `${Math.ceil(seconds / 60)} min`;
  return `${Math.floor(seconds / 3600)} h ${Math.ceil((seconds % 3600) / 60)} min`;
}
