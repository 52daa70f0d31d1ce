import type { Clock } from '#common/clock/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { createLeasedLoop, type LeasedLoop } from '#service-kit/leases/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import * as store from './store.ts';

/** The loop that clears root passwords which are no longer needed (API-2.3.b: a password stands on its order alone). */
export function createPasswordClearing(deps: {
  db: () => Queryable;
  clock: Clock;
  reporter: Reporter;
}): LeasedLoop {
  return createLeasedLoop({
    name: 'operations.root_passwords',
    intervalMs: 600_000,
    ttlSeconds: 60,
    ...deps,
    async run() {
      await store.clearRootPasswords(deps.db());
    },
  });
}
