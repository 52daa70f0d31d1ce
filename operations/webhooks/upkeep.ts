import type { Clock } from '#common/clock/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { deleteEventsOlderThan } from '#operations/events/index.ts';
import { createLeasedLoop, type LeasedLoop } from '#service-kit/leases/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import * as store from './store.ts';

const keepDays = 30;
const lateSeconds = 900;

/** Every few minutes: says when deliveries wait too long for a worker, and forgets what is older than a month, and secrets that sign no more. */
export function createWebhookUpkeep(deps: {
  db: () => Queryable;
  clock: Clock;
  reporter: Reporter;
}): LeasedLoop {
  return createLeasedLoop({
    name: 'webhooks.upkeep',
    intervalMs: 300_000,
    ttlSeconds: 120,
    ...deps,
    async run() {
      const { pending, oldestSeconds, failingEndpoints } = await store.readQueueHealth(deps.db());
      if (oldestSeconds > lateSeconds)
        deps.reporter.warn('webhooks are late', {
          pending,
          oldest_seconds: Math.round(oldestSeconds),
          failing_endpoints: failingEndpoints,
        });
      await store.deleteFormerSecrets(deps.db());
      await deleteEventsOlderThan(deps.db(), keepDays);
    },
  });
}
