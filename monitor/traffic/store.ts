/** Reads of traffic outside of the facts. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

export { nameSensors as findSensors } from '#monitor/views/index.ts';

/** The database's time, seconds since 1970. */
export async function readNowSecond(db: Queryable): Promise<number> {
  const { rows } = await sql<{
    now: number;
  }>`select extract(epoch from svc_now())::float8 as now`.execute(db);
  return rows[0]!.now;
}
