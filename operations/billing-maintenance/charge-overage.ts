import { appendLedgerEntry, lockFreeBalances } from '#operations/billing/index.ts';
import type { DueOverage } from '#operations/metering/index.ts';
import { inTransaction, type Queryable } from '#service-kit/postgres/index.ts';
import type { MaintenanceDeps } from './index.ts';

/** Few at a time: while a month's row is locked, its account's requests wait to be counted. */
const batchMax = 20;

/**
 * Charges the requests above the free quota, of this month and all earlier ones; returns how many charges
 * were entered. A charge and the mark of what it paid for are one transaction, and its reference names account, month
 * and mark, so the ledger refuses a second charge even if this code has a fault.
 */
export async function chargeOverage(deps: Pick<MaintenanceDeps, 'db' | 'metering'>): Promise<number> {
  await deps.metering.closeMonths();
  let chargedCount = 0;
  let afterTenantId = 0;
  for (;;) {
    const { due, charged } = await inTransaction(deps.db(), (tx) => chargeBatch(deps, tx, afterTenantId));
    if (due.length === 0) return chargedCount;
    chargedCount += charged;
    // Every account of the batch is locked: the next tick comes back for them.
    if (charged === 0) afterTenantId = due.at(-1)!.tenantId;
  }
}

async function chargeBatch(
  deps: Pick<MaintenanceDeps, 'metering'>,
  tx: Queryable,
  afterTenantId: number,
): Promise<{ due: DueOverage[]; charged: number }> {
  const due = await deps.metering.lockDueOverage(tx, afterTenantId, batchMax);
  const free = await lockFreeBalances(
    tx,
    due.map((month) => month.tenantId),
  );
  const payable = due.filter((month) => free.has(month.tenantId));
  for (const month of payable) await chargeMonth(deps, tx, month);
  return { due, charged: payable.length };
}

async function chargeMonth(deps: Pick<MaintenanceDeps, 'metering'>, tx: Queryable, due: DueOverage) {
  await appendLedgerEntry(tx, {
    tenantId: due.tenantId,
    amountQuanta: -due.quanta,
    description: `API requests above the free quota, ${due.period}`,
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
