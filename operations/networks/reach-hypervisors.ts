/** Which hypervisors have to know about a network: those of its location's nodes. */
import { systemActor } from '#operations/accounts/index.ts';
import { findNodeOfServer } from '#operations/clusters/index.ts';
import type { HypervisorDriver } from '#operations/hypervisors/index.ts';
import type { NetworksDeps } from './deps.ts';

/** The hypervisor that a server's guest is on; null for a server that has no room anywhere any more. */
export async function driverOf(deps: NetworksDeps, serverId: number): Promise<HypervisorDriver | null> {
  const node = await findNodeOfServer(deps.db(), serverId);
  return node === null ? null : deps.hypervisors.of(node);
}

/** The hypervisors of a location, each once, however many nodes one of them stands for. */
export async function driversOf(deps: NetworksDeps, locationId: number): Promise<Set<HypervisorDriver>> {
  const clusters = await deps.clusters.listClusters(locationId);
  const nodes = await Promise.all(clusters.map((one) => deps.clusters.listNodes(systemActor, one.id)));
  return new Set(nodes.flat().map((node) => deps.hypervisors.of(node)));
}
