import { CodedError, hasCode } from '#common/errors/index.ts';
import { findOutcome, listAbandonedCreated } from '#operations/views/order-store.ts';
import { inTransaction } from '#service-kit/postgres/index.ts';
import type { OrdersDeps } from './orders.ts';
import type { OrderWork } from './place-order.ts';
import * as store from './store.ts';

/** A paid order is left to the process that was paid for this long; then any process carries it out. */
export const graceSecondsDefault = 60;

/**
 * Queues the provisioning of a paid order, once; returns its server's id, also when another process was faster. An order
 * that can't be carried out is closed, its charge is given back, and `orders.refused` is thrown: that happens to orders
 * of versions that held nothing, and to what such a version took away from one.
 */
export async function queueOrder(deps: OrdersDeps, orderId: number, work: OrderWork): Promise<number> {
  try {
    return await inTransaction(deps.db(), async (tx) => {
      const order = await store.lockUnqueued(tx, orderId);
      if (order === null)
        throw new CodedError('orders.taken_over', 'Another process carried out this order.');
      const held = order.held ?? (await work.hold(tx, order));
      const serverId = await work.queue(tx, { ...order, held });
      await store.noteQueued(tx, orderId);
      return serverId;
    });
  } catch (error) {
    // A database that does not answer is no refusal; a later pass tries again.
    if (!(error instanceof CodedError)) throw error;
    if (!hasCode(error, 'orders.taken_over')) throw await refuseOrder(deps, orderId, error.code, work);
    const outcome = await findOutcome(deps.db(), orderId);
    if (outcome?.serverId != null) return outcome.serverId;
    throw await refuseOrder(deps, orderId, outcome?.closedReason ?? error.code, work);
  }
}

/** Carries out what dead processes left: paid orders are queued, orders whose charge was given up are unpaid. */
export async function completeOrders(deps: OrdersDeps, work: OrderWork): Promise<number> {
  for (const orderId of await listAbandonedCreated(deps.db())) await closeUnpaid(deps, orderId, work);
  let queued = 0;
  for (const orderId of await store.listAbandonedPaid(deps.db(), deps.graceSeconds ?? graceSecondsDefault)) {
    try {
      await queueOrder(deps, orderId, work);
      queued += 1;
    } catch (error) {
      if (!(error instanceof CodedError)) throw error;
    }
  }
  return queued;
}

async function closeUnpaid(deps: OrdersDeps, orderId: number, work: OrderWork): Promise<void> {
  await inTransaction(deps.db(), async (tx) => {
    const held = await store.settleOrder(tx, orderId, 'unpaid');
    if (held !== null) await work.release(tx, held);
  });
}

/** Why an order that was paid will not be carried out; its charge is given back. */
export interface OrderRefusal {
  orderId: number;
  /** Null when no card was charged. */
  paymentAttemptId: number | null;
  /** The code of the refusal, such as `networks.ip_in_use`. */
  cause: string;
}

/**
 * Closes a paid order, frees what it holds and takes its credit off again, in one transaction; then asks the gateway to
 * give the money back. A gateway that does not answer is asked again by reconciliation. Returns `orders.refused`.
 */
async function refuseOrder(
  deps: OrdersDeps,
  orderId: number,
  cause: string,
  work: OrderWork,
): Promise<CodedError> {
  await inTransaction(deps.db(), async (tx) => {
    const closed = await store.closeOrder(tx, orderId, cause);
    if (closed === null) return;
    if (closed.held !== null) await work.release(tx, closed.held);
    await deps.payments.refundOrderCharge(tx, orderId);
  });
  await deps.payments.reconcileOrder(orderId);
  const outcome = await findOutcome(deps.db(), orderId);
  return orderRefused({ orderId, paymentAttemptId: outcome?.chargeId ?? null, cause });
}

export function orderRefused(refusal: OrderRefusal): CodedError {
  return new CodedError(
    'orders.refused',
    `Order ${refusal.orderId} was refused after it was paid, so no server was made and its charge is given back. Send a new order.`,
    { refusal },
  );
}
