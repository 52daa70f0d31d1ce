import { takes } from '#contracts/admin-api/contract.ts';
import {
  type InventoryChange,
  inventoryChangeKinds,
  inventoryChangesFlag,
  inventoryChangesLimitMax,
} from '#contracts/admin-api/inventory-changes.ts';
import { inventoryContract } from '#contracts/admin-api/schemas.ts';
import { type OpenConnection, OperationsError } from '#monitor/operations-client/index.ts';
import { ifHeld, type Lease } from '#service-kit/leases/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { addChanges, readChangesCursor, writeChangesCursor } from './store.ts';

/** Pages of one run; the next run goes on. */
const pagesMax = 100;

/**
 * Reads the changes of servers since the last run; nothing from an operations without such a list. Returns how many were new.
 *
 * A page and the cursor behind it are stored in one transaction under the lease, so a run that ends anywhere loses no change
 * and counts none twice. A connection with another address or token is read from the beginning.
 */
export async function importChanges(
  db: Queryable,
  open: Pick<OpenConnection, 'client' | 'capabilities' | 'revision'>,
  lease: Lease,
  renew: () => Promise<boolean>,
): Promise<number> {
  if (!takes(open.capabilities, inventoryContract, inventoryChangesFlag)) return 0;
  let after = await readChangesCursor(db, open.revision);
  let added = 0;
  for (let pages = 0; pages < pagesMax; pages += 1) {
    const page = await open.client.listChanges(after, inventoryChangesLimitMax);
    // A cursor that stays where it is would never end.
    if (page.has_more && page.next_after === after) throw new OperationsError('malformed');
    if (page.next_after !== after) {
      const stored = await ifHeld(db, lease, async (trx) => {
        const count = await addChanges(trx, page.changes.filter(isKnown));
        await writeChangesCursor(trx, open.revision, page.next_after);
        return count;
      });
      if (stored === null) return added;
      added += stored;
      after = page.next_after;
    }
    if (!page.has_more || !(await renew())) return added;
  }
  return added;
}

/** A newer operations may tell of kinds that this version has no words for. */
function isKnown({ kind }: InventoryChange): boolean {
  return inventoryChangeKinds.some((known) => known === kind);
}
