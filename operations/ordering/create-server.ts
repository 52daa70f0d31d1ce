/**
 * Orders one hourly-billed server, forecasts such an order, and finds what came of one. What it needs is held before the
 * payment and becomes the server after it (`hold-server.ts`).
 */
import type { Actor } from '#operations/accounts/index.ts';
import { record } from '#service-kit/audit/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { OrderingDeps } from './deps.ts';
import type { CreateServerInput } from './order-request.ts';
import type { DeployBudget } from './place-order.ts';
import { prepareOrder } from './prepare-order.ts';

export interface CreateServerResult {
  serverId: number;
  orderId: number;
  /** As it stands on the order; for the answer to this call alone. */
  rootPassword: string;
  deploys: DeployBudget;
}

/** Called in the transaction that creates the order, so that a repeated call finds it. */
export type OnOrdered = (tx: Queryable, orderId: number) => Promise<void>;

export interface OrderingOptions {
  onOrdered?: OnOrdered;
  /** From the portal: `orders.repeated` is thrown for a form that was sent before, and for the same order within seconds. */
  checkout?: { formId: string | null };
}

/**
 * Throws `servers.invalid` (details.fields), `orders.not_eligible` (details.refusal), `orders.deploy_rate`
 * (details.deploys), `servers.capacity`, `accounts.forbidden` and for the network what `holdNetwork` throws: nothing is
 * ordered or charged then. Throws `orders.payment_failed` (details.failure) when the card had to be charged and that did
 * not succeed, and `orders.refused` (details.refusal) when the charge was given back.
 */
export async function createServer(
  deps: OrderingDeps,
  actor: Actor,
  input: CreateServerInput,
  { onOrdered, checkout }: OrderingOptions = {},
): Promise<CreateServerResult> {
  const { order } = await prepareOrder(deps, actor, input);
  const { tenantId, plan, image } = input;
  const onPlaced: OnOrdered = async (tx, orderId) => {
    await onOrdered?.(tx, orderId);
    const subject = { kind: 'order', id: orderId };
    await record(tx, actor, { operation: 'order.place', subject, tenantId, after: { plan, image } });
  };
  const placed = await deps.orders.placeOrder({ ...order, onOrdered: onPlaced, checkout });
  deps.wake();
  return placed;
}
