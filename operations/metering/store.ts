import { sql } from 'kysely';
import type pg from 'pg';
import { firstUsageDay, openingOf } from '#operations/views/usage-store.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { CountRow } from './count-request.ts';
import type { MonthUsage, OveragePrice } from './usage.ts';

// One statement raises the accounts' months, their keys' and their days, so they can't part. Rows are touched in the order
// of their keys, so two processes that count for the same accounts wait for each other instead of deadlocking. The
// month is the database's, so processes with different clocks agree on it. The time-out is set by the statement itself,
// for itself: it is read before the first row is touched, and costs no further round trip.
const addText = `
  with given as (
    select tenant_id, key_id, n, date_trunc('month', svc_now() at time zone 'utc')::date as month
    from (select set_config('lock_timeout', $4, true)) as patience
    cross join unnest($1::bigint[], $2::text[], $3::bigint[]) as g (tenant_id, key_id, n)),
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

/** Returns each account's count. Fails with a lock time-out when a row is locked for longer than `lockTimeoutMs`. */
export async function addCounts(
  pool: pg.Pool,
  counts: readonly CountRow[],
  lockTimeoutMs: number,
): Promise<Map<number, number>> {
  const { rows } = await pool.query<{ tenantId: number; count: number }>(addText, [
    counts.map((row) => row.tenantId),
    counts.map((row) => row.keyId),
    counts.map((row) => row.count),
    String(lockTimeoutMs),
  ]);
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
  price: OveragePrice;
}

/** What is free in a month, and what further requests cost. */
export interface Terms {
  includedPerMonth: number;
  price: OveragePrice;
}

const presentMonth = sql`date_trunc('month', svc_now() at time zone 'utc')::date`;

/** The price of the month `u`: its own once it is closed. */
const priceOf = ({ rateQuanta, unitRequests }: OveragePrice) =>
  sql`json_build_object('rateQuanta', coalesce(u.rate_quanta, ${rateQuanta}::bigint),
    'unitRequests', coalesce(u.unit_requests, ${unitRequests}::bigint))`;

/**
 * Keeps the terms of every month that is over with its accounts; kept figures never change again (API-8.7). They are those that were
 * noted last while the month ran: a process that starts later with other settings does not change a month that is over.
 */
export async function closeMonths(db: Queryable, { includedPerMonth, price }: Terms): Promise<void> {
  await sql`update usage_months m set included_count = coalesce(t.included_count, ${includedPerMonth}::bigint),
      rate_quanta = coalesce(t.rate_quanta, ${price.rateQuanta}::bigint),
      unit_requests = coalesce(t.unit_requests, ${price.unitRequests}::bigint)
    from (select distinct month from usage_months where included_count is null and month < ${presentMonth}) open
    left join usage_terms t using (month)
    where m.month = open.month and m.included_count is null`.execute(db);
  await sql`insert into usage_terms as kept (month, included_count, rate_quanta, unit_requests)
    values (${presentMonth}, ${includedPerMonth}, ${price.rateQuanta}, ${price.unitRequests})
    on conflict (month) do update set included_count = excluded.included_count, rate_quanta = excluded.rate_quanta,
      unit_requests = excluded.unit_requests
    where (kept.included_count, kept.rate_quanta, kept.unit_requests)
      is distinct from (excluded.included_count, excluded.rate_quanta, excluded.unit_requests)`.execute(db);
}

/**
 * Months of any age that owe at least one quantum, locked until the transaction ends; rows that another worker holds
 * are left to it. What is owed is the difference of two sums from the start of the month, as in `dueOverage`.
 */
export async function lockOverageMonths(
  tx: Queryable,
  query: Terms & { afterTenantId: number; limit: number },
): Promise<OverageMonth[]> {
  const { rateQuanta, unitRequests } = query.price;
  const included = sql`coalesce(included_count, ${query.includedPerMonth}::bigint)`;
  const costOf = (count: typeof included) =>
    sql`div((${count})::numeric * coalesce(rate_quanta, ${rateQuanta}::bigint), coalesce(unit_requests, ${unitRequests}::bigint))`;
  const { rows } = await sql<OverageMonth>`
    select tenant_id, to_char(month, 'YYYY-MM') as period, count, ${included} as included_count,
      overage_charged_count as charged_count, ${priceOf(query.price)} as price
    from usage_months u
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

/** This month's accounts that have reached a further share of their free requests; rows that others hold are left to them. */
export async function lockCrossedMonths(
  tx: Queryable,
  query: { includedPerMonth: number; thresholds: readonly number[]; limit: number },
): Promise<{ tenantId: number; period: string; toldPercent: number; percent: number }[]> {
  const reached = sql`(select coalesce(max(t), 0) from unnest(${[...query.thresholds]}::int[]) as t
    where count * 100 >= t * ${query.includedPerMonth}::bigint)`;
  const { rows } = await sql<{ tenantId: number; period: string; toldPercent: number; percent: number }>`
    select tenant_id, to_char(month, 'YYYY-MM') as period, told_percent, ${reached} as percent
    from usage_months where month = date_trunc('month', svc_now() at time zone 'utc')::date
      and told_percent < ${reached}
    order by tenant_id limit ${query.limit} for update skip locked`.execute(tx);
  return rows;
}

export async function noteTold(
  tx: Queryable,
  tenantId: number,
  period: string,
  percent: number,
): Promise<void> {
  await sql`update usage_months set told_percent = ${percent}
    where tenant_id = ${tenantId} and month = to_date(${period}, 'YYYY-MM')`.execute(tx);
}

/** A month of an account (or of none); returned also when nothing was counted in it. */
export async function findMonth(
  db: Queryable,
  tenantId: number | null,
  period: string | null,
  { includedPerMonth, price }: Terms,
): Promise<MonthUsage> {
  const { rows } = await sql<MonthUsage>`
    with present as (select date_trunc('month', svc_now() at time zone 'utc')::date as month),
    asked as (select coalesce(to_date(${period}, 'YYYY-MM'), present.month) as month from present)
    select to_char(asked.month, 'YYYY-MM') as period, asked.month = present.month as is_open,
      coalesce(u.count, 0) as count,
      case when asked.month = present.month then ${includedPerMonth}::bigint
        else coalesce(u.included_count, ${includedPerMonth}) end as included_count,
      coalesce(u.overage_charged_count, 0) as charged_count, ${priceOf(price)} as price,
      greatest(asked.month::timestamp at time zone 'utc', ${openingOf(tenantId)}) as since,
      asked.month::timestamp at time zone 'utc' as starts_at,
      (asked.month + interval '1 month') at time zone 'utc' as ends_at, svc_now() as as_of
    from asked cross join present
    left join usage_months u on u.tenant_id = ${tenantId} and u.month = asked.month`.execute(db);
  return rows[0]!;
}

export interface DayUsage {
  /** Such as `2025-11-30`. */
  date: string;
  count: number;
}

/** Every day of the month up to today, from the account's first day on; null stands for all accounts. */
export async function listDays(db: Queryable, tenantId: number | null, period: string): Promise<DayUsage[]> {
  const whose = tenantId === null ? sql`true` : sql`u.tenant_id = ${tenantId}`;
  const { rows } = await sql<DayUsage>`
    select to_char(day, 'YYYY-MM-DD') as date,
      coalesce((select sum(u.count)::bigint from usage_days u where u.day = each.day::date and ${whose}), 0) as count
    from generate_series(greatest(to_date(${period}, 'YYYY-MM'), ${firstUsageDay(tenantId)})::timestamp,
      least(to_date(${period}, 'YYYY-MM') + interval '1 month' - interval '1 day', svc_now() at time zone 'utc'),
      interval '1 day') as each (day)
    order by day`.execute(db);
  return rows;
}

/** This month's requests of each of these keys, over all accounts that they were used for. */
export async function countKeys(db: Queryable, keyIds: readonly string[]): Promise<Map<string, number>> {
  const { rows } = await sql<{ keyId: string; count: number }>`
    select key_id, sum(count)::bigint as count from usage_key_months
    where key_id = any(${[...keyIds]}::text[]) and month = date_trunc('month', svc_now() at time zone 'utc')::date
    group by key_id`.execute(db);
  return new Map(rows.map((row) => [row.keyId, row.count]));
}

/** What all accounts of a month come to; each one's cost is rounded down on its own, as it is charged. */
export async function sumMonth(
  db: Queryable,
  period: string,
  deps: Terms,
): Promise<{
  count: number;
  accountCount: number;
  overAccountCount: number;
  overageQuanta: number;
  chargedQuanta: number;
}> {
  const { rateQuanta, unitRequests } = deps.price;
  const costOf = (count: string) =>
    sql`coalesce(sum(div((${sql.raw(count)})::numeric * rate, unit)), 0)::bigint`;
  const { rows } = await sql<{
    count: number;
    accountCount: number;
    overAccountCount: number;
    overageQuanta: number;
    chargedQuanta: number;
  }>`
    select coalesce(sum(count), 0)::bigint as count, count(*) as account_count,
      count(*) filter (where count > included) as over_account_count,
      ${costOf('greatest(0, count - included)')} as overage_quanta, ${costOf('charged')} as charged_quanta
    from (select count, coalesce(included_count, ${deps.includedPerMonth}) as included, overage_charged_count as charged,
        coalesce(rate_quanta, ${rateQuanta}::bigint) as rate, coalesce(unit_requests, ${unitRequests}::bigint) as unit
      from usage_months where month = to_date(${period}, 'YYYY-MM')) u`.execute(db);
  return rows[0]!;
}

export interface MonthSum {
  startsAt: Date;
  count: number;
  accountCount: number;
}

/** The last months of all accounts, or of one, since it exists; the oldest first, months without requests as zero. */
export async function listMonths(
  db: Queryable,
  tenantId: number | null,
  months: number,
): Promise<MonthSum[]> {
  const whose = tenantId === null ? sql`true` : sql`u.tenant_id = ${tenantId}`;
  const { rows } = await sql<MonthSum>`
    with present as (select date_trunc('month', svc_now() at time zone 'utc') as month)
    select each.month at time zone 'utc' as starts_at, coalesce(sum(u.count), 0)::bigint as count,
      count(u.tenant_id) as account_count
    from present, generate_series(greatest(present.month - make_interval(months => ${months - 1}),
      date_trunc('month', ${firstUsageDay(tenantId)})), present.month, interval '1 month') as each (month)
    left join usage_months u on u.month = each.month::date and ${whose}
    group by each.month order by each.month`.execute(db);
  return rows;
}
