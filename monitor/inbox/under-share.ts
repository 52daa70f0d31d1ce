import { type Lease, nameTerm, underLease } from '#service-kit/leases/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { InboxDeps } from './deps.ts';

/**
 * A transaction of a share's worker under its lease; throws `LeaseLost`. It names its term, so that a worker that freezes
 * in here does not keep its row locks longer than its lease.
 */
export function underShare(
  deps: Pick<InboxDeps, 'db' | 'leaseSeconds'>,
  lease: Lease,
  work: (trx: Queryable) => Promise<void>,
): Promise<void> {
  return underLease(deps.db(), lease, work, (trx) => nameTerm(trx, lease, deps.leaseSeconds ?? 15));
}
