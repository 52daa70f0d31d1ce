/**
 * Holds everything that an order's server needs before the order is paid: its room, its public addresses, its address
 * in a private network and the snapshot that it is made from. Two orders never hold the same thing, so a paid order has nothing left that could refuse it.
 */
import { CodedError, hasCode } from '#common/errors/index.ts';
import type { Actor } from '#operations/accounts/index.ts';
import { holdAddresses, releaseHeldAddresses } from '#operations/addresses/index.ts';
import type { Location, Plan } from '#operations/catalog/index.ts';
import {
  type Cluster,
  findNodeOfServer,
  listClusters,
  placeGuest,
  releaseRoom,
} from '#operations/clusters/index.ts';
import { holdNetwork, releaseHeldNetwork } from '#operations/networks/index.ts';
import {
  addServer,
  type FieldFault,
  type HeldServer,
  holdSnapshot,
  invalidServer,
  macOf,
  nextServerId,
  pickOffered,
  releaseHeldSnapshot,
} from '#operations/servers/index.ts';
import { findSnapshot } from '#operations/views/snapshot-store.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { Choice, OrderedServer, OrderRequest } from './create-server.ts';
import type { OrderingDeps } from './index.ts';
import type { OrderWork } from './place-order.ts';

/** Throws `servers.capacity`, `servers.invalid` for a snapshot that has gone, and for the network what `holdNetwork` throws. Nothing is held then. */
async function holdServer(
  deps: OrderingDeps,
  tx: Queryable,
  input: OrderedServer,
  { plan, image, locationId, clusters, nodeId }: Choice,
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
  const { tenantId, snapshotId } = input;
  if (snapshotId !== undefined && !(await holdSnapshot(tx, { serverId, tenantId, snapshotId })))
    throw invalidServer([noSnapshot]);
  for (const cluster of clusters) {
    const placed = await tryCluster(deps, tx, { hasPublicIp, serverId, cluster, plan, nodeId });
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
  await releaseHeldSnapshot(tx, serverId);
}

interface Placing {
  hasPublicIp: boolean;
  serverId: number;
  cluster: Cluster;
  plan: Plan;
  nodeId: number | undefined;
}

/**
 * Holds room in this cluster, and addresses with the MAC that goes with them for a server with public ones; null when
 * the cluster is full.
 */
async function tryCluster(
  deps: OrderingDeps,
  tx: Queryable,
  { hasPublicIp, serverId, cluster, plan, nodeId }: Placing,
): Promise<{ mac: string | null } | null> {
  const prepared = deps.hypervisors.preparedGuestsOf(cluster.driver);
  try {
    const on = nodeId === undefined ? {} : { nodeId };
    await placeGuest(tx, { clusterId: cluster.id, serverId, room: plan, ...on });
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
  input: Pick<OrderedServer, 'tenantId' | 'plan' | 'image' | 'snapshotId' | 'location'>,
  faultsBefore: readonly FieldFault[] = [],
): Promise<Choice> {
  const [plans, images, locations] = await Promise.all([
    deps.catalog.listPlans(),
    deps.catalog.listImages(),
    deps.catalog.listLocations(),
  ]);
  const faults = [...faultsBefore];
  const plan = pickOffered(plans, input.plan, 'plan', faults);
  const source = input.snapshotId === undefined ? null : await chooseSource(deps, input, input.snapshotId);
  if (typeof source === 'string') faults.push({ ...noSnapshot, message: source });
  const snapshot = typeof source === 'string' ? null : source;
  const image =
    snapshot?.image ??
    (input.image === undefined ? undefined : pickOffered(images, input.image, 'image', faults));
  const location = pickLocation(locations, input.location ?? snapshot?.locationId, faults);
  if (snapshot !== null) faults.push(...snapshotFaults(snapshot, plan, location));
  if (faults.length > 0 || !plan || !image || !location) {
    throw invalidServer(faults);
  }
  const clusters = await listClusters(deps.db(), location.id);
  const place = {
    clusters: snapshot === null ? clusters : clusters.filter(({ id }) => id === snapshot.node.clusterId),
    nodeId: snapshot?.node.id,
  };
  return { plan, image, locationId: location.id, ...place };
}

const noSnapshot: FieldFault = {
  path: 'snapshot',
  code: 'unknown_value',
  message: 'There is no such snapshot.',
};

/** The snapshot with the node that has it, where the server is made; what is wrong with it as a text. */
async function chooseSource(deps: OrderingDeps, { tenantId }: { tenantId: number }, snapshotId: number) {
  const found = await findSnapshot(deps.db(), [tenantId], snapshotId);
  const node = found === null ? null : await findNodeOfServer(deps.db(), found.serverId);
  if (found === null || node === null) return noSnapshot.message;
  if (found.state !== 'ready') return 'The snapshot is not complete yet.';
  if (!deps.hypervisors.capabilitiesOf(node.driver).includes('snapshots'))
    throw new CodedError('servers.unsupported', 'The hypervisors of this location can’t copy snapshots.');
  return { image: { id: found.imageId }, diskGb: found.diskGb, locationId: found.locationId, node };
}

function snapshotFaults(
  snapshot: { diskGb: number; locationId: number },
  plan: Plan | undefined,
  location: Location | undefined,
): FieldFault[] {
  const faults: FieldFault[] = [];
  if (plan !== undefined && plan.diskGb < snapshot.diskGb)
    faults.push({
      path: 'plan',
      code: 'disk_too_small',
      message: `Its disk of ${plan.diskGb} GB is smaller than that of the snapshot, which has ${snapshot.diskGb} GB.`,
    });
  if (location !== undefined && location.id !== snapshot.locationId)
    faults.push({ path: 'location', code: 'conflict', message: 'The snapshot is in another location.' });
  return faults;
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
