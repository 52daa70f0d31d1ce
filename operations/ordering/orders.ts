/** Orders with their payment and their outcome. What carrying one out means is said by `OrderWork`. */
import { type Actor, forbidden, reachesTenant, requireStaff } from '#operations/accounts/index.ts';
import type { Payments } from '#operations/payments/index.ts';
import { findOutcome } from '#operations/views/order-store.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import {
  type DeployBudget,
  forecastOrder,
  type NewOrder,
  type OrderWork,
  placeOrder,
} from './place-order.ts';
import { completeOrders } from './queue-order.ts';
import * as store from './store.ts';

export type Orders = ReturnType<typeof createOrders>;

export function createOrders(given: Omit<OrdersDeps, 'takeTurn'>) {
  const deps: OrdersDeps = { ...given, takeTurn: createTurns<number>() };
  return {
    /** Throws `orders.repeated`, `orders.not_eligible`, `orders.deploy_rate`, `orders.payment_failed`, `orders.refused`, and what `work.hold` throws. */
    placeOrder: (order: NewOrder) => placeOrder(deps, order),
    /** What the order would come to, by the same rules; nothing is left of it. Throws what `work.hold` throws. */
    forecastOrder: (order: NewOrder) => forecastOrder(deps, order),
    /** How many deploys of the last hour the account has used. Throws `accounts.forbidden`. */
    async deploysOf(actor: Actor, tenantId: number): Promise<DeployBudget> {
      if (!reachesTenant(actor, tenantId)) throw forbidden('This account is not yours.');
      const { used, resetSeconds } = await store.countRecentOrders(deps.db(), tenantId);
      return { limit: deps.deploysPerHour, used, resetSeconds };
    },
    /** What has come of an order. */
    findOutcome: (orderId: number) => findOutcome(deps.db(), orderId),
    /** Carries out what dead processes left behind; returns how many servers were queued. */
    completeOrders: (work: OrderWork) => completeOrders(deps, work),
    /** For the creating answer, its replay, and provisioning alone. */
    findRootPassword: (orderId: number) => store.findRootPassword(deps.db(), orderId),
    /** Orders that were paid by card and never carried out. Staff only. */
    async listPaidClosed(actor: Actor, limit: number): Promise<store.ClosedOrder[]> {
      requireStaff(actor);
      return store.listPaidClosed(deps.db(), limit);
    },
  };
}

/** What orders and their payment need from the rest of the program. */
export interface OrdersDeps {
  db: () => Queryable;
  payments: Payments;
  /** Orders that one account may place within an hour. */
  deploysPerHour: number;
  /** Runs the transaction that makes an account's order, one at a time. */
  takeTurn: <T>(tenantId: number, work: () => Promise<T>) => Promise<T>;
  /** How long a paid order is left to the process that was paid. */
  graceSeconds?: number;
}

/**
 * Lets the work of one key run one at a time in this process, in the order of its calls; other keys are not delayed.
 *
 * Orders of one account wait for one another in the database anyway. Waiting here costs no connection, so an account
 * whose balance is locked holds one of them at most.
 */
function createTurns<Key>(): <T>(key: Key, work: () => Promise<T>) => Promise<T> {
  const last = new Map<Key, Promise<unknown>>();
  return async (key, work) => {
    const before = last.get(key) ?? Promise.resolve();
    const mine = before.then(work, work);
    // A failure belongs to its own caller.
    const ended = mine.catch(() => {});
    last.set(key, ended);
    try {
      return await mine;
    } finally {
      if (last.get(key) === ended) last.delete(key);
    }
  };
}
