import type { Events } from '#monitor/events/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { placeDetails } from './record-sightings.ts';
import { insertBindings, lockAllSites, type NewBinding, resolveConflicts } from './sightings-store.ts';
import { archiveDevices, endMatches, type ReleasedClaim } from './store.ts';

export interface ArchiveMachineInput {
  clusterId: number;
  vmId: number;
  /** Site of the cluster's mapping; null archives only devices that were matched to the machine. */
  siteId: number | null;
  /** The machine's MACs, canonical. */
  macs: readonly string[];
  /** Those of them that another live machine of the site uses now; their devices stay. */
  keptMacs: readonly string[];
}

/**
 * Archives the devices of a destroyed machine, releases their claims, and resolves the conflicts that only those claims
 * caused. Deletes nothing (NET-4.7). Returns the number of devices archived by this call.
 */
export async function archiveMachine(
  deps: { events: Events },
  trx: Queryable,
  gone: ArchiveMachineInput,
): Promise<number> {
  await lockAllSites(trx);
  const { archived, released } = await archiveDevices(trx, gone);
  await insertBindings(trx, released.flatMap(toLaterBinding));
  await endMatches(trx, gone.clusterId, gone.vmId);
  for (const { siteId, macs, ...place } of await resolveConflicts(trx, released)) {
    await deps.events.record(trx, {
      kind: 'ip_conflict_resolved',
      siteId,
      details: {
        ...placeDetails(place),
        mac_addresses: macs,
        reason: 'machine_destroyed',
        cluster_id: gone.clusterId,
        virtual_machine_id: gone.vmId,
      },
    });
  }
  return archived;
}

function toLaterBinding({ laterMinute, ...claim }: ReleasedClaim): NewBinding[] {
  if (laterMinute === null) return [];
  return [
    { ...claim, id: null, firstMinute: laterMinute, lastMinute: laterMinute, endedMs: null, endedBy: null },
  ];
}
