import type { BandwidthTerms } from '#operations/bandwidth/index.ts';
import { appendLedgerEntry, lockFreeBalances } from '#operations/billing/index.ts';
import type { UsingAccount } from '#operations/views/bandwidth-store.ts';
import { inTransaction, type Queryable } from '#service-kit/postgres/index.ts';
import type { MaintenanceDeps } from './index.ts';

type Deps = Pick<MaintenanceDeps, 'db' | 'bandwidth'>;

/** Accounts whose balances are locked together. */
const batchMax = 20;

/**
 * Charges the traffic beyond the pools of months that are over; returns how many charges were entered. An account's month is written down
 * once, in the transaction of its charge, and the charge's reference is the month, so the ledger refuses a second one even if
 * this code has a fault. An account that is locked is left to the next tick, and its month stays open for it.
 */
export async function chargeBandwidth(deps: Deps): Promise<number> {
  await deps.bandwidth.noteTerms();
  let chargedCount = 0;
  for (const terms of await deps.bandwidth.listDueMonths()) {
    const accounts = terms.tbQuanta === 0 ? [] : await deps.bandwidth.listUnsettledAccounts(terms.period);
    let leftCount = 0;
    for (let at = 0; at < accounts.length; at += batchMax) {
      const batch = accounts.slice(at, at + batchMax);
      const { charged, left } = await inTransaction(deps.db(), (tx) => chargeBatch(deps, tx, terms, batch));
      chargedCount += charged;
      leftCount += left;
    }
    if (leftCount === 0) await deps.bandwidth.settleMonth(terms.period);
  }
  return chargedCount;
}

async function chargeBatch(
  { bandwidth }: Deps,
  tx: Queryable,
  terms: BandwidthTerms,
  batch: readonly UsingAccount[],
): Promise<{ charged: number; left: number }> {
  const free = await lockFreeBalances(
    tx,
    batch.map(({ tenantId }) => tenantId),
  );
  const payable = batch.filter(({ tenantId }) => free.has(tenantId));
  let charged = 0;
  for (const account of payable) {
    const figures = await bandwidth.settleAccount(tx, terms, account);
    if (figures === null || figures.quanta === 0) continue;
    await appendLedgerEntry(tx, {
      tenantId: account.tenantId,
      amountQuanta: -figures.quanta,
      description: `Traffic beyond the pool, ${terms.period}`,
      metadata: {
        source: 'bandwidth_overage',
        reference: terms.period,
        period: terms.period,
        bytes: figures.chargeableBytes,
        used_bytes: figures.usedBytes,
        allowance_bytes: figures.allowanceBytes,
        tb_quanta: terms.tbQuanta,
      },
    });
    charged += 1;
  }
  return { charged, left: batch.length - payable.length };
}
