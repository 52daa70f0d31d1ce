import { appendLedgerEntry, forgetDeposit } from '#operations/billing/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import * as store from './store.ts';

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
