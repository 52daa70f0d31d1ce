/**
 * What an account's traffic beyond its pool costs.
 *
 * A month is charged once, some days after its end, when what was delayed has arrived, by what the monitor's minutes say: spoofed
 * traffic counts in none of them, and attacks and our own port scans are left out. `docs/decisions/0030-bandwidth-pool.md` says more.
 */
import { listServersSince, listUse, type UsingAccount } from '#operations/views/bandwidth-store.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { chargeableBytes, computePool, overageQuanta, type PoolRules } from './pool.ts';
import { daysOf, periodOf, poolSum } from './read-bandwidth.ts';
import { findChoice } from './store.ts';

/** By which a month is charged. */
export interface BandwidthTerms {
  /** Such as `2025-11`. */
  period: string;
  /** The price of 10^12 bytes; 0: nothing is charged. */
  tbQuanta: number;
  poolCounts: 'outbound' | 'total';
  rules: PoolRules;
}

export interface MonthFigures {
  usedBytes: number;
  allowanceBytes: number;
  /** Of what is beyond the pool: used while the account had not chosen to be limited. */
  chargeableBytes: number;
  quanta: number;
}

/** What an account used of a month and what that costs; of one that is over its pool is that of the month's end. */
export async function computeMonth(
  tx: Queryable,
  { period, tbQuanta, poolCounts, rules }: BandwidthTerms,
  { tenantId, openedAt }: UsingAccount,
  nowMs = Number.POSITIVE_INFINITY,
): Promise<MonthFigures> {
  const month = periodOf(period);
  const use = await listUse(tx, { tenantId, serverId: null }, daysOf([month]), {
    granularity: 'month',
    source: 'telemetry',
    isAlone: true,
  });
  const usedBytes = poolSum({ poolCounts }, use);
  const servers = await listServersSince(tx, tenantId, month.startMs);
  const { allowanceBytes } = computePool({
    ...{ rules, month, openedAt, usedBytes },
    nowMs: Math.min(nowMs, month.endMs),
    lives: servers.flatMap(({ life }) => life ?? []),
  });
  const overBytes = Math.max(0, usedBytes - allowanceBytes);
  const chargeable = chargeableBytes(overBytes, await findChoice(tx, tenantId, period));
  return {
    ...{ usedBytes, allowanceBytes, chargeableBytes: chargeable },
    quanta: overageQuanta(chargeable, tbQuanta),
  };
}
