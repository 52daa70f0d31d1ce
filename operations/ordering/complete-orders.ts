import { systemJob } from '#operations/accounts/index.ts';
import { createLeasedLoop, type LeasedLoop } from '#service-kit/leases/index.ts';
import type { OrderingDeps } from './deps.ts';
import { serverWork } from './server-work.ts';

/** The loop that carries out paid orders whose process has died, and closes those whose charge was given up. */
export function createOrderLoop(deps: OrderingDeps): LeasedLoop {
  return createLeasedLoop({
    name: 'operations.orders',
    intervalMs: 15_000,
    ttlSeconds: 120,
    db: deps.db,
    clock: deps.clock,
    reporter: deps.reporter,
    async run() {
      const queued = await deps.orders.completeOrders(serverWork(deps, systemJob('complete-orders')));
      if (queued === 0) return;
      deps.reporter.info('paid orders of dead processes queued', { queued });
      deps.wake();
    },
  });
}
