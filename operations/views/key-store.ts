/** API keys with the people, organizations and tenants that they reach. */

import { sql } from 'kysely';
import type pg from 'pg';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { type AccessFacts, accessColumns, type TenantStatus } from './tenant-store.ts';

export interface ReachableTenant {
  id: number;
  name: string;
  slug: string;
  status: TenantStatus;
  currency: string;
  /** RFC 3339. */
  createdAt: string;
}

export interface KeyRow {
  keyId: string;
  digest: Buffer;
  scope: 'read' | 'full';
  organizationId: number;
  personId: number;
  /** Neither revoked nor expired, and its person is active. */
  isLive: boolean;
  isUseStale: boolean;
  tenants: ReachableTenant[];
  /** Of the first tenant; null without one. */
  access: AccessFacts | null;
  /** How often the catalogue has changed, as `readVersion` of the catalogue has it. */
  catalogVersion: number;
}

// Reads the accounts' rows as well: membership and grants are checked in the statement that finds the key, so no call
// can slip in between two answers. The payer tenant comes first where the key reaches it; whether it may use the API is
// what nearly every call asks next, and whether the catalogue has changed all that a call of it does. Keys are compared with a
// subquery: PostgreSQL does not know its length, so it does not plan anew for lists of one.
export const findText = `
  select k.key_id as "keyId", k.digest, k.scope, k.organization_id as "organizationId", k.person_id as "personId",
    k.revoked_at is null and (k.expires_at is null or k.expires_at > svc_now()) and p.deactivated_at is null as "isLive",
    k.last_used_at is null or k.last_used_at < svc_now() - interval '60 seconds' as "isUseStale",
    coalesce(reached.tenants, '[]') as tenants,
    (select row_to_json(facts) from (${accessColumns} where t.id = (reached.tenants -> 0 ->> 'id')::bigint) facts) as access,
    (select coalesce(sum(weight), 0)::bigint from catalog_changes) as "catalogVersion"
  from api_keys k join people p on p.id = k.person_id
  cross join lateral (
    select json_agg(json_build_object('id', t.id, 'name', t.name, 'slug', t.slug, 'status', t.status,
        'currency', t.currency,
        'createdAt', to_char(t.created_at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'))
      order by t.is_payer desc, t.id) as tenants
    from tenants t
    where t.organization_id = k.organization_id
      and exists (select 1 from memberships m where m.organization_id = k.organization_id and m.person_id = k.person_id)
      and (k.tenant_access = 'all' or exists (
        select 1 from api_key_tenants g where g.key_id = k.key_id and g.tenant_id = t.id))) reached
  where k.key_id = any((select $1::text[])::text[])`;

/** `gateway`: the one that can charge cards. */
export async function findKeys(pool: pg.Pool, keyIds: readonly string[], gateway: string): Promise<KeyRow[]> {
  return (await pool.query<KeyRow>(findText, [keyIds, gateway])).rows;
}

/** A key as its owner sees it in a list. */
export interface KeySummary {
  keyId: string;
  name: string;
  scope: 'read' | 'full';
  personId: number;
  personName: string;
  organizationId: number;
  organizationName: string;
  /** null: all tenants of the organization. */
  tenantNames: string[] | null;
  /** Of the same, in the same order. */
  tenantIds: number[] | null;
  createdAt: Date;
  expiresAt: Date | null;
  revokedAt: Date | null;
  lastUsedAt: Date | null;
  isActive: boolean;
  /** The key that was made in its place; it goes on beside it for a day. */
  replacedBy: string | null;
}

const summaryText = sql`
  select k.key_id, k.name, k.scope, k.person_id, p.name as person_name, k.organization_id,
    o.name as organization_name, k.created_at, k.expires_at, k.revoked_at, k.last_used_at,
    k.revoked_at is null and (k.expires_at is null or k.expires_at > svc_now()) as is_active, k.replaced_by,
    case when k.tenant_access = 'selected' then coalesce((
      select json_agg(t.name order by t.id) from api_key_tenants g join tenants t on t.id = g.tenant_id
      where g.key_id = k.key_id), '[]') end as tenant_names,
    case when k.tenant_access = 'selected' then coalesce((
      select json_agg(g.tenant_id order by g.tenant_id) from api_key_tenants g where g.key_id = k.key_id), '[]')
    end as tenant_ids
  from api_keys k join people p on p.id = k.person_id join organizations o on o.id = k.organization_id`;
/** Active ones first, then newest. */
const summaryOrder = sql`order by is_active desc, k.created_at desc, k.key_id`;

export async function listKeys(
  db: Queryable,
  personId: number,
  organizationIds: readonly number[],
): Promise<KeySummary[]> {
  const { rows } = await sql<KeySummary>`${summaryText}
    where k.person_id = ${personId} or k.organization_id = any(${[...organizationIds]}::bigint[])
    ${summaryOrder}`.execute(db);
  return rows;
}

/**
 * The keys of a workspace that a key sees: of its organization, and of its person unless that is an owner; each reaches the
 * workspace and none that the key does not reach. One for all workspaces is seen by such a one alone.
 */
export async function listKeysBelow(
  db: Queryable,
  above: { keyId: string; tenantIds: readonly number[] },
  tenantId: number,
): Promise<KeySummary[]> {
  const { rows } = await sql<KeySummary>`${summaryText}
    join api_keys c on c.key_id = ${above.keyId} and c.organization_id = k.organization_id
    where (k.person_id = c.person_id or exists (select from memberships m
        where m.organization_id = c.organization_id and m.person_id = c.person_id and m.role = 'owner'))
      and case when k.tenant_access = 'all' then c.tenant_access = 'all' else
        exists (select from api_key_tenants g where g.key_id = k.key_id and g.tenant_id = ${tenantId})
        and not exists (select from api_key_tenants g
          where g.key_id = k.key_id and g.tenant_id <> all(${[...above.tenantIds]}::bigint[])) end
    ${summaryOrder}`.execute(db);
  return rows;
}

/** What a key that makes another one may pass on. */
interface Minter {
  scope: 'read' | 'full';
  expiresAt: Date | null;
  /** Its person owns the organization. */
  isOwner: boolean;
  /** It reaches all of the named workspaces. */
  reachesAll: boolean;
}

/** A key of the organization; null for any other. */
export async function findMinter(
  tx: Queryable,
  keyId: string,
  of: { organizationId: number; tenantIds: readonly number[] },
): Promise<Minter | null> {
  const tenantIds = [...new Set(of.tenantIds)];
  const { rows } = await sql<Minter>`
    select k.scope, k.expires_at, exists (select from memberships m where m.organization_id = k.organization_id
        and m.person_id = k.person_id and m.role = 'owner') as is_owner,
      (select count(*) from tenants t where t.organization_id = k.organization_id and t.id = any(${tenantIds}::bigint[])
        and (k.tenant_access = 'all' or exists (select from api_key_tenants g
          where g.key_id = k.key_id and g.tenant_id = t.id))) = ${tenantIds.length} as reaches_all
    from api_keys k where k.key_id = ${keyId} and k.organization_id = ${of.organizationId}`.execute(tx);
  return rows[0] ?? null;
}

/** The organization of an active key whose person owns it; null for any other key. */
export async function findOwnersKey(
  db: Queryable,
  keyId: string,
): Promise<{ organizationId: number; reachesAll: boolean } | null> {
  const { rows } = await sql<{ organizationId: number; reachesAll: boolean }>`
    select k.organization_id, k.tenant_access = 'all' as reaches_all from api_keys k
    join memberships m on m.organization_id = k.organization_id and m.person_id = k.person_id and m.role = 'owner'
    where k.key_id = ${keyId} and k.revoked_at is null and (k.expires_at is null or k.expires_at > svc_now())`.execute(
    db,
  );
  return rows[0] ?? null;
}
