import type { Queryable } from './queryable.ts';

/** Runs `work` in the transaction that `db` is already, or in a new one. */
export function inTransaction<T>(db: Queryable, work: (trx: Queryable) => Promise<T>): Promise<T> {
  return db.isTransaction ? work(db) : db.transaction().execute(work);
}
