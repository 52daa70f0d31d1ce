import type { CustomerActor } from '#operations/accounts/index.ts';
import { backdateAllocations, ensurePool } from '#operations/addresses/index.ts';
import { ensureCluster, ensureNode } from '#operations/clusters/index.ts';
import { backdateServers } from '#operations/servers/index.ts';
import { inTransaction } from '#service-kit/postgres/index.ts';
import type { Features } from '../../features.ts';

/** Customers' servers on a hypervisor that does not exist, whose traffic the demo makes up: `SVC_DEMO_SIMULATED_SITE`. */
export interface SimulatedSite {
  node: string;
  pool: { prefix: string; gateway: string; firstAddress: string; lastAddress: string };
  /** Their addresses and MACs are those of the prepared guests, in this order. */
  servers: readonly { name: string; email: string; address: string }[];
  /** How much older than they are they are to look. */
  days: number;
}

/** Each has this plan: the node has room for exactly these, so that nothing else is ever placed there. */
const plan = { slug: 'kvm-2', vcpus: 2, memoryMb: 4_096, diskGb: 80 };

/**
 * Makes the cluster and orders its servers that are missing; returns the cluster's id and the ids of what was ordered. Before the
 * other cluster has a node: the cheapest way to place them here.
 */
export async function seedSimulatedServers(
  { features, locationId }: { features: Features; locationId: number },
  site: SimulatedSite,
): Promise<{ clusterId: number; ordered: number[] }> {
  const { database, accounts, addresses, ordering } = features;
  const clusterId = await ensureCluster(database.db, { locationId, name: 'nyc1-sim', driver: 'simulated' });
  const room = (each: number) => each * site.servers.length;
  await ensureNode(database.db, {
    ...{
      clusterId,
      name: site.node,
      driver: 'simulated',
      uri: null,
      storagePool: null,
      bridge: 'eno1',
      networkBridges: null,
    },
    ...{ vcpus: room(plan.vcpus), memoryMb: room(plan.memoryMb), diskGb: room(plan.diskGb) },
  });
  await ensurePool(database.db, { clusterId, ...site.pool });
  const query = { afterId: 0, limit: 1_000, clusterIds: [clusterId] };
  const { allocations } = await addresses.listActiveAllocations(query);
  const taken = new Set(allocations.map(({ address }) => address));
  const ordered: number[] = [];
  for (const { name, email, address } of site.servers) {
    if (taken.has(address)) continue;
    const owner = await accounts.findPersonByEmail(email);
    const actor: CustomerActor | null = owner && (await accounts.customerActorOf(owner.id));
    if (actor === null) continue;
    const wanted = { tenantId: actor.tenantIds[0]!, plan: plan.slug, image: 'debian-13', name };
    ordered.push((await ordering.createServer(actor, wanted)).serverId);
  }
  return { clusterId, ordered };
}

/** Servers that run, with a past in which traffic may have been observed. */
export async function giveThemAPast({ database }: Features, serverIds: readonly number[], days: number) {
  await inTransaction(database.db, async (tx) => {
    await backdateServers(tx, serverIds, days);
    await backdateAllocations(tx, serverIds, days);
  });
}
