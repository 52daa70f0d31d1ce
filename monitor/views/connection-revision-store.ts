/** Which connection to operations counts now. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

/** Grows when the base URL or the token changes; null without an enabled connection. */
export async function readConnectionRevision(reader: Queryable): Promise<number | null> {
  const { rows } = await sql<{ revision: number }>`
    select revision from operations_connection where is_enabled`.execute(reader);
  return rows[0]?.revision ?? null;
}
