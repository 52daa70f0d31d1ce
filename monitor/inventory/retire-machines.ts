import type { Devices } from '#monitor/devices/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { listCarriedMacs, type MachineKey, retireMachine } from './store.ts';

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
  for (const { clusterId, vmId, macs: told } of gone) {
    const { wasLive, macs: known } = await retireMachine(trx, { clusterId, vmId });
    const siteId = siteOf.get(clusterId) ?? null;
    const macs = [...new Set([...known, ...told])];
    const siteClusters = [...siteOf].filter(([, site]) => site === siteId).map(([cluster]) => cluster);
    // A MAC that moved to another live machine must not archive that machine's device, even if this machine gave it up
    // before.
    const matched = await deps.devices.listMatchedMacs(trx, clusterId, vmId);
    const keptMacs = await listCarriedMacs(trx, siteClusters, [...macs, ...matched]);
    const archived = await deps.devices.archiveMachine(trx, { clusterId, vmId, siteId, macs, keptMacs });
    result.devices_archived += archived;
    if (wasLive || archived > 0) result.destroyed_applied += 1;
    else result.destroyed_skipped += 1;
  }
  return result;
}
