import type { DestroyNotice, DestroyNoticeResult } from '#contracts/destroy-notice/index.ts';
import { type Devices, parseMac } from '#monitor/devices/index.ts';
import { endServers } from '#monitor/placements/index.ts';
import type { Sites } from '#monitor/sites/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { retireMachines } from './retire-machines.ts';
import { addTombstones, lockInventory } from './store.ts';

/**
 * Applies a verified notice: one tombstone for each machine, and the teardown of machines without an earlier tombstone.
 *
 * The key is (cluster, machine), so a redelivery changes no row, even with other contents (NET-2.8). Machines that were
 * never imported are acknowledged too; their MACs allow the cleanup of a guest that existed only between two imports.
 */
export async function applyNotice(
  deps: { db: () => Queryable; devices: Devices; sites: Sites },
  notice: DestroyNotice,
): Promise<DestroyNoticeResult> {
  const macsOf = new Map<number, string[]>();
  for (const { id, mac_addresses } of notice.virtual_machines) {
    const macs = (mac_addresses ?? []).map(parseMac).filter((mac) => mac !== null);
    macsOf.set(id, [...(macsOf.get(id) ?? []), ...macs]);
  }
  const siteOf = new Map((await deps.sites.listClusters()).map((entry) => [entry.clusterId, entry.siteId]));
  return deps
    .db()
    .transaction()
    .execute(async (trx) => {
      await lockInventory(trx);
      const fresh = await addTombstones(trx, notice.cluster_id, notice.destroyed_at ?? null, [
        ...macsOf.keys(),
      ]);
      const gone = [...macsOf]
        .filter(([vmId]) => fresh.has(vmId))
        .map(([vmId, macs]) => ({ clusterId: notice.cluster_id, vmId, macs }));
      await endServers(trx, gone);
      const result = await retireMachines(deps, trx, gone, siteOf);
      return { ...result, duplicates: notice.virtual_machines.length - gone.length };
    });
}
