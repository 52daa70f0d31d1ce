import type { DestroyNotice, DestroyNoticeResult } from '#contracts/destroy-notice/index.ts';
import { type Devices, parseMac } from '#monitor/devices/index.ts';
import { endServers } from '#monitor/placements/index.ts';
import type { Sites } from '#monitor/sites/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { addTombstones, listCarriedMacs, lockInventory, type MachineKey, retireMachine } from './store.ts';

/** A destroyed machine, with MACs that the last import may not have known. */
export interface GoneMachine extends MachineKey {
  macs: readonly string[];
}

export interface RetireResult {
  destroyed_applied: number;
  devices_archived: number;
  /** Machines that were unknown or ended already and had no device. */
  destroyed_skipped: number;
}

/**
 * The teardown of ended machines, the same for a notice and for an import (NET-4.7): retires machine and interfaces,
 * archives the devices, releases claims. Call under `lockInventory`.
 */
export async function retireMachines(
  deps: { devices: Devices },
  trx: Queryable,
  gone: readonly GoneMachine[],
  siteOf: ReadonlyMap<number, number>,
): Promise<RetireResult> {
  const result: RetireResult = { destroyed_applied: 0, devices_archived: 0, destroyed_skipped: 0 };
  for (const { clusterId, serverId, macs: told } of gone) {
    const { wasLive, macs: known } = await retireMachine(trx, { clusterId, serverId });
    const siteId = siteOf.get(clusterId) ?? null;
    const macs = [...new Set([...known, ...told])];
    const siteClusters = [...siteOf].filter(([, site]) => site === siteId).map(([cluster]) => cluster);
    // A MAC that moved to another live machine must not archive that machine's device, even if this machine gave it up
    // before.
    const matched = await deps.devices.listMatchedMacs(trx, clusterId, serverId);
    const keptMacs = await listCarriedMacs(trx, siteClusters, [...macs, ...matched]);
    const archived = await deps.devices.archiveMachine(trx, { clusterId, serverId, siteId, macs, keptMacs });
    result.devices_archived += archived;
    if (wasLive || archived > 0) result.destroyed_applied += 1;
    else result.destroyed_skipped += 1;
  }
  return result;
}

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
        .filter(([serverId]) => fresh.has(serverId))
        .map(([serverId, macs]) => ({ clusterId: notice.cluster_id, serverId, macs }));
      await endServers(trx, gone);
      const result = await retireMachines(deps, trx, gone, siteOf);
      return { ...result, duplicates: notice.virtual_machines.length - gone.length };
    });
}
