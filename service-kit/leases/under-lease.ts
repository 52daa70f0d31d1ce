import type { Queryable } from '#service-kit/postgres/index.ts';
import type { Lease } from './hold-lease.ts';
import { holdsTerm } from './store.ts';

/** Thrown where another process may have taken over; nothing was written. */
export class LeaseLost extends Error {}

/** A transaction that commits only under the lease's term; throws `LeaseLost`. `prepare` comes before the term is asked for. */
export async function underLease(
  db: Queryable,
  lease: Lease,
  work: (trx: Queryable) => Promise<void>,
  prepare?: (trx: Queryable) => Promise<void>,
): Promise<void> {
  await db.transaction().execute(async (trx) => {
    await prepare?.(trx);
    if (!(await holdsTerm(trx, lease.name, lease.term))) throw new LeaseLost();
    await work(trx);
  });
}
