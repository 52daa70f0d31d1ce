import type { Clock } from '#common/clock/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { createLeasedLoop, type LeasedLoop } from '#service-kit/leases/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { FactStore } from './contract/fact-store.ts';

const intervalMs = 10_000;
const leaseSeconds = 120;

/**
 * Rolls up hours that have settled, beside the inbox and not within it: an hour of a large site takes seconds. The lease
 * only saves work; two that roll up at once are kept apart by the site's lock.
 */
export function createRollUpLoop(deps: {
  db: () => Queryable;
  facts: Pick<FactStore, 'rollUp'>;
  clock: Clock;
  reporter: Reporter;
}): LeasedLoop {
  const { db, clock, reporter, facts } = deps;
  return createLeasedLoop({
    name: 'roll_up_hours',
    intervalMs,
    ttlSeconds: leaseSeconds,
    db,
    clock,
    reporter,
    // After an upgrade or a long pause there may be hours of work: the lease is kept, and a stop doesn't wait for it.
    run: async (_lease, renew, signal) => {
      await facts.rollUp('settled', async () => !signal.aborted && renew());
    },
  });
}
