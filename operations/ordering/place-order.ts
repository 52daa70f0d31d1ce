/**
 * Places an order for a server and pays for it.
 *
 * With credit nothing is due: order, server and provisioning job are one transaction. Without credit but with a card,
 * one month of the plan is charged first: the order, everything its server needs and the intent are committed, the
 * charge is taken with no transaction open, its outcome is committed with the order, and only then provisioning is
 * queued. What can refuse an order refuses it in the first of these steps, before anything is charged.
 */
import { CodedError } from '#common/errors/index.ts';
import {
  type AccessRefusal,
  describeRefusal,
  judgeDeployment,
  lockAccess,
} from '#operations/billing/index.ts';
import type { Charge, ChargeOutcome } from '#operations/payments/index.ts';
import { newRootPassword } from '#operations/servers/index.ts';
import { inTransaction, type Queryable } from '#service-kit/postgres/index.ts';
import type { OrdersDeps } from './orders.ts';
import { queueOrder } from './queue-order.ts';
import * as store from './store.ts';

export interface NewOrder {
  tenantId: number;
  plan: { id: number; monthlyCapQuanta: number };
  /** The form of the portal's checkout, sent twice it orders once; null for a form without a name. Absent: a new order. */
  checkout?: { formId: string | null } | undefined;
  /** What is wanted, as `work` will read it, also in another process later. */
  request: Record<string, unknown>;
  work: OrderWork;
  /** Told of the order in the transaction that makes its row. */
  onOrdered?: ((tx: Queryable, orderId: number) => Promise<void>) | undefined;
}

export interface DeployBudget {
  limit: number;
  used: number;
  resetSeconds: number;
}

/** Why a charge did not buy the server; put into the 402. */
export interface PaymentFailure {
  reason: 'charge_declined' | 'charge_unconfirmed';
  orderId: number;
  paymentAttemptId: number;
  deploys: DeployBudget;
}

interface Committed {
  orderId: number;
  /** As it was before the order. */
  balanceQuanta: number;
  rootPassword: string;
  deploys: DeployBudget;
  /** The server of an order that credit paid for, or the charge that has to be taken first. */
  next: { serverId: number } | { charge: Charge };
}

/**
 * Throws `orders.repeated` (a checkout that was sent before), `orders.not_eligible` (details.refusal),
 * `orders.deploy_rate` (details.deploys) and the errors of `work.hold`: nothing was ordered or charged then. Throws
 * `orders.payment_failed` (details.failure) when the charge was declined or not confirmed: nothing is queued, now or later. Throws `orders.refused` (details.refusal) for a paid
 * order that can't be carried out after all: its charge is given back.
 */
export async function placeOrder(deps: OrdersDeps, order: NewOrder) {
  const committed = await deps.takeTurn(order.tenantId, () =>
    inTransaction(deps.db(), (tx) => commitOrder(deps, tx, order)),
  );
  const { orderId, rootPassword, deploys, next } = committed;
  if ('serverId' in next) return { orderId, rootPassword, deploys, serverId: next.serverId };
  const outcome = await deps.payments.takeCharge(next.charge, async (tx, settled) => {
    const isPaid = settled.kind === 'succeeded';
    const held = await store.settleOrder(tx, orderId, isPaid ? 'paid' : 'unpaid');
    if (!isPaid && held !== null) await order.work.release(tx, held);
  });
  if (outcome.kind !== 'succeeded') throw paymentFailed(outcome, orderId, next.charge.id, deploys);
  const serverId = await queueOrder(deps, orderId, order.work);
  return { orderId, rootPassword, deploys, serverId };
}

/** Longer than the orders of one account take together; what holds a lock for longer is not an order. */
const lockTimeoutMs = 5_000;

/** Everything of an order that happens before money moves; nothing is left of it when it throws. */
async function commitOrder(deps: OrdersDeps, tx: Queryable, order: NewOrder): Promise<Committed> {
  await store.boundLockWaits(tx, lockTimeoutMs);
  // The lock on the balance makes orders of one account wait for each other, so neither the credit rule nor the
  // hourly cap can be slipped past by calling many times at once.
  const facts = await lockAccess(tx, order.tenantId, deps.payments.gatewayName);
  if (facts !== null && order.checkout) await refuseRepeated(tx, order, order.checkout);
  const refusal = facts === null ? null : judgeDeployment(facts);
  if (facts === null || refusal !== null) throw notEligible(refusal);
  const deploys = await requireDeployBudget(deps, tx, order.tenantId);
  const rootPassword = newRootPassword();
  const isDue = facts.balanceQuanta <= 0;
  const dueQuanta = isDue ? wholeCents(order.plan.monthlyCapQuanta) : 0;
  const { tenantId, request } = order;
  const orderId = await store.insertOrder(tx, {
    tenantId,
    planId: order.plan.id,
    dueQuanta,
    rootPassword,
    request,
    formId: order.checkout?.formId ?? null,
  });
  await order.onOrdered?.(tx, orderId);
  const stored = { id: orderId, tenantId, request };
  const held = await order.work.hold(tx, stored);
  const { balanceQuanta } = facts;
  if (!isDue) {
    const serverId = await order.work.queue(tx, { ...stored, held });
    await store.noteQueued(tx, orderId);
    return { orderId, rootPassword, deploys, balanceQuanta, next: { serverId } };
  }
  await store.noteHeld(tx, orderId, held);
  const charge = await deps.payments.intendOrderCharge(tx, { tenantId, orderId, amountQuanta: dueQuanta });
  if (charge === null)
    throw notEligible({ status: 402, code: 'payment_required', reason: 'credit_required' });
  return { orderId, rootPassword, deploys, balanceQuanta, next: { charge } };
}

/** The portal's checkout takes the same order from the same person twice only when some time has passed. */
const duplicateWindowSeconds = 20;

async function refuseRepeated(
  tx: Queryable,
  { tenantId, request }: NewOrder,
  { formId }: { formId: string | null },
): Promise<void> {
  const window = { tenantId, request, formId, seconds: duplicateWindowSeconds };
  const found = await store.findRepeated(tx, window);
  if (found === null) return;
  throw new CodedError(
    'orders.repeated',
    found.isSameForm
      ? 'This form was sent before, and nothing was ordered again. Look at your servers; to order another one, send the form once more now.'
      : `The same server was ordered less than ${duplicateWindowSeconds} seconds ago. Wait a moment if you want another one.`,
    { orderId: found.orderId },
  );
}

async function requireDeployBudget(deps: OrdersDeps, tx: Queryable, tenantId: number): Promise<DeployBudget> {
  const limit = deps.deploysPerHour;
  const { used, resetSeconds } = await store.countRecentOrders(tx, tenantId);
  if (used < limit) return { limit, used: used + 1, resetSeconds };
  throw new CodedError(
    'orders.deploy_rate',
    `This account has deployed ${limit} servers within an hour. Try again in ${resetSeconds} seconds.`,
    { deploys: { limit, used, resetSeconds } satisfies DeployBudget },
  );
}

function paymentFailed(
  outcome: Exclude<ChargeOutcome, { kind: 'succeeded' }>,
  orderId: number,
  paymentAttemptId: number,
  deploys: DeployBudget,
): CodedError {
  const isDeclined = outcome.kind === 'declined';
  const failure: PaymentFailure = {
    reason: isDeclined ? 'charge_declined' : 'charge_unconfirmed',
    orderId,
    paymentAttemptId,
    deploys,
  };
  return new CodedError(
    'orders.payment_failed',
    isDeclined
      ? 'The saved card was declined, so no server was ordered. Add credit or another card in the portal.'
      : 'The payment was not confirmed, so no server was ordered. Should it still arrive, it is given back.',
    { failure },
  );
}

function notEligible(refusal: AccessRefusal | null): CodedError {
  if (refusal === null) return new CodedError('servers.not_found', 'There is no such account.');
  return new CodedError('orders.not_eligible', describeRefusal(refusal), { refusal });
}

/** Cards are charged in cents; what is charged is what is credited. */
function wholeCents(quanta: number): number {
  return Math.ceil(quanta / 100) * 100;
}

/** What an order is for. Each step runs in a transaction of the order. */
export interface OrderWork {
  /**
   * Holds everything that carrying out the order needs, so that nothing can refuse it once it is paid. What it returns
   * is stored with the order. Its refusals are `CodedError`s.
   */
  hold(tx: Queryable, order: store.StoredOrder): Promise<store.Held>;
  /** Makes the server's row and its provisioning job out of what is held; returns the server's id. */
  queue(tx: Queryable, order: store.HeldOrder): Promise<number>;
  /** Frees what an order holds that will not be carried out. */
  release(tx: Queryable, held: store.Held): Promise<void>;
}

export interface OrderForecast {
  /** Why the order would be refused, in the words of the real call; null when it would be placed. */
  reason: string | null;
  /** Whether the account may deploy this plan at all. */
  isEligible: boolean;
  /** What the card would be charged; it becomes credit. Null when the order would be refused. */
  dueQuanta: number | null;
  balanceQuanta: number | null;
}

/** Carries the rehearsed order out of the transaction that it undoes. */
class Rehearsed extends Error {
  readonly committed: Awaited<ReturnType<typeof commitOrder>>;
  constructor(committed: Rehearsed['committed']) {
    super('rehearsed');
    this.committed = committed;
  }
}

/** Places the order by the same code and undoes it: no row, no deploy slot and no charge is left. */
export async function forecastOrder(deps: OrdersDeps, order: NewOrder): Promise<OrderForecast> {
  try {
    return await deps.takeTurn(order.tenantId, () =>
      inTransaction(deps.db(), async (tx) => {
        throw new Rehearsed(await commitOrder(deps, tx, order));
      }),
    );
  } catch (error) {
    if (error instanceof Rehearsed) {
      const { next, balanceQuanta } = error.committed;
      const dueQuanta = 'charge' in next ? next.charge.amountQuanta : 0;
      return { reason: null, isEligible: true, dueQuanta, balanceQuanta };
    }
    const reason = reasonOf(error);
    if (reason === null) throw error;
    const isEligible = (error as CodedError).code !== 'orders.not_eligible';
    return { reason, isEligible, dueQuanta: null, balanceQuanta: null };
  }
}

function reasonOf(error: unknown): string | null {
  if (!(error instanceof CodedError)) return null;
  if (error.code === 'orders.not_eligible') return (error.details.refusal as AccessRefusal).reason;
  if (error.code === 'orders.deploy_rate') return 'deploy_rate';
  return error.code === 'servers.capacity' ? 'capacity_unavailable' : null;
}
