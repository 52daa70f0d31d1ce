import type { Queryable } from '#service-kit/postgres/index.ts';
import type { Lease } from './hold-lease.ts';
import { holdsTerm } from './store.ts';

/** Thrown where another process may have taken over; nothing was written. */
export class LeaseLost extends Error {}

/** A transaction that commits only under the lease's term; throws `LeaseLost`. `prepare` comes before the term is asked for. */
export async function underLease<T>(
  db: Queryable,
  lease: Pick<Lease, 'name' | 'term'>,
  work: (trx: Queryable) => Promise<T>,
  prepare?: (trx: Queryable) => Promise<void>,
): Promise<T> {
  return db.transaction().execute(async (trx) => {
    await prepare?.(trx);
    if (!(await holdsTerm(trx, lease.name, lease.term))) throw new LeaseLost();
    return work(trx);
  });
}

/** The same for work that another process will do anyway: null where the lease is lost. */
export async function ifHeld<T>(...given: Parameters<typeof underLease<T>>): Promise<T | null> {
  try {
    return await underLease(...given);
  } catch (error) {
    if (error instanceof LeaseLost) return null;
    throw error;
  }
}
