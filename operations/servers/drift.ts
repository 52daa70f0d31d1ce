/**
 * What nodes hold beside what is sold: every five minutes each hypervisor is looked at, and what differs is kept until a look
 * finds it gone. Nothing is changed by itself: a person may know better than the database what a guest is for.
 */
import type { Clock } from '#common/clock/index.ts';
import { CodedError, describeError } from '#common/errors/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { type Actor, requireOperator, systemActor } from '#operations/accounts/index.ts';
import type { Clusters, Node } from '#operations/clusters/index.ts';
import {
  type FoundGuest,
  groupByDriver,
  guestName,
  type Hypervisors,
  serverIdOfGuest,
} from '#operations/hypervisors/index.ts';
import { listSoldServers, type SoldServer } from '#operations/views/server-store.ts';
import { createLeasedLoop, type LeasedLoop } from '#service-kit/leases/index.ts';
import { inTransaction, type Queryable } from '#service-kit/postgres/index.ts';
import { restoreSize } from './change-machine.ts';
import { type Difference, listDrifts, replaceDrifts } from './drift-store.ts';
import type { ServersDeps } from './index.ts';

interface DriftDeps {
  db: () => Queryable;
  clusters: Clusters;
  hypervisors: Hypervisors;
  reporter: Reporter;
}

/** One look at every node; returns how many differences there are. A node that does not answer keeps those it had. */
export async function findDrift(deps: DriftDeps): Promise<number> {
  let count = 0;
  const all = await deps.clusters.listNodes(systemActor, null);
  for (const [driver, nodes] of groupByDriver(deps.hypervisors, all)) {
    const nodeIds = nodes.map((node) => node.id);
    try {
      // What changed while the hypervisor was looked at is left to the next look.
      const before = await listSoldServers(deps.db(), nodeIds);
      const found = await driver.inspectGuests();
      const sold = await listSoldServers(deps.db(), nodeIds);
      const known = new Set(before.map((server) => JSON.stringify(server)));
      const settled = sold.filter((one) => one.isSettled && known.has(JSON.stringify(one)));
      const names = new Set([...before, ...sold].map((server) => guestName(server.id)));
      const differences = [
        ...settled.flatMap((one) => ofServer(one, found)),
        ...strays(nodes[0]!, found, names),
      ];
      await inTransaction(deps.db(), (tx) => replaceDrifts(tx, nodeIds, differences));
      count += differences.length;
    } catch (error) {
      const node = nodes[0]!.name;
      deps.reporter.warn('guests could not be compared', { node, error: describeError(error) });
    }
  }
  return count;
}

function ofServer(server: SoldServer, found: readonly FoundGuest[]): Difference[] {
  const at = { nodeId: server.nodeId, guest: guestName(server.id) };
  const present = found.find((one) => one.name === at.guest);
  if (present === undefined) return [{ ...at, kind: 'missing', detail: 'The node has no such guest.' }];
  const differences: Difference[] = [];
  const { vcpus, memoryMb } = present;
  if (vcpus !== null && memoryMb !== null && (vcpus !== server.vcpus || memoryMb !== server.memoryMb))
    differences.push({
      ...{ ...at, kind: 'size' },
      detail: `${vcpus} vCPU and ${memoryMb} MiB instead of ${server.vcpus} vCPU and ${server.memoryMb} MiB.`,
    });
  const macs = [present.macs, server.macs].map((list) => list.join(', ') || 'none');
  if (macs[0] !== macs[1])
    differences.push({
      ...{ ...at, kind: 'interfaces' },
      detail: `Network interfaces ${macs[0]} instead of ${macs[1]}.`,
    });
  return differences;
}

function strays(site: Node, found: readonly FoundGuest[], names: ReadonlySet<string>): Difference[] {
  return found
    .filter(({ name }) => serverIdOfGuest(name) !== null && !names.has(name))
    .map(({ name }) => ({
      ...{ nodeId: site.id, guest: name, kind: 'stray' as const },
      detail: 'No server is placed here under this name.',
    }));
}

/**
 * Mends a difference at an operator's request: sizes by shutting the guest down and starting it with those that are sold,
 * interfaces by applying the server's private networks again. Throws `servers.not_mendable` for the others, and what a
 * resize throws.
 */
export async function mendDrift(
  deps: ServersDeps,
  actor: Actor,
  drift: Pick<Difference, 'nodeId' | 'guest' | 'kind'>,
): Promise<void> {
  requireOperator(actor);
  const known = (await listDrifts(deps.db(), drift.nodeId)).find(
    (one) => one.guest === drift.guest && one.kind === drift.kind,
  );
  const serverId = serverIdOfGuest(drift.guest);
  if (known === undefined || serverId === null)
    throw new CodedError('servers.not_mendable', 'This difference is not there any more.');
  if (known.kind === 'size') return restoreSize(deps, { actor, scope: 'all', serverId });
  if (known.kind !== 'interfaces')
    throw new CodedError('servers.not_mendable', 'This difference has to be mended at the node.');
  const networks = await deps.networks.listAttachments(actor, null, serverId);
  if (networks.length === 0)
    throw new CodedError(
      'servers.not_mendable',
      'The server is on no private network, so its public interface has to be mended at the node.',
    );
  for (const { networkId } of networks) await deps.networks.syncNetwork(actor, null, networkId);
}

/** The loop that looks every five minutes, on one of the replicas. */
export function createDriftLoop(deps: DriftDeps & { clock: Clock }): LeasedLoop {
  return createLeasedLoop({
    name: 'operations.drift',
    intervalMs: 300_000,
    ttlSeconds: 300,
    ...deps,
    async run() {
      await findDrift(deps);
    },
  });
}
