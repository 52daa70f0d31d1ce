/**
 * The account's pool of the month: what may be used now, and what would be added if its servers run on.
 *
 * `docs/decisions/0030-bandwidth-pool.md` says why. Everything is whole bytes until it is shown.
 */
import type { ServerLife } from '#operations/views/bandwidth-store.ts';
import type { UsedUpChoice } from './store.ts';

export interface PoolRules {
  /** Of every account, each month. */
  baseBytes: number;
  /** For each server beyond the first that runs the whole month; earned by the hour. */
  perServerBytes: number;
  /** For each full year since the account was opened, up to the limit. */
  tenureYearBytes: number;
  tenureBytesMax: number;
}

export interface Month {
  startMs: number;
  endMs: number;
}

export interface Pool {
  baseBytes: number;
  tenureBytes: number;
  /** Base and tenure. */
  freeBytes: number;
  perServerBytes: number;
  /** Earned by additional servers up to now. */
  earnedBytes: number;
  /** What they would earn in the rest of the month; not spendable. */
  potentialEarnedBytes: number;
  /** What is left of the earned part once the free part is used up. */
  earnedRemainingBytes: number;
  /** May be used now. */
  allowanceBytes: number;
  /** What the allowance would be at the month's end; not spendable. */
  potentialBytes: number;
  usedBytes: number;
  remainingBytes: number;
  /** The month's use if it goes on as it began, and the whole hours that it rests on; null before the first is over. */
  projection: { bytes: number; hours: number } | null;
}

export function computePool(input: {
  rules: PoolRules;
  month: Month;
  nowMs: number;
  openedAt: Date;
  lives: readonly ServerLife[];
  usedBytes: number;
}): Pool {
  const { rules, month, nowMs, usedBytes } = input;
  const monthMs = month.endMs - month.startMs;
  const running = input.lives.filter((life) => life.toMs === null).length;
  const earnedMs = additionalMs(input.lives, month.startMs, nowMs);
  const earnedBytes = Math.floor((rules.perServerBytes * earnedMs) / monthMs);
  const restMs = Math.max(0, month.endMs - nowMs);
  const potentialEarnedBytes = Math.floor(
    (rules.perServerBytes * Math.max(0, running - 1) * restMs) / monthMs,
  );
  const tenureBytes = Math.min(
    rules.tenureBytesMax,
    fullYears(input.openedAt, nowMs) * rules.tenureYearBytes,
  );
  const freeBytes = rules.baseBytes + tenureBytes;
  const allowanceBytes = freeBytes + earnedBytes;
  return {
    baseBytes: rules.baseBytes,
    tenureBytes,
    freeBytes,
    perServerBytes: rules.perServerBytes,
    earnedBytes,
    potentialEarnedBytes,
    earnedRemainingBytes: Math.max(0, earnedBytes - Math.max(0, usedBytes - freeBytes)),
    allowanceBytes,
    potentialBytes: allowanceBytes + potentialEarnedBytes,
    usedBytes,
    remainingBytes: Math.max(0, allowanceBytes - usedBytes),
    projection: project(input, restMs),
  };
}

/** From the first server on: before it nothing could be used. */
function project(
  { month, nowMs, lives, usedBytes }: Parameters<typeof computePool>[0],
  restMs: number,
): Pool['projection'] {
  const firstMs = Math.min(...lives.map((life) => life.fromMs));
  const elapsedMs = Math.min(nowMs, month.endMs) - Math.max(month.startMs, firstMs);
  const hours = Math.floor(elapsedMs / 3_600_000);
  return hours < 1 ? null : { bytes: usedBytes + Math.floor((usedBytes * restMs) / elapsedMs), hours };
}

/** Server-milliseconds beyond the first server, between two moments: at each instant all but one server count. */
export function additionalMs(lives: readonly ServerLife[], fromMs: number, toMs: number): number {
  const changes = lives.flatMap((life) => {
    const start = Math.max(fromMs, life.fromMs);
    const end = Math.min(toMs, life.toMs ?? toMs);
    return end <= start
      ? []
      : [
          { atMs: start, by: 1 },
          { atMs: end, by: -1 },
        ];
  });
  changes.sort((a, b) => a.atMs - b.atMs);
  let running = 0;
  let sinceMs = fromMs;
  let total = 0;
  for (const change of changes) {
    total += Math.max(0, running - 1) * (change.atMs - sinceMs);
    running += change.by;
    sinceMs = change.atMs;
  }
  return total;
}

/** Whole years between two moments, counted by the calendar. */
export function fullYears(from: Date, nowMs: number): number {
  const now = new Date(nowMs);
  const years = now.getUTCFullYear() - from.getUTCFullYear();
  const birthday = new Date(from);
  birthday.setUTCFullYear(now.getUTCFullYear());
  return Math.max(0, birthday.getTime() > nowMs ? years - 1 : years);
}

/** How long after its end a month is charged: minutes and incidents of an outage arrive by then. What comes later is free. */
export const arrivalDays = 3;

/** What so many bytes beyond the pool cost, rounded down to the quantum, exactly; `tbQuanta` is the price of 10^12 bytes. */
export function overageQuanta(bytes: number, tbQuanta: number): number {
  return Number((BigInt(Math.max(0, bytes)) * BigInt(tbQuanta)) / 1_000_000_000_000n);
}

/** Of what was used beyond the pool, what was not used under a choice of the limit. */
export function chargeableBytes(overBytes: number, choice: UsedUpChoice): number {
  return Math.max(0, overBytes - freeBytesOf(overBytes, choice));
}

/** What was used beyond the pool under choices of the limit, the present one included. */
export function freeBytesOf(overBytes: number, { whenUsedUp, sinceBytes, freeBytes }: UsedUpChoice): number {
  return freeBytes + (whenUsedUp === 'limit' ? Math.max(0, overBytes - sinceBytes) : 0);
}
