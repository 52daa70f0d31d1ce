import { sql } from 'kysely';
import type pg from 'pg';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { CountRow } from './count-request.ts';
import type { OveragePrice } from './usage.ts';

// One statement raises the accounts' months, their keys' and their days, so they can't part. Rows are touched in the order
// of their keys, so two processes that count for the same accounts wait for each other instead of deadlocking. The
// month is the database's, so processes with different clocks agree on it.
const addText = `
  with given as (
    select tenant_id, key_id, n, date_trunc('month', svc_now() at time zone 'utc')::date as month
    from unnest($1::bigint[], $2::text[], $3::bigint[]) as g (tenant_id, key_id, n)),
  of_keys as (
    insert into usage_key_months as kept (tenant_id, month, key_id, count)
    select tenant_id, month, key_id, n from given order by tenant_id, key_id
    on conflict (tenant_id, month, key_id) do update set count = kept.count + excluded.count),
  of_days as (
    insert into usage_days as kept (tenant_id, day, count)
    select tenant_id, (svc_now() at time zone 'utc')::date, sum(n) from given group by tenant_id order by tenant_id
    on conflict (tenant_id, day) do update set count = kept.count + excluded.count)
  insert into usage_months as kept (tenant_id, month, count)
  select tenant_id, month, sum(n) from given group by tenant_id, month order by tenant_id
  on conflict (tenant_id, month) do update set count = kept.count + excluded.count
  returning tenant_id as "tenantId", count`;

export async function addCounts(pool: pg.Pool, counts: readonly CountRow[]): Promise<Map<number, number>> {
  const { rows } = await pool.query<{ tenantId: number; count: number }>({
    name: 'metering.add-counts',
    text: addText,
    values: [
      counts.map((row) => row.tenantId),
      counts.map((row) => row.keyId),
      counts.map((row) => row.count),
    ],
  });
  return new Map(rows.map((row) => [row.tenantId, row.count]));
}

export async function findCount(db: Queryable, tenantId: number): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count from usage_months
    where tenant_id = ${tenantId} and month = date_trunc('month', svc_now() at time zone 'utc')::date`.execute(
    db,
  );
  return rows[0]?.count ?? 0;
}

/** A month that has gone beyond its free requests. */
export interface OverageMonth {
  tenantId: number;
  /** Such as `2025-11`. */
  period: string;
  count: number;
  includedCount: number;
  chargedCount: number;
}

/** Keeps what was free in every month that is over; a kept figure never changes again (API-8.7). */
export async function closeMonths(db: Queryable, includedPerMonth: number): Promise<void> {
  await sql`update usage_months set included_count = ${includedPerMonth}
    where included_count is null and month < date_trunc('month', svc_now() at time zone 'utc')::date`.execute(
    db,
  );
}

/**
 * Months of any age that owe at least one quantum, locked until the transaction ends; rows that another worker holds
 * are left to it. What is owed is the difference of two sums from the start of the month, as in `dueOverage`.
 */
export async function lockOverageMonths(
  tx: Queryable,
  query: { includedPerMonth: number; price: OveragePrice; afterTenantId: number; limit: number },
): Promise<OverageMonth[]> {
  const { rateQuanta, unitRequests } = query.price;
  const included = sql`coalesce(included_count, ${query.includedPerMonth}::bigint)`;
  const costOf = (count: typeof included) =>
    sql`div((${count})::numeric * ${rateQuanta}::bigint, ${unitRequests}::bigint)`;
  const { rows } = await sql<OverageMonth>`
    select tenant_id as "tenantId", to_char(month, 'YYYY-MM') as period, count, ${included} as "includedCount",
      overage_charged_count as "chargedCount"
    from usage_months
    where tenant_id > ${query.afterTenantId} and count > ${included} + overage_charged_count
      and ${costOf(sql`count - ${included}`)} > ${costOf(sql`overage_charged_count`)}
    order by tenant_id, month limit ${query.limit} for update skip locked`.execute(tx);
  return rows;
}

/** Moves the high-water mark of charged requests. */
export async function noteCharged(
  tx: Queryable,
  tenantId: number,
  period: string,
  chargedCount: number,
): Promise<void> {
  await sql`update usage_months set overage_charged_count = ${chargedCount}
    where tenant_id = ${tenantId} and month = to_date(${period}, 'YYYY-MM')`.execute(tx);
}
