/**
 * Orders for servers, and how they are paid.
 *
 * With credit above zero nothing is due; without it an default card is charged one month of the plan before anything is
 * queued. Every check that can refuse an order runs before the card is charged; the server's capacity is reserved meanwhile.
 * Every order row is a deploy slot, every call a new order. A declined or unconfirmed charge queues nothing, also when it
 * succeeds later; a paid order is queued even if the process that was paid has died.
 */
import type { Clock } from '#common/clock/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { type Actor, forbidden, reachesTenant, requireStaff } from '#operations/accounts/index.ts';
import { createLeasedLoop, type LeasedLoop } from '#service-kit/leases/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { OrdersDeps } from './deps.ts';
import { forecastOrder, type OrderForecast } from './forecast-order.ts';
import type { OrderWork } from './order-work.ts';
import { type DeployBudget, type NewOrder, type PlacedOrder, placeOrder } from './place-order.ts';
import { completeOrders } from './queue-order.ts';
import * as store from './store.ts';
import { createTurns } from './take-turns.ts';

export type { OrderForecast } from './forecast-order.ts';
export type { OrderWork } from './order-work.ts';
export type { DeployBudget, NewOrder, PaymentFailure, PlacedOrder } from './place-order.ts';
export { type OrderRefusal, orderRefused } from './refuse-order.ts';
export type { ClosedOrder, HeldOrder, OrderOutcome, StoredOrder } from './store.ts';

export interface Orders {
  /** Throws `orders.repeated`, `orders.not_eligible`, `orders.deploy_rate`, `orders.payment_failed`, `orders.refused`, and what `work.hold` throws. */
  placeOrder(order: NewOrder): Promise<PlacedOrder>;
  /** What the order would come to, by the same rules; nothing is left of it. Throws what `work.hold` throws. */
  forecastOrder(order: NewOrder): Promise<OrderForecast>;
  /** How many deploys of the last hour the account has used. Throws `accounts.forbidden`. */
  deploysOf(actor: Actor, tenantId: number): Promise<DeployBudget>;
  /** What has come of an order. */
  findOutcome(orderId: number): Promise<store.OrderOutcome | null>;
  /** Carries out what dead processes left behind; returns how many servers were queued. */
  completeOrders(work: OrderWork): Promise<number>;
  /** For the creating answer, its replay, and provisioning alone. */
  findRootPassword(orderId: number): Promise<string>;
  /** Orders that were paid by card and never carried out. Staff only. */
  listPaidClosed(actor: Actor, limit: number): Promise<store.ClosedOrder[]>;
}

export function createOrders(given: Omit<OrdersDeps, 'takeTurn'>): Orders {
  const deps: OrdersDeps = { ...given, takeTurn: createTurns<number>() };
  return {
    placeOrder: (order) => placeOrder(deps, order),
    forecastOrder: (order) => forecastOrder(deps, order),
    async deploysOf(actor, tenantId) {
      if (!reachesTenant(actor, tenantId)) throw forbidden('This account is not yours.');
      const { used, resetSeconds } = await store.countRecentOrders(deps.db(), tenantId);
      return { limit: deps.deploysPerHour, used, resetSeconds };
    },
    findOutcome: (orderId) => store.findOutcome(deps.db(), orderId),
    completeOrders: (work) => completeOrders(deps, work),
    findRootPassword: (orderId) => store.findRootPassword(deps.db(), orderId),
    async listPaidClosed(actor, limit) {
      requireStaff(actor);
      return store.listPaidClosed(deps.db(), limit);
    },
  };
}

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
