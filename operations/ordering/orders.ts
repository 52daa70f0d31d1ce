/** Orders with their payment and their outcome. What carrying one out means is said by `OrderWork`. */
import { type Actor, forbidden, reachesTenant, requireStaff } from '#operations/accounts/index.ts';
import { forecastOrder, type OrderForecast } from './forecast-order.ts';
import type { OrderWork } from './order-work.ts';
import type { OrdersDeps } from './orders-deps.ts';
import { type DeployBudget, type NewOrder, type PlacedOrder, placeOrder } from './place-order.ts';
import { completeOrders } from './queue-order.ts';
import * as store from './store.ts';
import { createTurns } from './take-turns.ts';

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
