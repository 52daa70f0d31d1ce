import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

export interface DestroyNoticeRow {
  id: number;
  clusterId: number;
  serverId: number;
  macAddresses: string[];
  destroyedAt: Date;
  attempts: number;
  lastError: string | null;
  acknowledgedAt: Date | null;
}

const columns = sql`
  id, cluster_id, server_id, mac_addresses, destroyed_at, attempts, last_error,
  acknowledged_at`;

/** The new notice's id; null when this server has one. */
export async function insertNotice(
  tx: Queryable,
  notice: { clusterId: number; serverId: number; macAddresses: readonly string[] },
): Promise<number | null> {
  const { rows } = await sql<{ id: number }>`
    insert into destroy_notices (cluster_id, server_id, mac_addresses, destroyed_at)
    values (${notice.clusterId}, ${notice.serverId}, ${[...notice.macAddresses]}, svc_now())
    on conflict (server_id) do nothing returning id`.execute(tx);
  return rows[0]?.id ?? null;
}

export async function findNotice(db: Queryable, id: number): Promise<DestroyNoticeRow | null> {
  const { rows } =
    await sql<DestroyNoticeRow>`select ${columns} from destroy_notices where id = ${id}`.execute(db);
  return rows[0] ?? null;
}

export async function listPending(db: Queryable): Promise<DestroyNoticeRow[]> {
  const { rows } = await sql<DestroyNoticeRow>`
    select ${columns} from destroy_notices where acknowledged_at is null order by id`.execute(db);
  return rows;
}

/** Records an attempt: acknowledged when `error` is null. */
export async function noteAttempt(db: Queryable, id: number, error: string | null): Promise<void> {
  await sql`update destroy_notices set attempts = attempts + 1, last_error = ${error},
      acknowledged_at = case when ${error === null} then coalesce(acknowledged_at, svc_now()) else acknowledged_at end
    where id = ${id}`.execute(db);
}
