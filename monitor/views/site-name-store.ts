/** What sites are called, for rows that name them by their ids. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

export async function nameSites(db: Queryable, ids: readonly number[]): Promise<Map<number, string>> {
  if (ids.length === 0) return new Map();
  const { rows } = await sql<{ id: number; name: string }>`
    select id, name from sites where id = any(${[...ids]}::bigint[])`.execute(db);
  return new Map(rows.map(({ id, name }) => [id, name]));
}
