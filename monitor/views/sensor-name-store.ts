/** What sensors are called, for figures that name them by their ids. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

export async function nameSensors(
  db: Queryable,
  ids: readonly number[],
): Promise<Map<number, { hostName: string; isRevoked: boolean }>> {
  if (ids.length === 0) return new Map();
  const { rows } = await sql<{ id: number; hostName: string; isRevoked: boolean }>`
    select id, host_name as "hostName", revoked_at is not null as "isRevoked" from sensors
    where id = any(${[...ids]}::bigint[])`.execute(db);
  return new Map(rows.map((row) => [row.id, row]));
}
