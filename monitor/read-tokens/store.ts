/** Read tokens: the digest and the site of each. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

export interface ReadToken {
  id: string;
  name: string;
  createdBy: string;
  createdAtMs: number;
  /** Null: it has no end. */
  expiresAtMs: number | null;
  lastUsedAtMs: number | null;
}

const ms = (column: string) => sql`(extract(epoch from ${sql.ref(column)}) * 1000)::float8`;

/** Tokens of a site that were not revoked, the newest first. */
export async function listTokens(db: Queryable, siteId: number): Promise<ReadToken[]> {
  const { rows } = await sql<ReadToken>`
    select id, name, created_by, ${ms('created_at')} as created_at_ms, ${ms('expires_at')} as expires_at_ms,
      ${ms('last_used_at')} as last_used_at_ms
    from read_tokens where site_id = ${siteId} and revoked_at is null
    order by created_at desc, id limit 200`.execute(db);
  return rows;
}

export async function insertToken(
  trx: Queryable,
  token: {
    id: string;
    siteId: number;
    name: string;
    digest: Buffer;
    createdBy: string;
    expiresAt: Date | null;
  },
): Promise<void> {
  await sql`
    insert into read_tokens (id, site_id, name, digest, created_by, expires_at)
    values (${token.id}, ${token.siteId}, ${token.name}, ${token.digest}, ${token.createdBy}, ${token.expiresAt})`.execute(
    trx,
  );
}

/** Null: the site has no such token. */
export async function revokeToken(
  trx: Queryable,
  siteId: number,
  id: string,
): Promise<{ name: string } | null> {
  const { rows } = await sql<{ name: string }>`
    update read_tokens set revoked_at = svc_now() where id = ${id} and site_id = ${siteId} and revoked_at is null
    returning name`.execute(trx);
  return rows[0] ?? null;
}

/** A token that may be used now. */
export async function findToken(
  db: Queryable,
  id: string,
): Promise<{ siteId: number; digest: Buffer } | null> {
  const { rows } = await sql<{ siteId: number; digest: Buffer }>`
    select site_id, digest from read_tokens
    where id = ${id} and revoked_at is null and (expires_at is null or expires_at > svc_now())`.execute(db);
  return rows[0] ?? null;
}

/** At most once a minute, so that reading writes next to nothing. */
export async function noteUse(db: Queryable, id: string): Promise<void> {
  await sql`
    update read_tokens set last_used_at = svc_now()
    where id = ${id}
      and (last_used_at is null or last_used_at < svc_now() - interval '1 minute')`.execute(db);
}
