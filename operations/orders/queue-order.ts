import { CodedError, hasCode } from '#common/errors/index.ts';
import type { OrdersDeps } from './index.ts';
import type { QueueServer } from './place-order.ts';
import * as store from './store.ts';

/** A paid order is left to the process that was paid for this long; then any process carries it out. */
export const graceSecondsDefault = 60;

/**
 * Queues the provisioning of a paid order, once. When its location has filled up since, the order is closed, its payment
 * stays the account's credit, and `servers.capacity` is thrown.
 */
export async function queueOrder(deps: OrdersDeps, orderId: number, queue: QueueServer): Promise<number> {
  try {
    return await deps
      .db()
      .transaction()
      .execute(async (tx) => {
        const order = await store.lockUnqueued(tx, orderId);
        if (order === null)
          throw new CodedError('orders.taken_over', 'This order was carried out by another process.');
        const serverId = await queue(tx, order);
        await store.noteQueued(tx, orderId);
        return serverId;
      });
  } catch (error) {
    // Refusals are for good; a database that does not answer is not one, and a later pass tries again.
    if (error instanceof CodedError && !hasCode(error, 'orders.taken_over'))
      await store.closeOrder(deps.db(), orderId, error.code);
    throw error;
  }
}

/** Carries out what dead processes left: paid orders are queued, orders whose charge was given up are unpaid. */
export async function completeOrders(deps: OrdersDeps, queue: QueueServer): Promise<number> {
  await store.closeAbandonedCreated(deps.db());
  let queued = 0;
  for (const orderId of await store.listAbandonedPaid(deps.db(), deps.graceSeconds ?? graceSecondsDefault)) {
    try {
      await queueOrder(deps, orderId, queue);
      queued += 1;
    } catch (error) {
      if (!(error instanceof CodedError)) throw error;
    }
  }
  return queued;
}
