import { endDebtSuspension, suspendForDebt } from '#operations/accounts/index.ts';
import { listDebtors, listSettledDebtors, lockFreeBalances } from '#operations/billing/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { MaintenanceDeps } from './deps.ts';

/**
 * Suspends active accounts whose credit is negative, and takes back such suspensions where it no longer is. What an
 * operator suspended stays suspended. The balance is looked at again with its row locked, so a payment that arrives at
 * the same moment is not overlooked; an account that is locked by another transaction waits for the next tick.
 */
export async function settleSuspensions(
  deps: Pick<MaintenanceDeps, 'db'>,
): Promise<{ suspended: number; reactivated: number }> {
  const settle = async (
    tenantIds: readonly number[],
    isDue: (balance: number) => boolean,
    change: Change,
  ) => {
    let changed = 0;
    for (const tenantId of tenantIds) {
      const isChanged = await deps
        .db()
        .transaction()
        .execute(async (tx) => {
          const balance = (await lockFreeBalances(tx, [tenantId])).get(tenantId);
          return balance !== undefined && isDue(balance) && change(tx, tenantId);
        });
      if (isChanged) changed += 1;
    }
    return changed;
  };
  const suspended = await settle(await listDebtors(deps.db()), (balance) => balance < 0, suspendForDebt);
  const settled = await listSettledDebtors(deps.db());
  const reactivated = await settle(settled, (balance) => balance >= 0, endDebtSuspension);
  return { suspended, reactivated };
}

type Change = (tx: Queryable, tenantId: number) => Promise<boolean>;
