/**
 * Takes a charge whose row is committed: the gateway learns of it, its name for the charge is stored, the money is
 * taken, the outcome is stored. One transaction for each step, no transaction open during a call, and the charge's key
 * is the one in its row: a crash anywhere leaves a row from which reconciliation knows what may have happened.
 */
import { describeError } from '#common/errors/index.ts';
import { appendLedgerEntry } from '#operations/billing/index.ts';
import { inTransaction, type Queryable } from '#service-kit/postgres/index.ts';
import type { Charge, ChargeOutcome, PaymentsDeps } from './charge.ts';
import type { GatewayState } from './gateways/gateway.ts';
import * as store from './store.ts';

/**
 * `whenSettled` runs in the transaction that stores the outcome. When another has taken the charge over meanwhile, the
 * outcome is `unconfirmed`, regardless of the gateway's answer: a payment is refunded.
 */
export async function takeCharge(
  deps: PaymentsDeps,
  charge: Charge,
  whenSettled: (tx: Queryable, outcome: ChargeOutcome) => Promise<void>,
): Promise<ChargeOutcome> {
  const settle = (state: Settlement['state'], detail: Settlement['detail'] = {}) =>
    settleOnce(deps, charge, { state, detail }, whenSettled);
  const prepared = await prepare(deps, charge);
  if (prepared.kind === 'declined') return settle('declined', { declineReason: prepared.reason });
  // Nothing was asked that could move money, so there is nothing to wait for.
  if (prepared.kind === 'unclear') return settle('voided', { error: prepared.error });
  if (!(await store.notePrepared(deps.db(), charge.id, prepared.reference))) return { kind: 'unconfirmed' };
  const state = await take(deps, charge, prepared.reference);
  switch (state.kind) {
    case 'succeeded':
      return settle('succeeded');
    case 'declined':
      return settle('declined', { declineReason: state.reason });
    case 'canceled':
      return settle('voided');
    default:
      return settle('unconfirmed', { error: state.error ?? 'the gateway has not decided yet' });
  }
}

interface Settlement {
  state: 'succeeded' | 'declined' | 'unconfirmed' | 'voided';
  detail: { declineReason?: string; error?: string };
}

type Prepared =
  | { kind: 'prepared'; reference: string }
  | { kind: 'declined'; reason: string }
  | { kind: 'unclear'; error: string };

async function prepare(deps: PaymentsDeps, charge: Charge): Promise<Prepared> {
  const parties = await store.findChargeParties(deps.db(), charge.id);
  const description = charge.purpose === 'order' ? `Order ${charge.orderId}: one month of credit` : 'Credit';
  try {
    return await deps.gateway.prepare({ ...charge, ...parties, description });
  } catch (error) {
    return { kind: 'unclear', error: describeError(error) };
  }
}

type Taken = Exclude<GatewayState, { kind: 'open' }> | { kind: 'open'; error?: string };

/** When the call's answer is lost the gateway is asked once how the charge stands; only a definite word counts. */
async function take(deps: PaymentsDeps, charge: Charge, reference: string): Promise<Taken> {
  try {
    return await deps.gateway.take(charge.key, reference);
  } catch (error) {
    try {
      return { ...(await deps.gateway.read(reference)), error: describeError(error) } as Taken;
    } catch {
      return { kind: 'open', error: describeError(error) };
    }
  }
}

async function settleOnce(
  deps: PaymentsDeps,
  charge: Charge,
  { state, detail }: Settlement,
  whenSettled: (tx: Queryable, outcome: ChargeOutcome) => Promise<void>,
): Promise<ChargeOutcome> {
  return inTransaction(deps.db(), async (tx) => {
    if (!(await store.settleCharge(tx, charge.id, state, detail))) return { kind: 'unconfirmed' };
    const outcome: ChargeOutcome =
      state === 'succeeded'
        ? { kind: 'succeeded' }
        : state === 'declined'
          ? { kind: 'declined', reason: detail.declineReason ?? 'declined' }
          : { kind: 'unconfirmed' };
    if (state === 'succeeded') await bookCharge(tx, charge);
    await whenSettled(tx, outcome);
    return outcome;
  });
}

/** What a card paid becomes credit, once: its reference is the charge. */
async function bookCharge(tx: Queryable, charge: Charge): Promise<void> {
  await appendLedgerEntry(tx, {
    tenantId: charge.tenantId,
    amountQuanta: charge.amountQuanta,
    description:
      charge.purpose === 'order' ? `Card payment for order ${charge.orderId}` : 'Credit paid by card',
    metadata: {
      source: 'deposit',
      reference: `charge:${charge.key}`,
      payment_attempt_id: charge.id,
      ...(charge.orderId === null ? {} : { order_id: charge.orderId }),
    },
  });
}
