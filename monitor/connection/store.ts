import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { ConnectionView } from './connection.ts';

export interface StoredConnection extends ConnectionView {
  token: string;
}

export async function readConnection(db: Queryable): Promise<StoredConnection | null> {
  const { rows } = await sql<StoredConnection>`
    select base_url as "baseUrl", token, is_enabled as "isEnabled",
           is_sync_automatic as "isSyncAutomatic", project_name as "projectName", capabilities,
           (extract(epoch from checked_at) * 1000)::float8 as "checkedAtMs", check_error as "checkError"
    from operations_connection`.execute(db);
  return rows[0] ?? null;
}

/** Another base URL or token is another project until a discovery says otherwise, so what was known is forgotten. */
export async function writeConnection(
  db: Queryable,
  values: { baseUrl: string; token: string; isEnabled: boolean; isSyncAutomatic: boolean },
): Promise<void> {
  await sql`
    insert into operations_connection as held (base_url, token, is_enabled, is_sync_automatic)
    values (${values.baseUrl}, ${values.token}, ${values.isEnabled}, ${values.isSyncAutomatic})
    on conflict (id) do update set base_url = excluded.base_url, token = excluded.token,
      is_enabled = excluded.is_enabled, is_sync_automatic = excluded.is_sync_automatic, updated_at = svc_now(),
      project_name = case when held.base_url = excluded.base_url and held.token = excluded.token then held.project_name end,
      capabilities = case when held.base_url = excluded.base_url and held.token = excluded.token then held.capabilities else '{}' end,
      checked_at = case when held.base_url = excluded.base_url and held.token = excluded.token then held.checked_at end,
      check_error = case when held.base_url = excluded.base_url and held.token = excluded.token then held.check_error end`.execute(
    db,
  );
}

/** Keeps what a discovery said, unless the connection was changed while it ran. */
export async function writeCheck(
  db: Queryable,
  checked: { baseUrl: string; token: string },
  result: { projectName: string; capabilities: Record<string, true | number> } | { error: string },
): Promise<void> {
  const isSame = sql`base_url = ${checked.baseUrl} and token = ${checked.token}`;
  if ('error' in result) {
    await sql`update operations_connection set checked_at = svc_now(), check_error = ${result.error} where ${isSame}`.execute(
      db,
    );
    return;
  }
  await sql`
    update operations_connection set checked_at = svc_now(), check_error = null,
      project_name = ${result.projectName}, capabilities = ${JSON.stringify(result.capabilities)}::jsonb
    where ${isSame}`.execute(db);
}

export async function readNoticeSecret(db: Queryable): Promise<string | null> {
  const { rows } = await sql<{ secret: string }>`select secret from notice_secret`.execute(db);
  return rows[0]?.secret ?? null;
}

export interface NoticeSecretStatus {
  createdAtMs: number;
  refusedCount: number;
  lastRefusedAtMs: number | null;
}

export async function readNoticeStatus(db: Queryable): Promise<NoticeSecretStatus | null> {
  const { rows } = await sql<NoticeSecretStatus>`
    select (extract(epoch from created_at) * 1000)::float8 as "createdAtMs", refused_count as "refusedCount",
           (extract(epoch from last_refused_at) * 1000)::float8 as "lastRefusedAtMs"
    from notice_secret`.execute(db);
  return rows[0] ?? null;
}

export async function writeNoticeSecret(db: Queryable, secret: string): Promise<void> {
  await sql`
    insert into notice_secret as held (secret) values (${secret})
    on conflict (id) do update set secret = excluded.secret, created_at = svc_now(), refused_count = 0,
      last_refused_at = null where held.secret <> excluded.secret`.execute(db);
}

export async function addRefusals(db: Queryable, count: number): Promise<void> {
  await sql`update notice_secret set refused_count = refused_count + ${count}, last_refused_at = svc_now()`.execute(
    db,
  );
}
