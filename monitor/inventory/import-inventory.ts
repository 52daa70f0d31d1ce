import { takes } from '#contracts/admin-api/contract.ts';
import {
  type InventoryChange,
  inventoryChangeKinds,
  inventoryChangesFlag,
  inventoryChangesLimitMax,
} from '#contracts/admin-api/inventory-changes.ts';
import { type InventoryVm, inventoryContract } from '#contracts/admin-api/schemas.ts';
import type { Devices } from '#monitor/devices/index.ts';
import type { Events } from '#monitor/events/index.ts';
import { type OpenConnection, OperationsError } from '#monitor/operations-client/index.ts';
import { applyListing, type ChangedAddress } from '#monitor/placements/index.ts';
import type { Sites } from '#monitor/sites/index.ts';
import { ifHeld, type Lease } from '#service-kit/leases/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { findMatches, type InventoryMachine, placesOf, toMachine } from './inventory.ts';
import { retireMachines } from './retire-machines.ts';
import {
  addChanges,
  databaseTime,
  type ImportCounts,
  listStateChanges,
  listTombstonesSince,
  listUnlisted,
  lockInventory,
  readChangesCursor,
  readListedAt,
  upsertMachines,
  writeChangesCursor,
  writeSuccess,
} from './store.ts';

/** An older inventory is marked as old (NET-2.1.2), by its last import or by its own timestamp. */
export const inventoryStaleMs = 15 * 60_000;
const pageSize = 500;
const machinesMax = 200_000;
/** Maximum rows of one statement. */
const batchSize = 1_000;

export interface ImportDeps {
  db: () => Queryable;
  devices: Devices;
  events: Events;
  sites: Sites;
  /** Addresses that now belong to other sensors; called in the transaction of the import. */
  onPlaced: (trx: Queryable, changed: readonly ChangedAddress[]) => Promise<void>;
}

/**
 * Reads all pages of the inventory, then applies it in one transaction; null when the lease was lost meanwhile.
 *
 * An incomplete listing is not applied, so a failure leaves machines and matches unchanged (NET-2.1.2). A machine with
 * a notice after the start of the listing is skipped, because its page may be older than the notice (NET-4.7).
 */
export async function importInventory(
  deps: ImportDeps,
  client: OpenConnection['client'],
  lease: Lease,
  renew: () => Promise<boolean>,
): Promise<ImportCounts | null> {
  const startedAt = await databaseTime(deps.db());
  const listed = await listAll(client, Date.parse(startedAt), renew);
  if (!listed) return null;
  const siteOf = new Map((await deps.sites.listClusters()).map((entry) => [entry.clusterId, entry.siteId]));
  const apply = async (trx: Queryable): Promise<ImportCounts> => {
    const destroyed = await listTombstonesSince(trx, startedAt);
    const machines = listed
      .map(toMachine)
      .filter(({ clusterId, serverId }) => !destroyed.has(`${clusterId}/${serverId}`));
    for (let i = 0; i < machines.length; i += batchSize) {
      const batch = machines.slice(i, i + batchSize);
      await noteStates(deps, trx, batch, siteOf);
      await upsertMachines(trx, batch);
    }
    // Before devices are locked: transactions that apply uploads take the two locks in this order.
    const changed = await applyListing(trx, placesOf(machines), await readListedAt(trx));
    if (changed.length > 0) await deps.onPlaced(trx, changed);
    const keys = machines.map(({ clusterId, serverId }) => ({ clusterId, serverId }));
    const unlisted = await listUnlisted(trx, keys);
    const retired = await retireMachines(
      deps,
      trx,
      unlisted.map((key) => ({ ...key, macs: [] })),
      siteOf,
    );
    const counts: ImportCounts = {
      virtual_machines: machines.length,
      unmapped: machines.filter(({ clusterId }) => !siteOf.has(clusterId)).length,
      devices_matched: await deps.devices.match(trx, findMatches(machines, siteOf)),
      ...retired,
      destroyed_skipped: listed.length - machines.length,
    };
    await writeSuccess(trx, counts, startedAt);
    return counts;
  };
  return ifHeld(deps.db(), lease, apply, lockInventory);
}

/** Servers that were switched on or off since the last import, as events of their sites. */
async function noteStates(
  { events }: Pick<ImportDeps, 'events'>,
  trx: Queryable,
  machines: readonly InventoryMachine[],
  siteOf: ReadonlyMap<number, number>,
): Promise<void> {
  for (const { clusterId, serverName, addresses, before, after } of await listStateChanges(trx, machines)) {
    const siteId = siteOf.get(clusterId);
    if (siteId === undefined) continue;
    const details = { server: serverName, before, after, addresses };
    await events.record(trx, { kind: 'server_state_changed', siteId, details });
  }
}

async function listAll(
  client: OpenConnection['client'],
  nowMs: number,
  renew: () => Promise<boolean>,
): Promise<InventoryVm[] | null> {
  const listed = new Map<number, InventoryVm>();
  let afterId: number | null = null;
  for (;;) {
    const page = await client.listVms(afterId, pageSize);
    // An old listing must neither end newer machines nor restore destroyed ones.
    if (nowMs - Date.parse(page.as_of) > inventoryStaleMs) throw new OperationsError('stale');
    for (const vm of page.vms) listed.set(vm.id, vm);
    if (page.next_after_id === null) return [...listed.values()];
    // A cursor that does not advance would never end, and a listing without an end is invalid.
    if (afterId !== null && page.next_after_id <= afterId) throw new OperationsError('malformed');
    if (listed.size > machinesMax) throw new OperationsError('malformed');
    if (!(await renew())) return null;
    afterId = page.next_after_id;
  }
}

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
