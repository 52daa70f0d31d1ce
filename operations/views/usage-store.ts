/** Counted requests with the names of keys and accounts. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

export interface KeyUsage {
  /** Null: all revoked keys together. */
  keyId: string | null;
  name: string;
  count: number;
}

export async function listKeyUsage(db: Queryable, tenantId: number, period: string): Promise<KeyUsage[]> {
  const { rows } = await sql<KeyUsage>`
    select case when k.revoked_at is null then k.key_id end as key_id,
      case when k.revoked_at is null then max(k.name) else 'revoked keys' end as name, sum(u.count)::bigint as count
    from usage_key_months u join api_keys k on k.key_id = u.key_id
    where u.tenant_id = ${tenantId} and u.month = to_date(${period}, 'YYYY-MM')
    group by k.revoked_at is null, case when k.revoked_at is null then k.key_id end
    order by count desc, key_id`.execute(db);
  return rows;
}

/** The first day of an account (null: of all), or of its first counted request where that is earlier. */
export function firstUsageDay(tenantId: number | null) {
  const tenant = tenantId === null ? sql`true` : sql`t.id = ${tenantId}`;
  const counted = tenantId === null ? sql`true` : sql`d.tenant_id = ${tenantId}`;
  return sql`least((select min(t.created_at at time zone 'utc')::date from tenants t where ${tenant}),
    (select min(d.day) from usage_days d where ${counted}))`;
}

/** When the account was opened. */
export const openingOf = (tenantId: number | null) =>
  sql`(select t.created_at from tenants t where t.id = ${tenantId})`;

export interface FleetAccount {
  tenantId: number;
  name: string;
  currency: string;
  count: number;
  includedCount: number;
  chargedCount: number;
  /** Of further requests: its own once the month is closed. */
  price: { rateQuanta: number; unitRequests: number };
}

export async function listTopAccounts(
  db: Queryable,
  period: string,
  live: { includedPerMonth: number; price: FleetAccount['price'] },
  part: { limit: number; offset: number },
): Promise<FleetAccount[]> {
  const { rows } = await sql<FleetAccount>`
    select u.tenant_id, t.name, t.currency, u.count,
      coalesce(u.included_count, ${live.includedPerMonth}) as included_count, u.overage_charged_count as charged_count,
      json_build_object('rateQuanta', coalesce(u.rate_quanta, ${live.price.rateQuanta}::bigint),
        'unitRequests', coalesce(u.unit_requests, ${live.price.unitRequests}::bigint)) as price
    from usage_months u join tenants t on t.id = u.tenant_id
    where u.month = to_date(${period}, 'YYYY-MM') order by u.count desc, u.tenant_id
    limit ${part.limit} offset ${part.offset}`.execute(db);
  return rows;
}

/** A key's requests of a month for one of the accounts that it reaches. */
export interface FleetKey {
  keyId: string;
  name: string;
  isActive: boolean;
  tenantId: number;
  tenantName: string;
  count: number;
}

/** Those with the most requests, each for each account that it was used for. */
export async function listTopKeys(
  db: Queryable,
  period: string,
  part: { limit: number; offset: number },
): Promise<{ keys: FleetKey[]; keyCount: number }> {
  const { rows } = await sql<FleetKey & { keyCount: number }>`
    select u.key_id, k.name, k.revoked_at is null as is_active, u.tenant_id, t.name as tenant_name, u.count,
      count(*) over () as key_count
    from usage_key_months u join api_keys k on k.key_id = u.key_id join tenants t on t.id = u.tenant_id
    where u.month = to_date(${period}, 'YYYY-MM') order by u.count desc, u.key_id, u.tenant_id
    limit ${part.limit} offset ${part.offset}`.execute(db);
  return { keys: rows, keyCount: rows[0]?.keyCount ?? 0 };
}
