/**
 * Ordering servers, and how they are paid.
 *
 * With credit above zero nothing is due; without it a default card is charged one month of the plan before anything is
 * queued. Every check that can refuse an order runs before the card is charged; the server's capacity is reserved meanwhile.
 * Every order row is a deploy slot, every call a new order. A declined or unconfirmed charge queues nothing, also when it
 * succeeds later; a paid order is queued even if the process that was paid has died.
 */

import { type Actor, systemJob } from '#operations/accounts/index.ts';
import type { Catalog } from '#operations/catalog/index.ts';
import type { Hypervisors } from '#operations/hypervisors/index.ts';
import type { Networks } from '#operations/networks/index.ts';
import { clearActionPasswords } from '#operations/servers/index.ts';
import type { SshKeys } from '#operations/ssh-keys/index.ts';
import type { FeatureWork } from '#service-kit/jobs/index.ts';
import { createLeasedLoop, type LeasedLoop, type LoopDeps } from '#service-kit/leases/index.ts';
import {
  type CreateServerInput,
  createServer,
  findOrdered,
  forecastServer,
  type OrderingOptions,
} from './create-server.ts';
import { serverWork } from './hold-server.ts';
import type { Orders } from './orders.ts';
import * as store from './store.ts';

export type { CreateServerInput, ServerForecast } from './create-server.ts';
export { createOrders } from './orders.ts';
export type { DeployBudget, PaymentFailure } from './place-order.ts';
export type { OrderRefusal } from './queue-order.ts';
export type { ClosedOrder } from './store.ts';

export type Ordering = ReturnType<typeof createOrdering>;

export function createOrdering(deps: OrderingDeps) {
  const { deploysOf, listPaidClosed } = deps.orders;
  return {
    /** What it does beside the calls. */
    work: { parts: [createOrderLoop(deps), createPasswordClearing(deps)] } satisfies FeatureWork,
    deploysOf,
    listPaidClosed,
    /** `onOrdered` runs in the transaction that makes the order. */
    createServer: (actor: Actor, input: CreateServerInput, options?: OrderingOptions) =>
      createServer(deps, actor, input, options),
    /** What `createServer` would do; does nothing. Throws `servers.invalid`. */
    forecastServer: (actor: Actor, input: CreateServerInput) => forecastServer(deps, actor, input),
    /** What came of an order, told as `createServer` tells it. */
    findOrdered: (actor: Actor, tenantId: number, orderId: number) =>
      findOrdered(deps, actor, tenantId, orderId),
  };
}

/** What ordering needs from the rest of the program. */
export interface OrderingDeps extends LoopDeps {
  catalog: Catalog;
  networks: Networks;
  hypervisors: Hypervisors;
  orders: Orders;
  sshKeys: SshKeys;
  /** Tells the job runner that there is work. */
  wake: () => void;
}

/** The loop that carries out paid orders whose process has died, and closes those whose charge was given up. */
function createOrderLoop(deps: OrderingDeps): LeasedLoop {
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

/** The loop that clears root passwords which are no longer needed (API-2.3.b: a password stands on what made it alone). */
export function createPasswordClearing(deps: LoopDeps): LeasedLoop {
  return createLeasedLoop({
    name: 'operations.root_passwords',
    intervalMs: 600_000,
    ttlSeconds: 60,
    ...deps,
    async run() {
      await store.clearRootPasswords(deps.db());
      await clearActionPasswords(deps.db());
    },
  });
}
