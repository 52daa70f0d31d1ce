import { sql } from 'kysely';
import type { Queryable } from './queryable.ts';

/** The database's clock, to which every stored moment belongs; tests can move it. */
export async function readNowMs(db: Queryable): Promise<number> {
  const { rows } = await sql<{ now: Date }>`select svc_now() as now`.execute(db);
  return rows[0]!.now.getTime();
}
