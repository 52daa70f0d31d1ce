import { CodedError } from '#common/errors/index.ts';
import type { OrderWork } from './order-work.ts';
import type { OrdersDeps } from './orders-deps.ts';
import * as store from './store.ts';

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
export async function refuseOrder(
  deps: OrdersDeps,
  orderId: number,
  cause: string,
  work: OrderWork,
): Promise<CodedError> {
  await deps
    .db()
    .transaction()
    .execute(async (tx) => {
      const closed = await store.closeOrder(tx, orderId, cause);
      if (closed === null) return;
      if (closed.held !== null) await work.release(tx, closed.held);
      await deps.payments.refundOrderCharge(tx, orderId);
    });
  await deps.payments.reconcileOrder(orderId);
  const outcome = await store.findOutcome(deps.db(), orderId);
  return orderRefused({ orderId, paymentAttemptId: outcome?.chargeId ?? null, cause });
}

export function orderRefused(refusal: OrderRefusal): CodedError {
  return new CodedError(
    'orders.refused',
    `Order ${refusal.orderId} was refused after it was paid, so no server was made and its charge is given back. Send a new order.`,
    { refusal },
  );
}
