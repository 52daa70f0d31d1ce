import type { InventoryVm } from '#contracts/admin-api/schemas.ts';
import type { Devices } from '#monitor/devices/index.ts';
import { type OpenConnection, OperationsError } from '#monitor/operations-client/index.ts';
import { applyListing, type ChangedAddress } from '#monitor/placements/index.ts';
import type { Sites } from '#monitor/sites/index.ts';
import { holdsTerm, type Lease } from '#service-kit/leases/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { findMatches, placesOf, toMachine } from './inventory.ts';
import { retireMachines } from './retire-machines.ts';
import {
  databaseTime,
  type ImportCounts,
  listTombstonesSince,
  listUnlisted,
  lockInventory,
  upsertMachines,
  writeSuccess,
} from './store.ts';

/** An inventory that is older than this is called old (NET-2.1.2), whether by its last import or by its own stamp. */
export const inventoryStaleMs = 15 * 60_000;
const pageSize = 500;
const machinesMax = 200_000;
/** Rows of one statement. */
const batchSize = 1_000;

export interface ImportDeps {
  db: () => Queryable;
  devices: Devices;
  sites: Sites;
  /** Other sensors speak for these addresses than before; in the transaction of the import. */
  onPlaced: (trx: Queryable, changed: readonly ChangedAddress[]) => Promise<void>;
}

/**
 * Pages through the whole inventory, then applies it in one transaction; null when the lease was lost meanwhile.
 *
 * Nothing is applied from a listing that broke off, so a failure leaves machines and matches as they were (NET-2.1.2).
 * A machine whose notice came after the listing had begun is skipped: its page may be older than its end (NET-4.7).
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
  return deps
    .db()
    .transaction()
    .execute(async (trx) => {
      await lockInventory(trx);
      if (!(await holdsTerm(trx, lease.name, lease.term))) return null;
      const destroyed = await listTombstonesSince(trx, startedAt);
      const machines = listed
        .map(toMachine)
        .filter(({ clusterId, vmId }) => !destroyed.has(`${clusterId}/${vmId}`));
      for (let i = 0; i < machines.length; i += batchSize) {
        await upsertMachines(trx, machines.slice(i, i + batchSize));
      }
      // Before devices are locked: whoever applies uploads takes the two locks in this order.
      const changed = await applyListing(trx, placesOf(machines));
      if (changed.length > 0) await deps.onPlaced(trx, changed);
      const keys = machines.map(({ clusterId, vmId }) => ({ clusterId, vmId }));
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
    });
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
    // What was true a while ago must neither end machines that came since nor bring back those that went.
    if (nowMs - Date.parse(page.as_of) > inventoryStaleMs) throw new OperationsError('stale');
    for (const vm of page.vms) listed.set(vm.id, vm);
    if (page.next_after_id === null) return [...listed.values()];
    // A cursor that stands still would never end, and a listing without an end is none.
    if (afterId !== null && page.next_after_id <= afterId) throw new OperationsError('malformed');
    if (listed.size > machinesMax) throw new OperationsError('malformed');
    if (!(await renew())) return null;
    afterId = page.next_after_id;
  }
}
