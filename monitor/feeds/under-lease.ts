import { holdsTerm, type Lease } from '#service-kit/leases/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';

/** A tick that another process may take over ends here, without a trace. */
export class LeaseLost extends Error {}

/** A transaction that commits only under the lease's term; throws `LeaseLost`. */
export async function underLease(
  db: Queryable,
  lease: Lease,
  work: (trx: Queryable) => Promise<void>,
): Promise<void> {
  await db.transaction().execute(async (trx) => {
    if (!(await holdsTerm(trx, lease.name, lease.term))) throw new LeaseLost();
    await work(trx);
  });
}
