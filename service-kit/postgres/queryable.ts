import { type Kysely, sql } from 'kysely';

/** Rows are typed where they are read (`sql<Row>`), so the schema parameter stays open. */
// biome-ignore lint/suspicious/noExplicitAny: kysely's way to say "any table".
export type Queryable = Kysely<any>;

/** The database's clock, to which every stored moment belongs; tests can move it. */
export async function readNowMs(db: Queryable): Promise<number> {
  const { rows } = await sql<{ now: Date }>`select svc_now() as now`.execute(db);
  return rows[0]!.now.getTime();
}

/** Runs `work` in the transaction that `db` is already, or in a new one. */
export function inTransaction<T>(db: Queryable, work: (trx: Queryable) => Promise<T>): Promise<T> {
  return db.isTransaction ? work(db) : db.transaction().execute(work);
}
