/** What decides whether an account may use the API and order: its status, money, card and servers. */

import { sql } from 'kysely';
import type pg from 'pg';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { TenantStatus } from './tenant-status.ts';

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
