import { CodedError } from '#common/errors/index.ts';
import { orderRefused, type PaymentFailure } from '#operations/ordering/index.ts';
import { notFound, type Scope } from './authorise.ts';
import type { ServersDeps } from './deps.ts';

/**
 * What an order has come to, told as `createServer` told it: the server, or the refusal of its payment. Throws
 * `idempotency.in_progress` while that is open, and `servers.not_found` for an order that is not of the scope.
 */
export async function findOrdered(
  deps: ServersDeps,
  scope: Scope,
  orderId: number,
): Promise<{ serverId: number; rootPassword: string }> {
  const outcome = await deps.orders.findOutcome(orderId);
  if (outcome === null || (scope !== 'all' && !scope.includes(outcome.tenantId))) throw notFound();
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
