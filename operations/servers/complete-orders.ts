import type { Clock } from '#common/clock/index.ts';
import { systemJob } from '#operations/accounts/index.ts';
import { createLeasedLoop, type LeasedLoop } from '#service-kit/leases/index.ts';
import { orderWork } from './create-server.ts';
import type { ServersDeps } from './deps.ts';

/** The loop that carries out paid orders whose process has died, and closes those whose charge was given up. */
export function createOrderLoop(deps: ServersDeps & { clock: Clock }): LeasedLoop {
  return createLeasedLoop({
    name: 'operations.orders',
    intervalMs: 15_000,
    ttlSeconds: 120,
    db: deps.db,
    clock: deps.clock,
    reporter: deps.reporter,
    async run() {
      const queued = await deps.orders.completeOrders(orderWork(deps, systemJob('complete-orders')));
      if (queued === 0) return;
      deps.reporter.info('paid orders of dead processes queued', { queued });
      deps.wake();
    },
  });
}
