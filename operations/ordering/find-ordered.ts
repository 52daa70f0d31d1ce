import { CodedError } from '#common/errors/index.ts';
import { type Actor, reachesTenant } from '#operations/accounts/index.ts';
import { serverNotFound } from '#operations/servers/index.ts';
import type { OrderingDeps } from './deps.ts';
import type { PaymentFailure } from './place-order.ts';
import { orderRefused } from './refuse-order.ts';

/**
 * What an order has come to, told as `createServer` told it: the server, or the refusal of its payment. Throws
 * `idempotency.in_progress` while that is open, and `servers.not_found` for an order of another tenant.
 */
export async function findOrdered(
  deps: OrderingDeps,
  actor: Actor,
  tenantId: number,
  orderId: number,
): Promise<{ serverId: number; rootPassword: string }> {
  const outcome = await deps.orders.findOutcome(orderId);
  if (outcome?.tenantId !== tenantId || !reachesTenant(actor, tenantId)) throw serverNotFound();
  if (outcome.serverId !== null)
    return { serverId: outcome.serverId, rootPassword: await deps.orders.findRootPassword(orderId) };
  if (outcome.state === 'unpaid' && outcome.chargeId !== null) {
    const failure: Omit<PaymentFailure, 'deploys'> = {
      reason: outcome.isDeclined ? 'charge_declined' : 'charge_unconfirmed',
      orderId,
      paymentAttemptId: outcome.chargeId,
    };
    throw new CodedError(
      'orders.payment_failed',
      'The payment of this order failed; no server was ordered.',
      {
        failure,
      },
    );
  }
  if (outcome.closedReason !== null)
    throw orderRefused({ orderId, paymentAttemptId: outcome.chargeId, cause: outcome.closedReason });
  throw new CodedError(
    'idempotency.in_progress',
    'This order is still being paid. Repeat the call in a moment.',
  );
}
