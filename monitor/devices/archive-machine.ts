import type { Events } from '#monitor/events/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { archiveDevices, endMatches, resolveConflicts } from './store.ts';

export interface ArchiveMachineInput {
  clusterId: number;
  vmId: number;
  /** Site that the cluster is mapped to; null leaves only devices that were matched to the machine. */
  siteId: number | null;
  /** The machine's MACs, canonical. */
  macs: readonly string[];
  /** Those of them that another live machine of the site carries now: they stay. */
  keptMacs: readonly string[];
}

/**
 * Archives the devices of a machine that is gone, releases their claims and resolves the conflicts that only those
 * claims held. Deletes nothing (NET-4.7). Returns how many devices were archived by this call.
 */
export async function archiveMachine(
  deps: { events: Events },
  trx: Queryable,
  gone: ArchiveMachineInput,
): Promise<number> {
  const { archived, addresses } = await archiveDevices(trx, gone);
  await endMatches(trx, gone.clusterId, gone.vmId);
  for (const [siteId, released] of groupBySite(addresses)) {
    for (const address of await resolveConflicts(trx, siteId, released)) {
      await deps.events.record(trx, {
        kind: 'ip_conflict_resolved',
        siteId,
        details: { address, cluster_id: gone.clusterId, virtual_machine_id: gone.vmId },
      });
    }
  }
  return archived;
}

function groupBySite(addresses: readonly { siteId: number; address: string }[]): Map<number, string[]> {
  const groups = new Map<number, string[]>();
  for (const { siteId, address } of addresses) {
    const group = groups.get(siteId);
    if (group) group.push(address);
    else groups.set(siteId, [address]);
  }
  return groups;
}
