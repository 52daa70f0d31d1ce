/**
 * Saved cards and their charges, through a payment gateway.
 *
 * A charge's id is stored before the gateway receives it and never reused; no gateway call is made inside a transaction.
 * A card payment becomes credit once. Reconciliation voids or refunds a charge with an unknown result, and lists it until
 * then. No card number is ever received.
 */
import { randomUUID } from 'node:crypto';
import { CodedError } from '#common/errors/index.ts';
import { type Actor, requireOperator, requireStaff, type Tenant } from '#operations/accounts/index.ts';
import { quantaPerUnit } from '#operations/billing/index.ts';
import { record } from '#service-kit/audit/index.ts';
import type { FeatureWork } from '#service-kit/jobs/index.ts';
import { inTransaction, isUniqueViolation, type Queryable } from '#service-kit/postgres/index.ts';
import type { Charge, ChargeOutcome, PaymentsDeps, SavedCard } from './charge.ts';
import {
  createReconciliationLoop,
  reconcileCharges,
  reconcileOrder,
  refundOrderCharge,
} from './reconcile-charges.ts';
import {
  finishCardSetup,
  makeCardDefault,
  removeCard,
  requireReach,
  requireSpender,
  startCardSetup,
} from './save-card.ts';
import * as store from './store.ts';
import { takeCharge } from './take-charge.ts';

export {
  type Charge,
  type ChargeOutcome,
  type ChargeState,
  isUnconfirmedTooLong,
  type SavedCard,
} from './charge.ts';
export type { PaymentGateway } from './gateways/gateway.ts';
export { createGateway, gatewayCallbacks } from './gateways/index.ts';
export { createTestGateway } from './gateways/test.ts';

export interface NewOrderCharge {
  tenantId: number;
  orderId: number;
  amountQuanta: number;
}

export type Payments = ReturnType<typeof createPayments>;

const quantaPerCent = quantaPerUnit / 100;
const creditQuantaMin = 5 * quantaPerUnit;
const creditQuantaMax = 10_000 * quantaPerUnit;

export function createPayments(deps: PaymentsDeps) {
  const gateway = deps.gateway.name;

  async function intend(
    tx: Queryable,
    charge: Omit<store.NewCharge, 'cardId' | 'gateway'>,
  ): Promise<Charge | null> {
    const card = await store.findChargeableCard(tx, charge.tenantId, gateway);
    if (card === null) return null;
    const made = await store.insertCharge(tx, { ...charge, cardId: card.id, gateway });
    if (made === null)
      throw new CodedError('payments.closed', 'This account is closed: nothing is charged any more.');
    return made;
  }

  return {
    /** What it does beside the calls. */
    work: { parts: [createReconciliationLoop(deps)] } satisfies FeatureWork,
    ...{ gatewayName: gateway, cardEntry: deps.gateway.cardEntry },
    /** The default card first. */
    async listCards(actor: Actor, tenantId: number): Promise<SavedCard[]> {
      requireReach(actor, tenantId);
      return store.listCards(deps.db(), tenantId, gateway);
    },
    /** The address at which the customer gives a card to the gateway. */
    startCardSetup: (
      actor: Actor,
      tenant: Pick<Tenant, 'id' | 'name'> & { email: string | null },
      urls: { returnUrl: string; cancelUrl: string },
    ) => startCardSetup(deps, actor, tenant, urls),
    /** Saves the card and makes it the default. Throws `payments.no_card`, `payments.unavailable`. */
    finishCardSetup: (actor: Actor, tenantId: number, reference: string) =>
      finishCardSetup(deps, actor, tenantId, reference),
    /** False when the card is not one of the tenant's. */
    makeCardDefault: (actor: Actor, tenantId: number, cardId: number) =>
      makeCardDefault(deps, actor, tenantId, cardId),
    removeCard: (actor: Actor, tenantId: number, cardId: number) => removeCard(deps, actor, tenantId, cardId),
    /**
     * Charges the default card and adds credit. `formId` names the form that was sent: sent twice, it charges once. Throws
     * `payments.no_card`, `payments.bad_amount`, `payments.repeated`, `payments.closed`.
     */
    async addCredit(
      actor: Actor,
      tenantId: number,
      { amountQuanta, formId }: { amountQuanta: number; formId: string },
    ): Promise<ChargeOutcome> {
      requireSpender(actor, tenantId);
      if (amountQuanta < creditQuantaMin || amountQuanta > creditQuantaMax || amountQuanta % quantaPerCent)
        throw new CodedError('payments.bad_amount', 'Add between 5.00 and 10,000.00, in whole cents.');
      if (!/^[0-9a-f-]{36}$/.test(formId))
        throw new CodedError('payments.bad_amount', 'The form is out of date. Reload the page.');
      const key = `chg_${tenantId}_${formId}`;
      const intent = { key, tenantId, orderId: null, purpose: 'credit' as const, amountQuanta };
      const charge = await inTransaction(deps.db(), async (trx) => {
        const intended = await intend(trx, intent);
        const subject = { kind: 'tenant', id: tenantId };
        const after = { amountQuanta, chargeId: intended?.id, cardId: intended?.cardId };
        if (intended) await record(trx, actor, { operation: 'credit.charge', subject, tenantId, after });
        return intended;
      }).catch((error) => {
        if (!isUniqueViolation(error)) throw error;
        throw new CodedError('payments.repeated', 'This form was sent before; nothing was charged again.');
      });
      if (charge === null)
        throw new CodedError('payments.no_card', 'There is no card that can be charged. Add one first.');
      return takeCharge(deps, charge, async () => {});
    },
    /** Commits the intent to charge the default card for an order, in the order's own transaction; null without a card. */
    intendOrderCharge: (tx: Queryable, charge: NewOrderCharge) =>
      intend(tx, { ...charge, key: `chg_${randomUUID()}`, purpose: 'order' }),
    /** Takes an intended charge. `whenSettled` runs in the transaction that stores the outcome. */
    takeCharge: (charge: Charge, whenSettled: (tx: Queryable, outcome: ChargeOutcome) => Promise<void>) =>
      takeCharge(deps, charge, whenSettled),
    /**
     * Undoes the charge of an order that can't be carried out: in this transaction its credit is taken off again and the
     * charge is handed to reconciliation, which gives the money back. False when no charge of the order had succeeded.
     */
    refundOrderCharge,
    /** Reconciles the charge of this order now, if it waits. Never rejects for a gateway that does not answer. */
    reconcileOrder: (orderId: number) => reconcileOrder(deps, orderId),
    /** Newest first. */
    async listCharges(actor: Actor, tenantId: number, limit: number): Promise<Charge[]> {
      requireReach(actor, tenantId);
      return store.listChargesOfTenant(deps.db(), tenantId, limit);
    },
    /** Charges that wait for reconciliation, then those that it has ended. Staff only. */
    async listReconciled(actor: Actor, limit: number): Promise<Charge[]> {
      requireStaff(actor);
      return store.listReconciled(deps.db(), limit);
    },
    /** Lets reconciliation look at a charge now; false when it does not wait. Operators only. */
    async retryReconciliation(actor: Actor, chargeId: number): Promise<boolean> {
      requireOperator(actor);
      return inTransaction(deps.db(), async (trx) => {
        if (!(await store.scheduleReconciliation(trx, { id: chargeId }))) return false;
        const subject = { kind: 'charge', id: chargeId };
        await record(trx, actor, { operation: 'charge.retry_reconciliation', subject });
        return true;
      });
    },
    /** One pass over the charges that are due. */
    reconcile: () => reconcileCharges(deps),
    /** Lets reconciliation look at the charge of a gateway's callback now; false when it is not the gateway's. */
    async takeCallback(rawBody: Buffer, signature: string): Promise<boolean> {
      const callback = deps.gateway.readCallback?.(rawBody, signature) ?? null;
      if (callback === null) return false;
      if (callback.chargeKey !== null)
        await store.scheduleReconciliation(deps.db(), { key: callback.chargeKey });
      return true;
    },
  };
}
