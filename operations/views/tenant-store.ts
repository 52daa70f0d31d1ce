/** Tenants: their status, money, spending and access, and what other statements read of them. */
import { type RawBuilder, sql } from 'kysely';
import type pg from 'pg';
import type { Queryable } from '#service-kit/postgres/index.ts';

/** The ids of an organization's tenants; the organization is an id or a column. */
export const organizationTenants = (organization: number | RawBuilder<unknown>): RawBuilder<unknown> => sql`
  select id from tenants where organization_id = ${organization}`;

/** The id and currency of a tenant that may be charged: none where it is closed. */
export const chargeableTenant = (tenantId: number): RawBuilder<unknown> => sql`
  select id, currency from tenants where id = ${tenantId} and status <> 'CLOSED'`;

/** Whether a tenant is one of the organization. */
export async function ownsTenant(db: Queryable, organizationId: number, tenantId: number): Promise<boolean> {
  const { rows } =
    await sql`select 1 from tenants where id = ${tenantId} and organization_id = ${organizationId}`.execute(
      db,
    );
  return rows.length === 1;
}

export type TenantStatus = 'ACTIVE' | 'SUSPENDED' | 'CLOSED';

export interface AccessFacts {
  tenantId: number;
  status: TenantStatus;
  hasBillingProfile: boolean;
  balanceQuanta: number;
  /** A saved card that can be charged. */
  hasChargeableCard: boolean;
  /** Money was paid in at some time. */
  hasDeposit: boolean;
  hasLiveServer: boolean;
}

// Reads the neighbours' rows (status, profile, servers) in the one statement that every API call waits for. Each of them row by row:
// a join of as many accounts as PostgreSQL expects reads whole tables.
export const accessColumns = `
  select t.id as "tenantId", t.status,
    coalesce((select b.balance_quanta from credit_balances b where b.tenant_id = t.id), 0) as "balanceQuanta",
    coalesce((select true from billing_profiles p where p.tenant_id = t.id), false) as "hasBillingProfile",
    coalesce((select b.has_deposit from credit_balances b where b.tenant_id = t.id), false) as "hasDeposit",
    coalesce((select true from saved_cards c where c.tenant_id = t.id and c.gateway = $2 and c.is_default
            and c.removed_at is null and make_date(c.expires_year, c.expires_month, 1)
              >= date_trunc('month', svc_now() at time zone 'utc')::date limit 1), false) as "hasChargeableCard",
    coalesce((select true from servers s where s.tenant_id = t.id
            and s.provisioning_state in ('queued', 'provisioning', 'ready') limit 1), false) as "hasLiveServer"
  from tenants t`;

export async function findAccess(
  pool: pg.Pool,
  tenantIds: readonly number[],
  gateway: string,
): Promise<AccessFacts[]> {
  const text = `${accessColumns} where t.id = any((select $1::bigint[])::bigint[])`;
  return (await pool.query<AccessFacts>(text, [tenantIds, gateway])).rows;
}

/** Active accounts with negative credit. */
export async function listDebtors(db: Queryable): Promise<number[]> {
  const { rows } = await sql<{ id: number }>`
    select t.id from credit_balances b join tenants t on t.id = b.tenant_id
    where b.balance_quanta < 0 and t.status = 'ACTIVE' order by t.id`.execute(db);
  return rows.map((row) => row.id);
}

/** Accounts that are suspended for a debt that they no longer have. */
export async function listSettledDebtors(db: Queryable): Promise<number[]> {
  const { rows } = await sql<{ id: number }>`
    select t.id from tenants t join credit_balances b on b.tenant_id = t.id
    where t.suspended_for = 'debt' and b.balance_quanta >= 0 order by t.id`.execute(db);
  return rows.map((row) => row.id);
}

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
      select date_trunc('day', created_at at time zone 'utc') as day, metadata ->> 'source' = 'server_hours' as is_server,
        -sum(amount_quanta) as quanta
      from ledger_entries
      where tenant_id = ${tenantId} and metadata ->> 'source' in ('server_hours', 'snapshots', 'api_overage', 'bandwidth_overage')
        and created_at >= (select min(day) from wanted) at time zone 'utc'
      group by 1, 2)
    select w.day at time zone 'utc' as day,
      coalesce(sum(s.quanta) filter (where s.is_server), 0)::bigint as server_quanta,
      coalesce(sum(s.quanta) filter (where not s.is_server), 0)::bigint as other_quanta
    from wanted w left join spent s on s.day = w.day group by w.day order by w.day`.execute(db);
  return rows;
}

/** What of a tenant still lives: servers, and orders that may become one. Reads the neighbours' rows. */
export async function countLiving(
  db: Queryable,
  tenantId: number,
): Promise<{ servers: number; orders: number }> {
  const { rows } = await sql<{ servers: number; orders: number }>`
    select (select count(*) from servers where tenant_id = ${tenantId} and provisioning_state <> 'deleted') as servers,
      (select count(*) from server_orders
        where tenant_id = ${tenantId} and queued_at is null and closed_reason is null) as orders`.execute(db);
  return rows[0]!;
}
