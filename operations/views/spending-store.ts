/** What an account was charged on each day of its life. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

export interface DaySpending {
  day: Date;
  serverQuanta: number;
  otherQuanta: number;
}

/** What servers and requests cost on each of the last days, the oldest first; corrections and refunds are no spending. Days without charges are zero. */
export async function listDaySpending(db: Queryable, tenantId: number, days: number): Promise<DaySpending[]> {
  const { rows } = await sql<DaySpending>`
    with wanted as (
      select generate_series(greatest(date_trunc('day', svc_now() at time zone 'utc') - make_interval(days => ${days - 1}),
        least((select date_trunc('day', created_at at time zone 'utc') from tenants where id = ${tenantId}),
          (select date_trunc('day', min(created_at) at time zone 'utc') from ledger_entries where tenant_id = ${tenantId}))),
        date_trunc('day', svc_now() at time zone 'utc'), interval '1 day') as day),
    spent as (
      select date_trunc('day', created_at at time zone 'utc') as day, metadata ->> 'source' = 'server_hours' as "isServer",
        -sum(amount_quanta) as quanta
      from ledger_entries
      where tenant_id = ${tenantId} and metadata ->> 'source' in ('server_hours', 'api_overage')
        and created_at >= (select min(day) from wanted) at time zone 'utc'
      group by 1, 2)
    select w.day at time zone 'utc' as day,
      coalesce(sum(s.quanta) filter (where s."isServer"), 0)::bigint as "serverQuanta",
      coalesce(sum(s.quanta) filter (where not s."isServer"), 0)::bigint as "otherQuanta"
    from wanted w left join spent s on s.day = w.day group by w.day order by w.day`.execute(db);
  return rows;
}
