import { bookEntry } from '#operations/billing/index.ts';
import type { DueOverage } from '#operations/metering/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { MaintenanceDeps } from './index.ts';

/** Few at a time: while a month's row is locked, its account's requests wait to be counted. */
const batchMax = 20;

/**
 * Charges what is owed for requests beyond the free ones, of this month and of all before it; returns how many charges
 * were booked. A charge and the mark of what it paid for are one transaction, and its reference names account, month
 * and mark, so the ledger refuses to take it twice whatever the code does.
 */
export async function chargeOverage(deps: Pick<MaintenanceDeps, 'db' | 'metering'>): Promise<number> {
  await deps.metering.closeMonths();
  let booked = 0;
  for (;;) {
    const charged = await deps
      .db()
      .transaction()
      .execute(async (tx) => {
        const due = await deps.metering.lockDueOverage(tx, 0, batchMax);
        for (const month of due) await chargeMonth(deps, tx, month);
        return due.length;
      });
    if (charged === 0) return booked;
    booked += charged;
  }
}

async function chargeMonth(
  deps: Pick<MaintenanceDeps, 'metering'>,
  tx: Queryable,
  due: DueOverage,
): Promise<void> {
  await bookEntry(tx, {
    tenantId: due.tenantId,
    amountQuanta: -due.quanta,
    description: `API requests beyond the free ones, ${due.period}`,
    metadata: {
      source: 'api_overage',
      reference: `${due.period}:${due.chargedCountAfter}`,
      period: due.period,
      requests: due.chargedCountAfter - due.chargedCount,
      overage_charged_count: due.chargedCountAfter,
    },
  });
  await deps.metering.noteCharged(tx, due);
}
