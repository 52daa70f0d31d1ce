/**
 * Holds everything that an order's server needs before the order is paid: its room, its public addresses and its address
 * in a private network. Two orders never hold the same thing, so a paid order has nothing left that could refuse it.
 */
import { CodedError, hasCode } from '#common/errors/index.ts';
import type { Actor } from '#operations/accounts/index.ts';
import { holdAddresses, releaseHeldAddresses } from '#operations/addresses/index.ts';
import type { Location, Plan } from '#operations/catalog/index.ts';
import { type Cluster, listClusters, placeGuest, releaseRoom } from '#operations/clusters/index.ts';
import { holdNetwork, releaseHeldNetwork } from '#operations/networks/index.ts';
import {
  addServer,
  type FieldFault,
  type HeldServer,
  invalidServer,
  macOf,
  nextServerId,
  pickOffered,
} from '#operations/servers/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { Choice, OrderedServer, OrderRequest } from './create-server.ts';
import type { OrderingDeps } from './index.ts';
import type { OrderWork } from './place-order.ts';

/** Throws `servers.capacity`, and for the network what `holdNetwork` throws. Nothing is held then. */
async function holdServer(
  deps: OrderingDeps,
  tx: Queryable,
  input: OrderedServer,
  { plan, image, locationId, clusters }: Choice,
): Promise<HeldServer> {
  const serverId = await nextServerId(tx);
  const hasPublicIp = input.publicIp ?? true;
  // First, so that an account whose network is locked waits without the cluster's locks in its hand.
  if (input.networkId !== undefined)
    await holdNetwork(
      tx,
      { serverId, tenantId: input.tenantId, locationId },
      { networkId: input.networkId, ip: input.networkIp },
    );
  for (const cluster of clusters) {
    const placed = await tryCluster(deps, tx, { hasPublicIp, serverId, cluster, plan });
    if (placed === null) continue;
    const { id: planId, hourlyQuanta, monthlyCapQuanta } = plan;
    const { mac } = placed;
    return {
      serverId,
      planId,
      imageId: image.id,
      hourlyQuanta,
      monthlyCapQuanta,
      clusterId: cluster.id,
      locationId,
      mac,
    };
  }
  throw new CodedError(
    'servers.capacity',
    'There is no room for another server in this location right now. Try again later.',
  );
}

/** Frees what an order that will not be carried out has held. */
async function releaseServer(tx: Queryable, held: Record<string, unknown>): Promise<void> {
  const { serverId } = held as unknown as HeldServer;
  await releaseRoom(tx, serverId);
  await releaseHeldAddresses(tx, serverId);
  await releaseHeldNetwork(tx, serverId);
}

interface Placing {
  hasPublicIp: boolean;
  serverId: number;
  cluster: Cluster;
  plan: Plan;
}

/**
 * Holds room in this cluster, and addresses with the MAC that goes with them for a server with public ones; null when
 * the cluster is full.
 */
async function tryCluster(
  deps: OrderingDeps,
  tx: Queryable,
  { hasPublicIp, serverId, cluster, plan }: Placing,
): Promise<{ mac: string | null } | null> {
  const prepared = deps.hypervisors.preparedGuestsOf(cluster.driver);
  try {
    await placeGuest(tx, { clusterId: cluster.id, serverId, room: plan });
    if (!hasPublicIp) return { mac: null };
    const preparedSets = prepared.map((guest) => guest.addresses);
    const held = await holdAddresses(tx, { clusterId: cluster.id, serverId, preparedSets });
    return { mac: held.preparedSet === null ? macOf(serverId) : prepared[held.preparedSet]!.mac };
  } catch (error) {
    if (!hasCode(error, 'addresses.exhausted') && !hasCode(error, 'clusters.full')) throw error;
    await releaseRoom(tx, serverId);
    return null;
  }
}

/** The steps of an order for a server. Without a choice, as for a process that died, the stored request is looked up again. */
export function serverWork(deps: OrderingDeps, actor: Actor, choice?: Choice): OrderWork {
  return {
    async hold(tx, order) {
      const { input } = order.request as unknown as OrderRequest;
      return { ...(await holdServer(deps, tx, input, choice ?? (await chooseServer(deps, input)))) };
    },
    async queue(tx, order) {
      const { input, requester } = order.request as unknown as OrderRequest;
      const held = order.held as unknown as HeldServer;
      await addServer(tx, actor, { orderId: order.id, requested: input, held, requester });
      return held.serverId;
    },
    release: (tx, held) => releaseServer(tx, held),
  };
}

/** What the input names in the catalog. Throws `servers.invalid` with these faults and the ones that were found before. */
export async function chooseServer(
  deps: OrderingDeps,
  input: Pick<OrderedServer, 'plan' | 'image' | 'location'>,
  faultsBefore: readonly FieldFault[] = [],
): Promise<Choice> {
  const [plans, images, locations] = await Promise.all([
    deps.catalog.listPlans(),
    deps.catalog.listImages(),
    deps.catalog.listLocations(),
  ]);
  const faults = [...faultsBefore];
  const plan = pickOffered(plans, input.plan, 'plan', faults);
  const image = pickOffered(images, input.image, 'image', faults);
  const location = pickLocation(locations, input.location, faults);
  if (faults.length > 0 || !plan || !image || !location) {
    throw invalidServer(faults);
  }
  return { plan, image, locationId: location.id, clusters: await listClusters(deps.db(), location.id) };
}

function pickLocation(
  offered: readonly Location[],
  wanted: string | number | undefined,
  faults: FieldFault[],
): Location | undefined {
  if (wanted !== undefined) return pickOffered(offered, wanted, 'location', faults);
  if (offered.length === 1) return offered[0];
  const allowed = offered.map((one) => one.slug);
  faults.push({ path: 'location', code: 'required', message: 'Name the location.', allowed });
  return undefined;
}
