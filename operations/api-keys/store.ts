import { sql } from 'kysely';
import type pg from 'pg';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { IssueKeyInput } from './issue-key.ts';
import type { ReachableTenant } from './verify-key.ts';

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
}

// Reads the accounts' rows as well: membership and grants are checked in the statement that finds the key, so no call
// can slip in between two answers. The payer tenant comes first where the key reaches it.
const findText = `
  select k.key_id as "keyId", k.digest, k.scope, k.organization_id as "organizationId", k.person_id as "personId",
    k.revoked_at is null and (k.expires_at is null or k.expires_at > svc_now()) and p.deactivated_at is null as "isLive",
    k.last_used_at is null or k.last_used_at < svc_now() - interval '60 seconds' as "isUseStale",
    coalesce((
      select json_agg(json_build_object('id', t.id, 'name', t.name, 'slug', t.slug, 'status', t.status,
          'currency', t.currency,
          'createdAt', to_char(t.created_at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'))
        order by t.is_payer desc, t.id)
      from tenants t
      where t.organization_id = k.organization_id
        and exists (select 1 from memberships m where m.organization_id = k.organization_id and m.person_id = k.person_id)
        and (k.tenant_access = 'all' or exists (
          select 1 from api_key_tenants g where g.key_id = k.key_id and g.tenant_id = t.id))), '[]') as tenants
  from api_keys k join people p on p.id = k.person_id
  where k.key_id = any($1::text[])`;

export async function findKeys(pool: pg.Pool, keyIds: readonly string[]): Promise<KeyRow[]> {
  return (await pool.query<KeyRow>({ name: 'api-keys.find', text: findText, values: [keyIds] })).rows;
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
}

/** What the audit trail says about a key. */
export async function findSubject(
  db: Queryable,
  keyId: string,
): Promise<{ name: string; scope: string; organizationId: number; personId: number } | null> {
  const { rows } = await sql<{ name: string; scope: string; organizationId: number; personId: number }>`
    select name, scope, organization_id as "organizationId", person_id as "personId"
    from api_keys where key_id = ${keyId}`.execute(db);
  return rows[0] ?? null;
}

/** What a key is told about itself. */
export interface KeyFacts {
  name: string;
  tenantAccess: 'all' | 'selected';
  createdAt: Date;
  expiresAt: Date | null;
  lastUsedAt: Date | null;
}

export async function findFacts(db: Queryable, keyId: string): Promise<KeyFacts | null> {
  const { rows } = await sql<KeyFacts>`
    select name, tenant_access as "tenantAccess", created_at as "createdAt", expires_at as "expiresAt",
      last_used_at as "lastUsedAt" from api_keys where key_id = ${keyId}`.execute(db);
  return rows[0] ?? null;
}

export async function listKeys(
  db: Queryable,
  personId: number,
  organizationIds: readonly number[],
): Promise<KeySummary[]> {
  const { rows } = await sql<KeySummary>`
    select k.key_id as "keyId", k.name, k.scope, k.person_id as "personId", p.name as "personName",
      k.organization_id as "organizationId", o.name as "organizationName", k.created_at as "createdAt", k.expires_at as "expiresAt",
      k.revoked_at as "revokedAt", k.last_used_at as "lastUsedAt",
      k.revoked_at is null and (k.expires_at is null or k.expires_at > svc_now()) as "isActive",
      case when k.tenant_access = 'selected' then coalesce((
        select json_agg(t.name order by t.id) from api_key_tenants g join tenants t on t.id = g.tenant_id
        where g.key_id = k.key_id), '[]') end as "tenantNames",
      case when k.tenant_access = 'selected' then coalesce((
        select json_agg(g.tenant_id order by g.tenant_id) from api_key_tenants g where g.key_id = k.key_id), '[]')
      end as "tenantIds"
    from api_keys k join people p on p.id = k.person_id join organizations o on o.id = k.organization_id
    where k.person_id = ${personId} or k.organization_id = any(${[...organizationIds]}::bigint[])
    order by "isActive" desc, k.created_at desc, k.key_id`.execute(db);
  return rows;
}

/**
 * Once a minute at most, also when many processes serve the key: the condition is in the statement. A key whose row is
 * locked is left for its next use, because every call of it would wait here with a connection in its hand.
 */
export async function noteUse(db: Queryable, keyId: string): Promise<void> {
  await sql`update api_keys set last_used_at = svc_now() where key_id = (
    select key_id from api_keys
    where key_id = ${keyId} and (last_used_at is null or last_used_at < svc_now() - interval '60 seconds')
    for no key update skip locked)`.execute(db);
}

/** How many active keys a person has. */
export async function countActive(db: Queryable, personId: number): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*) as count from api_keys
    where person_id = ${personId} and revoked_at is null and (expires_at is null or expires_at > svc_now())`.execute(
    db,
  );
  return rows[0]!.count;
}

/** The person's active keys, with the person locked until the transaction ends. */
export async function lockActiveKeys(tx: Queryable, personId: number): Promise<number> {
  await sql`select 1 from people where id = ${personId} for update`.execute(tx);
  const { rows } = await sql<{ count: number }>`
    select count(*) as count from api_keys
    where person_id = ${personId} and revoked_at is null and (expires_at is null or expires_at > svc_now())`.execute(
    tx,
  );
  return rows[0]!.count;
}

/** False when a named tenant is not the organization's. */
export async function insertKey(
  tx: Queryable,
  key: IssueKeyInput & { keyId: string; digest: Buffer },
): Promise<boolean> {
  await sql`insert into api_keys (key_id, digest, name, scope, organization_id, person_id, tenant_access, expires_at)
    values (${key.keyId}, ${key.digest}, ${key.name}, ${key.scope}, ${key.organizationId}, ${key.personId},
      ${key.tenantIds === null ? 'all' : 'selected'}, ${key.expiresAt ?? null})`.execute(tx);
  if (key.tenantIds === null) return true;
  const tenantIds = [...new Set(key.tenantIds)];
  const { rows } = await sql`
    insert into api_key_tenants (key_id, tenant_id)
    select ${key.keyId}, id from tenants
    where id = any(${tenantIds}::bigint[]) and organization_id = ${key.organizationId} returning 1`.execute(
    tx,
  );
  return rows.length === tenantIds.length;
}

/** A key that may do what another active one of this person may; false when there is no such key. */
export async function copyKey(
  tx: Queryable,
  keyId: string,
  fresh: { keyId: string; digest: Buffer; personId: number; organizationIds: readonly number[] },
): Promise<boolean> {
  const { rows } = await sql`
    insert into api_keys (key_id, digest, name, scope, organization_id, person_id, tenant_access, expires_at)
    select ${fresh.keyId}, ${fresh.digest}, name, scope, organization_id, person_id, tenant_access, expires_at
    from api_keys
    where key_id = ${keyId} and person_id = ${fresh.personId}
      and organization_id = any(${[...fresh.organizationIds]}::bigint[])
      and revoked_at is null and (expires_at is null or expires_at > svc_now())
    returning 1`.execute(tx);
  await sql`insert into api_key_tenants (key_id, tenant_id)
    select ${fresh.keyId}, tenant_id from api_key_tenants where key_id = ${keyId} and ${rows.length === 1}`.execute(
    tx,
  );
  return rows.length === 1;
}

/** Lets a key expire so many hours from now, or when it would have anyway. */
export async function expireKey(tx: Queryable, keyId: string, hours: number): Promise<void> {
  await sql`update api_keys
    set expires_at = least(expires_at, svc_now() + make_interval(hours => ${hours}::int))
    where key_id = ${keyId}`.execute(tx);
}

/** Locks an active key; false when no such key belongs to these people. Null: any owner. */
export async function lockActiveKey(
  tx: Queryable,
  keyId: string,
  whose: { personId: number; organizationIds: readonly number[] } | null,
): Promise<boolean> {
  const { rows } = await sql`
    select 1 from api_keys
    where key_id = ${keyId} and revoked_at is null and (expires_at is null or expires_at > svc_now())
      and (${whose === null} or person_id = ${whose?.personId ?? 0}
        or organization_id = any(${[...(whose?.organizationIds ?? [])]}::bigint[]))
    for update`.execute(tx);
  return rows.length === 1;
}

/** Takes all grants but these; a key for all tenants becomes one for these. */
export async function keepGrants(tx: Queryable, keyId: string, tenantIds: readonly number[]): Promise<void> {
  await sql`insert into api_key_tenants (key_id, tenant_id)
    select k.key_id, t.id from api_keys k join tenants t on t.organization_id = k.organization_id
    where k.key_id = ${keyId} and k.tenant_access = 'all' on conflict do nothing`.execute(tx);
  await sql`update api_keys set tenant_access = 'selected' where key_id = ${keyId}`.execute(tx);
  await sql`delete from api_key_tenants
    where key_id = ${keyId} and tenant_id <> all(${[...tenantIds]}::bigint[])`.execute(tx);
}

export async function revokeOwnKey(
  db: Queryable,
  keyId: string,
  personId: number,
  ownedOrganizationIds: readonly number[],
): Promise<boolean> {
  const { rows } = await sql`
    update api_keys set revoked_at = svc_now()
    where key_id = ${keyId} and revoked_at is null
      and (person_id = ${personId} or organization_id = any(${[...ownedOrganizationIds]}::bigint[]))
    returning 1`.execute(db);
  return rows.length === 1;
}

export async function revokeAnyKey(db: Queryable, keyId: string): Promise<boolean> {
  const { rows } = await sql`
    update api_keys set revoked_at = svc_now() where key_id = ${keyId} and revoked_at is null returning 1`.execute(
    db,
  );
  return rows.length === 1;
}

/** The ids of the keys that it revoked. */
export async function revokeNamed(db: Queryable, personId: number, name: string): Promise<string[]> {
  const { rows } = await sql<{ keyId: string }>`
    update api_keys set revoked_at = svc_now()
    where person_id = ${personId} and name = ${name} and revoked_at is null
    returning key_id as "keyId"`.execute(db);
  return rows.map((row) => row.keyId);
}

/** The ids of the keys that were revoked. */
export async function revokeAllOf(tx: Queryable, personId: number): Promise<string[]> {
  const { rows } = await sql<{ keyId: string }>`
    update api_keys set revoked_at = svc_now()
    where person_id = ${personId} and revoked_at is null returning key_id as "keyId"`.execute(tx);
  return rows.map((row) => row.keyId);
}
