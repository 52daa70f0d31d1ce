/** What traffic reads beside the facts. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

export async function findSensors(
  db: Queryable,
  ids: readonly number[],
): Promise<Map<number, { hostName: string; isRevoked: boolean }>> {
  if (ids.length === 0) return new Map();
  const { rows } = await sql<{ id: number; hostName: string; isRevoked: boolean }>`
    select id, host_name as "hostName", revoked_at is not null as "isRevoked" from sensors
    where id = any(${[...ids]}::bigint[])`.execute(db);
  return new Map(rows.map((row) => [row.id, row]));
}

/** The database's time, seconds since 1970. */
export async function readNowSecond(db: Queryable): Promise<number> {
  const { rows } = await sql<{
    now: number;
  }>`select extract(epoch from svc_now())::float8 as now`.execute(db);
  return rows[0]!.now;
}
