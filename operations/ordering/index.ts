/**
 * Ordering servers, and how they are paid.
 *
 * With credit above zero nothing is due; without it a default card is charged one month of the plan before anything is
 * queued. Every check that can refuse an order runs before the card is charged; the server's capacity is reserved meanwhile.
 * Every order row is a deploy slot, every call a new order. A declined or unconfirmed charge queues nothing, also when it
 * succeeds later; a paid order is queued even if the process that was paid has died.
 */
import type { Actor } from '#operations/accounts/index.ts';
import type { FeatureWork } from '#service-kit/jobs/index.ts';
import { createPasswordClearing } from './clear-passwords.ts';
import { createOrderLoop } from './complete-orders.ts';
import { type CreateServerResult, createServer, type OrderingOptions } from './create-server.ts';
import type { OrderingDeps } from './deps.ts';
import { findOrdered } from './find-ordered.ts';
import { forecastServer, type ServerForecast } from './forecast-server.ts';
import type { CreateServerInput } from './order-request.ts';
import type { Orders } from './orders.ts';

export type { CreateServerResult } from './create-server.ts';
export type { OrderingDeps } from './deps.ts';
export type { ServerForecast } from './forecast-server.ts';
export type { CreateServerInput } from './order-request.ts';
export { createOrders, type Orders } from './orders.ts';
export type { DeployBudget, PaymentFailure } from './place-order.ts';
export type { OrderRefusal } from './refuse-order.ts';
export type { ClosedOrder } from './store.ts';

export interface Ordering extends Pick<Orders, 'deploysOf' | 'listPaidClosed'> {
  /** What it does beside the calls. */
  readonly work: FeatureWork;
  /** `onOrdered` runs in the transaction that makes the order. */
  createServer(
    actor: Actor,
    input: CreateServerInput,
    options?: OrderingOptions,
  ): Promise<CreateServerResult>;
  /** What `createServer` would do; does nothing. Throws `servers.invalid`. */
  forecastServer(actor: Actor, input: CreateServerInput): Promise<ServerForecast>;
  /** What came of an order, told as `createServer` tells it. */
  findOrdered(
    actor: Actor,
    tenantId: number,
    orderId: number,
  ): Promise<{ serverId: number; rootPassword: string }>;
}

export function createOrdering(deps: OrderingDeps): Ordering {
  const { deploysOf, listPaidClosed } = deps.orders;
  return {
    work: { parts: [createOrderLoop(deps), createPasswordClearing(deps)] },
    deploysOf,
    listPaidClosed,
    createServer: (actor, input, options) => createServer(deps, actor, input, options),
    forecastServer: (actor, input) => forecastServer(deps, actor, input),
    findOrdered: (actor, tenantId, orderId) => findOrdered(deps, actor, tenantId, orderId),
  };
}
