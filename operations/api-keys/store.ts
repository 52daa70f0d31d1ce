import { sql } from 'kysely';
import { lockPerson } from '#operations/accounts/index.ts';
import { organizationTenants } from '#operations/views/tenant-store.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';

/** What the audit trail says about a key. */
export async function findSubject(
  db: Queryable,
  keyId: string,
): Promise<{ name: string; scope: string; organizationId: number; personId: number } | null> {
  const { rows } = await sql<{ name: string; scope: string; organizationId: number; personId: number }>`
    select name, scope, organization_id, person_id
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
    select name, tenant_access, created_at, expires_at,
      last_used_at from api_keys where key_id = ${keyId}`.execute(db);
  return rows[0] ?? null;
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
  await lockPerson(tx, personId);
  const { rows } = await sql<{ count: number }>`
    select count(*) as count from api_keys
    where person_id = ${personId} and revoked_at is null and (expires_at is null or expires_at > svc_now())`.execute(
    tx,
  );
  return rows[0]!.count;
}

/** Whether a key that expires then would be dead at once. */
export async function isPast(tx: Queryable, moment: Date): Promise<boolean> {
  const { rows } = await sql<{
    isPast: boolean;
  }>`select ${moment}::timestamptz <= svc_now() as is_past`.execute(tx);
  return rows[0]!.isPast;
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
    select ${key.keyId}, t.id from (${organizationTenants(key.organizationId)}) t
    where t.id = any(${tenantIds}::bigint[]) returning 1`.execute(tx);
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
    select ${fresh.keyId}, ${fresh.digest}, name, scope, organization_id, person_id, tenant_access,
      svc_now() + (expires_at - created_at)
    from api_keys
    where key_id = ${keyId} and person_id = ${fresh.personId}
      and organization_id = any(${[...fresh.organizationIds]}::bigint[])
      and revoked_at is null and replaced_by is null and (expires_at is null or expires_at > svc_now())
    returning 1`.execute(tx);
  await sql`insert into api_key_tenants (key_id, tenant_id)
    select ${fresh.keyId}, tenant_id from api_key_tenants where key_id = ${keyId} and ${rows.length === 1}`.execute(
    tx,
  );
  return rows.length === 1;
}

/** Notes the key that takes its place, and lets it expire so many hours from now, or when it would have anyway. */
export async function replaceKey(
  tx: Queryable,
  keyId: string,
  replacedBy: string,
  hours: number,
): Promise<void> {
  await sql`update api_keys
    set replaced_by = ${replacedBy}, expires_at = least(expires_at, svc_now() + make_interval(hours => ${hours}::int))
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
    select k.key_id, t.id from api_keys k
    cross join lateral (${organizationTenants(sql`k.organization_id`)}) t
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
    returning key_id`.execute(db);
  return rows.map((row) => row.keyId);
}

/** The ids of the keys that were revoked. */
export async function revokeAllOf(tx: Queryable, personId: number): Promise<string[]> {
  const { rows } = await sql<{ keyId: string }>`
    update api_keys set revoked_at = svc_now()
    where person_id = ${personId} and revoked_at is null returning key_id`.execute(tx);
  return rows.map((row) => row.keyId);
}

/** An API key: what it is made of, and what it reaches. */

export interface IssueKeyInput {
  organizationId: number;
  /** For whom the key acts. */
  personId: number;
  name: string;
  scope: 'read' | 'full';
  /** null: all tenants of the organization, also later ones. */
  tenantIds: readonly number[] | null;
  expiresAt?: Date | null;
}
