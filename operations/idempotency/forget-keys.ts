import { createLeasedLoop, type LeasedLoop } from '#service-kit/leases/index.ts';
import type { IdempotencyDeps } from './deps.ts';
import * as store from './store.ts';

/** The loop that forgets keys after their 24 hours. */
export function createIdempotencyRetention(deps: IdempotencyDeps): LeasedLoop {
  return createLeasedLoop({
    name: 'operations.idempotency_retention',
    intervalMs: 600_000,
    ttlSeconds: 60,
    ...deps,
    async run() {
      await store.deleteExpired(deps.db());
    },
  });
}
