/** Statements on what servers cost: hours that are due, what a month has cost, what is still to come. */
import { sql } from 'kysely';
import { rfc3339 } from '#operations/views/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';

export interface DueHour {
  serverId: number;
  tenantId: number;
  hourlyQuanta: number;
  monthlyCapQuanta: number;
  /** What this server has cost in the month of the hour. */
  chargedQuanta: number;
  /** RFC 3339. */
  from: string;
}

/**
 * The next uncharged hour of each server that has one; rows that another worker holds are left to it. What a month has
 * cost so far is read once the rows are locked: the locking statement could still see what was before the worker
 * that held them last, and so charge beyond the cap. In the order of accounts, because their balances are taken in this
 * order: two workers wait for each other instead of deadlocking. Nothing is due from the moment at which the customer
 * asked for the server to be destroyed.
 */
export async function lockDueHours(
  tx: Queryable,
  { afterServerId, limit }: { afterServerId: number; limit: number },
): Promise<DueHour[]> {
  const { rows: due } = await sql<{ id: number }>`
    select s.id from servers s
    where s.id > ${afterServerId} and s.provisioned_at is not null
      and coalesce(s.billed_until, s.provisioned_at) < coalesce(s.deleting_at, s.deleted_at, svc_now())
    order by s.id limit ${limit} for update of s skip locked`.execute(tx);
  const { rows } = await sql<DueHour>`
    select s.id as "serverId", s.tenant_id as "tenantId", s.hourly_quanta as "hourlyQuanta",
      s.monthly_cap_quanta as "monthlyCapQuanta",
      ${sql.raw(rfc3339('coalesce(s.billed_until, s.provisioned_at)'))} as "from",
      coalesce((select charged_quanta from server_charges c where c.server_id = s.id
        and c.month = date_trunc('month', coalesce(s.billed_until, s.provisioned_at) at time zone 'utc')), 0) as "chargedQuanta"
    from servers s where s.id = any(${due.map((row) => row.id)}::bigint[]) order by s.tenant_id, s.id`.execute(
    tx,
  );
  return rows;
}

export async function noteChargedHour(tx: Queryable, hour: DueHour, amountQuanta: number): Promise<void> {
  await sql`insert into server_charges as kept (server_id, month, charged_quanta)
    values (${hour.serverId}, date_trunc('month', ${hour.from}::timestamptz at time zone 'utc'), ${amountQuanta})
    on conflict (server_id, month) do update set charged_quanta = kept.charged_quanta + excluded.charged_quanta`.execute(
    tx,
  );
  await sql`update servers set billed_until = coalesce(billed_until, provisioned_at) + interval '1 hour'
    where id = ${hour.serverId}`.execute(tx);
}

/** What the running servers of a tenant will still cost until the month ends, each up to its cap. */
export async function sumRemainingMonth(db: Queryable, tenantId: number): Promise<number> {
  const { rows } = await sql<{ quanta: number }>`
    with present as (
      select svc_now() as now, date_trunc('month', svc_now() at time zone 'utc') as month)
    select coalesce(sum(least(
        s.hourly_quanta * ceil(greatest(0, extract(epoch from
          (present.month + interval '1 month') at time zone 'utc' - greatest(now, coalesce(s.billed_until, s.provisioned_at, now)))) / 3600),
        greatest(0, s.monthly_cap_quanta - coalesce(c.charged_quanta, 0)))), 0)::bigint as quanta
    from present cross join servers s
    left join server_charges c on c.server_id = s.id and c.month = present.month::date
    where s.tenant_id = ${tenantId} and s.provisioning_state in ('queued', 'provisioning', 'ready')`.execute(
    db,
  );
  return rows[0]!.quanta;
}
