/**
 * Ends the charges whose outcome is unknown (the caller was told so, or the process died) and those whose order was
 * refused after the payment. No call waits for them any more, so each ends unpaid: ended at the gateway before money was
 * taken, or given back. A late success never buys anything.
 */
import { describeError } from '#common/errors/index.ts';
import { appendLedgerEntry, forgetDeposit } from '#operations/billing/index.ts';
import { createLeasedLoop, type LeasedLoop } from '#service-kit/leases/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { Charge, PaymentsDeps } from './charge.ts';
import * as store from './store.ts';

/** A charge this old whose outcome is unknown has lost its process: every call to a gateway ends sooner. */
const abandonSecondsDefault = 120;

/** Tries every charge that is due once; returns how many were ended. */
export async function reconcileCharges(deps: PaymentsDeps): Promise<number> {
  let ended = 0;
  for (;;) {
    const charge = await store.claimUnsettled(deps.db(), deps.abandonSeconds ?? abandonSecondsDefault);
    if (charge === null) return ended;
    if (await reconcile(deps, charge)) ended += 1;
  }
}

/** Tries the charge of one order, if it is due. */
export async function reconcileOrder(deps: PaymentsDeps, orderId: number): Promise<void> {
  const charge = await store.claimUnsettledOf(deps.db(), orderId);
  if (charge !== null) await reconcile(deps, charge);
}

async function reconcile(deps: PaymentsDeps, charge: Charge): Promise<boolean> {
  try {
    const end = await undo(deps, charge);
    if (end === 'open') {
      await store.noteAttempt(deps.db(), charge.id, 'the gateway has not decided yet');
      return false;
    }
    return await store.endUnconfirmed(deps.db(), charge.id, end);
  } catch (error) {
    await store.noteAttempt(deps.db(), charge.id, describeError(error));
    deps.reporter.warn('a charge waits for reconciliation', {
      charge: charge.id,
      attempts: charge.attempts,
      error: describeError(error),
    });
    return false;
  }
}

async function undo(deps: PaymentsDeps, charge: Charge): Promise<'voided' | 'refunded' | 'open'> {
  // Money is only ever asked for under a stored reference.
  if (charge.gatewayReference === null) return 'voided';
  if (charge.gateway !== deps.gateway.name)
    throw new Error(`the charge is at the ${charge.gateway} gateway, which is not configured`);
  return deps.gateway.undo(charge.key, charge.gatewayReference);
}

/** The loop that does it, on one of the replicas; claims make it safe on all of them. */
export function createReconciliationLoop(deps: PaymentsDeps): LeasedLoop {
  return createLeasedLoop({
    name: 'operations.reconcile_charges',
    intervalMs: 15_000,
    ttlSeconds: 120,
    ...deps,
    async run() {
      const ended = await reconcileCharges(deps);
      if (ended > 0) deps.reporter.info('unconfirmed charges ended', { ended });
    },
  });
}

/** See `Payments.refundOrderCharge`. The charge counts as unconfirmed until the gateway has given the money back. */
export async function refundOrderCharge(tx: Queryable, orderId: number): Promise<boolean> {
  const charge = await store.reopenOrderCharge(tx, orderId);
  if (charge === null) return false;
  await appendLedgerEntry(tx, {
    tenantId: charge.tenantId,
    amountQuanta: -charge.amountQuanta,
    description: `Card payment for order ${orderId} refunded`,
    metadata: {
      source: 'refund',
      reference: `charge:${charge.key}`,
      payment_attempt_id: charge.id,
      order_id: orderId,
    },
  });
  await forgetDeposit(tx, charge.tenantId);
  return true;
}
