import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { SecretColumn } from '#service-kit/secrets/index.ts';
import type { ConnectionView } from './connection.ts';

/** The one row of each table. */
export const onlyRow = 1;
export const connectionToken: SecretColumn = {
  table: 'operations_connection',
  key: 'id',
  sealed: 'sealed_token',
  clear: 'clear_token',
};
export const noticeSecret: SecretColumn = {
  table: 'notice_secret',
  key: 'id',
  sealed: 'sealed_secret',
  clear: 'clear_secret',
};

export interface StoredConnection extends ConnectionView {
  sealedToken: Buffer | null;
  /** Incremented when the base URL or the token changes. */
  revision: number;
}

export async function readConnection(db: Queryable): Promise<StoredConnection | null> {
  const { rows } = await sql<StoredConnection>`
    select base_url, sealed_token, revision, is_enabled, is_sync_automatic, project_name, capabilities,
           (extract(epoch from checked_at) * 1000)::float8 as checked_at_ms, check_error
    from operations_connection`.execute(db);
  return rows[0] ?? null;
}

/** Serializes saves until the transaction ends, so that comparisons with the previous values stay valid. */
export async function lockConnection(trx: Queryable): Promise<void> {
  await sql`lock table operations_connection, notice_secret in share row exclusive mode`.execute(trx);
}

/**
 * `isSameTarget`: neither the base URL nor the token changes. A new target may be another project, so stored
 * permissions are cleared.
 */
export async function writeConnection(
  trx: Queryable,
  values: {
    baseUrl: string;
    sealedToken: Buffer;
    isEnabled: boolean;
    isSyncAutomatic: boolean;
    isSameTarget: boolean;
  },
): Promise<void> {
  const isSame = values.isSameTarget;
  await sql`
    insert into operations_connection as held (base_url, sealed_token, is_enabled, is_sync_automatic)
    values (${values.baseUrl}, ${values.sealedToken}, ${values.isEnabled}, ${values.isSyncAutomatic})
    on conflict (id) do update set base_url = excluded.base_url, sealed_token = excluded.sealed_token, clear_token = null,
      is_enabled = excluded.is_enabled, is_sync_automatic = excluded.is_sync_automatic, updated_at = svc_now(),
      revision = held.revision + case when ${isSame} then 0 else 1 end,
      project_name = case when ${isSame} then held.project_name end,
      capabilities = case when ${isSame} then held.capabilities else '{}' end,
      checked_at = case when ${isSame} then held.checked_at end,
      check_error = case when ${isSame} then held.check_error end`.execute(trx);
}

/** Stores the result of a discovery, unless the connection was changed meanwhile. */
export async function writeCheck(
  db: Queryable,
  revision: number,
  result: { projectName: string; capabilities: Record<string, true | number> } | { error: string },
): Promise<void> {
  if ('error' in result) {
    await sql`update operations_connection set checked_at = svc_now(), check_error = ${result.error}
      where revision = ${revision}`.execute(db);
    return;
  }
  await sql`
    update operations_connection set checked_at = svc_now(), check_error = null,
      project_name = ${result.projectName}, capabilities = ${JSON.stringify(result.capabilities)}::jsonb
    where revision = ${revision}`.execute(db);
}

/** Null: no secret exists yet. */
export async function readNoticeSecret(db: Queryable): Promise<{ sealed: Buffer | null } | null> {
  const { rows } = await sql<{ sealed: Buffer | null }>`
    select sealed_secret as sealed from notice_secret`.execute(db);
  return rows[0] ?? null;
}

export interface NoticeSecretStatus {
  createdAtMs: number;
  refusedCount: number;
  lastRefusedAtMs: number | null;
}

export async function readNoticeStatus(db: Queryable): Promise<NoticeSecretStatus | null> {
  const { rows } = await sql<NoticeSecretStatus>`
    select (extract(epoch from created_at) * 1000)::float8 as created_at_ms, refused_count,
           (extract(epoch from last_refused_at) * 1000)::float8 as last_refused_at_ms
    from notice_secret`.execute(db);
  return rows[0] ?? null;
}

export async function writeNoticeSecret(trx: Queryable, sealed: Buffer): Promise<void> {
  await sql`
    insert into notice_secret (sealed_secret) values (${sealed})
    on conflict (id) do update set sealed_secret = excluded.sealed_secret, clear_secret = null, created_at = svc_now(),
      refused_count = 0, last_refused_at = null`.execute(trx);
}

export async function addRefusals(db: Queryable, count: number): Promise<void> {
  await sql`update notice_secret
    set refused_count = refused_count + ${count}, last_refused_at = svc_now()`.execute(db);
}
