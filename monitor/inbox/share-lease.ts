/** The lease of one share's worker, and what its earlier terms left unfinished. */
import {
  cutPastHolder,
  isTrusted,
  type Lease,
  renewLease,
  resignLease,
  takeLease,
} from '#service-kit/leases/index.ts';
import type { InboxParts } from './index.ts';
import { noteAbandoned } from './note-failure.ts';

export function createShareLease(deps: InboxParts, share: number, holder: string) {
  const name = `inbox ${share}`;
  const holding = { db: deps.db, clock: deps.clock, ttlSeconds: deps.leaseSeconds ?? 15 };
  let lease: Lease | null = null;
  let excusedTerm: number | null = null;
  return {
    /** A lease with at least half of its time left; null while another process holds the share. */
    async hold(): Promise<Lease | null> {
      if (lease && isTrusted(holding, lease)) {
        const half = (holding.ttlSeconds * 1000) / 2;
        if (lease.trustedUntilMs - deps.clock.monotonicMs() > half) return lease;
        if (await renewLease(holding, lease)) return lease;
      }
      const before = lease;
      lease = null;
      const taken = await takeLease(holding, name, holder);
      if (!taken) {
        await cutPastHolder(deps.db(), name, holding.ttlSeconds);
        return null;
      }
      // The same term as before: no other worker had it in between; the worker repeats unfinished work by itself.
      if (taken.term !== before?.term) {
        const isExcused = excusedTerm !== null && taken.term === excusedTerm + 1;
        await noteAbandoned(deps, share, taken, isExcused);
      }
      lease = taken;
      excusedTerm = null;
      return lease;
    },
    /** The lease was lost; `hold` takes it again. */
    lose() {
      lease = null;
    },
    /** The present term ended by a failure of the database; its unfinished uploads count no attempt. */
    excuse() {
      excusedTerm = lease?.term ?? excusedTerm;
    },
    /** Gives the lease back. */
    async resign() {
      if (lease) await resignLease(holding, lease).catch(() => {});
      lease = null;
    },
  };
}
