/**
 * Counts each account's requests per UTC calendar month, exactly, while the database answers.
 *
 * Counts that arrive while a write is under way share the next one, and each request gets its own number out of it, so
 * a thousand calls of one account don't queue for one row a thousand times. A count is durable before its response
 * leaves. An account whose rows are locked waits alone, for two seconds at most. When a count can't be recorded the
 * request still succeeds; that is reported, and nothing is made up (API-8.5).
 */
import type pg from 'pg';
import { describeError } from '#common/errors/index.ts';
import type { Actor } from '#operations/accounts/index.ts';
import { emit } from '#operations/events/index.ts';
import type { FleetKey } from '#operations/views/usage-store.ts';
import type { FeatureWork } from '#service-kit/jobs/index.ts';
import { createLeasedLoop, type LeasedLoop, type LoopDeps } from '#service-kit/leases/index.ts';
import { inTransaction, isLockTimeout, type Queryable } from '#service-kit/postgres/index.ts';
import { createCounter } from './count-request.ts';
import {
  type AccountUsage,
  type FleetUsage,
  readFleetKeys,
  readFleetUsage,
  readMonths,
  readUsage,
} from './read-usage.ts';
import * as store from './store.ts';
import { dueOverage, type OveragePrice, overageCount } from './usage.ts';

export { type AccountUsage, type FleetUsage, rowsPerPage } from './read-usage.ts';
export type { MonthSum } from './store.ts';
export type { OveragePrice } from './usage.ts';

export interface Metering {
  /** What it does beside the calls. */
  readonly work: FeatureWork;
  /** The request's number in its account's month, or null when it could not be recorded. Never rejects. */
  countRequest(tenantId: number, keyId: string): Promise<number | null>;
  /** Free requests of an account per month. */
  readonly includedPerMonth: number;
  /** What the others cost. */
  readonly price: OveragePrice;
  /** Counts that could not be recorded since the start. */
  readonly failedCounts: number;
  /** This month's count of an account. */
  countOfMonth(tenantId: number): Promise<number>;
  /** A month of an account, the running one for null; null when it has not begun. Throws `accounts.forbidden`. */
  usageOf(actor: Actor, query: { tenantId: number; period: string | null }): Promise<AccountUsage | null>;
  /** A month of all accounts and one page of them, for staff. */
  fleetUsage(actor: Actor, period: string | null, page?: number): Promise<FleetUsage | null>;
  /** A page of a month's keys, most requests first. For staff. */
  fleetKeys(actor: Actor, period: string, page: number): Promise<{ keys: FleetKey[]; keyCount: number }>;
  /** The last months, the oldest first; all accounts (null) for staff alone. */
  lastMonths(actor: Actor, tenantId: number | null, months: number): Promise<store.MonthSum[]>;
  /** This month's requests of each of these keys; those without any are left out. */
  countOfKeys(keyIds: readonly string[]): Promise<Map<string, number>>;
  /** Keeps what was free in every month that is over, once for each (API-8.7). For the tick that charges overage. */
  closeMonths(): Promise<void>;
  /**
   * Months of any age that owe at least one quantum, of the accounts behind this one, locked until the transaction
   * ends; months that another worker holds are left to it.
   */
  lockDueOverage(tx: Queryable, afterTenantId: number, limit: number): Promise<DueOverage[]>;
  /** Moves a month's high-water mark; in the transaction that enters the charge. */
  noteCharged(tx: Queryable, due: DueOverage): Promise<void>;
}

/** A charge for the requests of one month. */
export interface DueOverage {
  tenantId: number;
  /** Such as `2025-11`. */
  period: string;
  count: number;
  includedCount: number;
  /** The mark before the charge. */
  chargedCount: number;
  quanta: number;
  /** The mark after it: the requests that the quanta pay for, and no more. */
  chargedCountAfter: number;
}

export function createMetering(
  deps: LoopDeps & {
    pool: () => pg.Pool;
    includedPerMonth: number;
    price: OveragePrice;
    /** How long the requests of an account whose rows are locked wait to be counted; default 2 s. */
    lockTimeoutMs?: number | undefined;
  },
): Metering {
  let failedCounts = 0;
  const counter = createCounter({
    write: (counts, lockTimeoutMs) => store.addCounts(deps.pool(), counts, lockTimeoutMs),
    isLocked: isLockTimeout,
    ownLockTimeoutMs: deps.lockTimeoutMs,
  });
  return {
    work: { parts: [createUsageThresholdLoop(deps)] },
    includedPerMonth: deps.includedPerMonth,
    price: deps.price,
    get failedCounts() {
      return failedCounts;
    },
    async countRequest(tenantId, keyId) {
      try {
        return await counter.count(tenantId, keyId);
      } catch (error) {
        failedCounts += 1;
        deps.reporter.error('a request was not counted', { tenant: tenantId, error: describeError(error) });
        return null;
      }
    },
    countOfMonth: (tenantId) => store.findCount(deps.db(), tenantId),
    usageOf: (actor, query) => readUsage(deps.db(), deps, actor, query),
    fleetUsage: (actor, period, page = 1) => readFleetUsage(deps.db(), deps, actor, period, page),
    fleetKeys: (actor, period, page) => readFleetKeys(deps.db(), actor, period, page),
    lastMonths: (actor, tenantId, months) => readMonths(deps.db(), actor, tenantId, months),
    countOfKeys: (keyIds) => store.countKeys(deps.db(), keyIds),
    closeMonths: () => store.closeMonths(deps.db(), deps),
    async lockDueOverage(tx, afterTenantId, limit) {
      const { includedPerMonth, price } = deps;
      const months = await store.lockOverageMonths(tx, { includedPerMonth, price, afterTenantId, limit });
      return months.map((month) => {
        const overage = overageCount(month.count, month.includedCount);
        const { quanta, chargedCount } = dueOverage(overage, month.chargedCount, month.price);
        return { ...month, quanta, chargedCountAfter: chargedCount };
      });
    },
    noteCharged: (tx, due) => store.noteCharged(tx, due.tenantId, due.period, due.chargedCountAfter),
  };
}

const thresholds = [50, 80, 100] as const;
const accountsMax = 500;

/**
 * Every minute: tells accounts that have used half, 80 % or all of this month's free requests, each share once.
 *
 * Calls do not check thresholds: a call must not wait for a notification.
 */
export function createUsageThresholdLoop(deps: LoopDeps & { includedPerMonth: number }): LeasedLoop {
  return createLeasedLoop({
    name: 'metering.thresholds',
    intervalMs: 60_000,
    ttlSeconds: 50,
    db: deps.db,
    clock: deps.clock,
    reporter: deps.reporter,
    async run(_lease, renew, signal) {
      if (deps.includedPerMonth === 0) return;
      while (!signal.aborted && (await tellSome(deps.db(), deps.includedPerMonth)) === accountsMax)
        if (!(await renew())) return;
    },
  });
}

/** The mark moves in the transaction of the events, so none is told twice or forgotten. */
async function tellSome(db: Queryable, includedPerMonth: number): Promise<number> {
  return inTransaction(db, async (tx) => {
    const crossed = await store.lockCrossedMonths(tx, { includedPerMonth, thresholds, limit: accountsMax });
    for (const { tenantId, period, toldPercent, percent } of crossed) {
      for (const threshold of thresholds)
        if (threshold > toldPercent && threshold <= percent)
          await emit(tx, { type: 'usage.threshold', tenantId, period, percent: threshold });
      await store.noteTold(tx, tenantId, period, percent);
    }
    return crossed.length;
  });
}
