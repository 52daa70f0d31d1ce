/**
 * Where guests can run: the nodes of each cluster, their capacity, and the capacity that servers reserve.
 *
 * Room is reserved in the transaction that orders the server, with the cluster's nodes locked, so no node is ever sold
 * twice; it comes back when the guest is gone. A node that is closed keeps its guests and takes no new ones.
 */

import { CodedError } from '#common/errors/index.ts';
import type { Capability } from '#contracts/capabilities.ts';
import { type Actor, requireStaff } from '#operations/accounts/index.ts';
import type { Catalog } from '#operations/catalog/index.ts';
import type { Hypervisors } from '#operations/hypervisors/index.ts';
import type { FeatureWork } from '#service-kit/jobs/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { addNode, changeNode, createCluster, removeNode } from './change-node.ts';
import { checkJobs, checkNode } from './check-node.ts';
import { chooseNode, type Node, type Room } from './node.ts';
import * as store from './store.ts';
import { listClusters } from './store.ts';

export { isAway, type Node, type Room } from './node.ts';
export {
  type Cluster,
  type DayRoom,
  ensureCluster,
  ensureNode,
  findNodeOfServer,
  type LastCheck,
  listClusters,
  lockCluster,
  type NodeChange,
  noteSeen,
  releaseReservation as releaseRoom,
  updateReservation as setRoom,
} from './store.ts';

export type Clusters = ReturnType<typeof createClusters>;

export function createClusters(deps: { db: () => Queryable; hypervisors: Hypervisors; catalog: Catalog }) {
  return {
    /** What it does beside the calls. */
    work: { jobHandlers: checkJobs(deps) } satisfies FeatureWork,
    /** Oldest first; all of them, or those of one location. */
    listClusters: (locationId?: number) => listClusters(deps.db(), locationId),
    /** What servers can do where these drivers are: what all of them can. */
    listCapabilities(drivers: readonly string[]): Capability[] {
      const [first = [], ...others] = drivers.map((driver) => deps.hypervisors.capabilitiesOf(driver));
      return first.filter((one) => others.every((able) => able.includes(one)));
    },
    /** All nodes, or one cluster's. Staff only. */
    async listNodes(actor: Actor, clusterId: number | null): Promise<Node[]> {
      requireStaff(actor);
      return store.listNodes(deps.db(), clusterId);
    },
    async findNode(actor: Actor, nodeId: number): Promise<Node | null> {
      requireStaff(actor);
      return store.findNode(deps.db(), nodeId);
    },
    /** Memory that guests held at the end of each of the last days, and hold now. Staff only. */
    async listDayRoom(actor: Actor, days: number): Promise<store.DayRoom[]> {
      requireStaff(actor);
      return store.listDayRoom(deps.db(), days);
    },
    createCluster: (actor: Actor, cluster: { locationId: number; name: string; driver: string }) =>
      createCluster(deps, actor, cluster),
    addNode: (actor: Actor, node: store.NewNode) => addNode(deps, actor, node),
    changeNode: (actor: Actor, nodeId: number, change: store.NodeChange) =>
      changeNode(deps, actor, nodeId, change),
    /** Queues a check of what the node needs to run servers. Operators only; throws `clusters.not_found`. */
    checkNode: (actor: Actor, nodeId: number) => checkNode(deps, actor, nodeId),
    /** Null for a node that was never checked. Staff only. */
    async findCheck(actor: Actor, nodeId: number): Promise<store.LastCheck | null> {
      requireStaff(actor);
      return store.findCheck(deps.db(), nodeId);
    },
    removeNode: (actor: Actor, nodeId: number) => removeNode(deps, actor, nodeId),
  };
}

/**
 * Reserves a server's room on a node of the cluster, or on the one that is named, inside the caller's transaction.
 *
 * The cluster's nodes stay locked until it ends, so two orders never get the same room. Throws `clusters.full`.
 */
export async function placeGuest(
  tx: Queryable,
  { clusterId, nodeId, ...placement }: { clusterId: number; nodeId?: number; serverId: number; room: Room },
): Promise<Node> {
  const nodes = await store.lockNodes(tx, clusterId);
  const node = chooseNode(
    nodes.filter(({ id }) => nodeId === undefined || id === nodeId),
    placement.room,
  );
  if (node === null) throw new CodedError('clusters.full', 'No node of this cluster has room for it.');
  await store.insertReservation(tx, { nodeId: node.id, serverId: placement.serverId, ...placement.room });
  return node;
}

/**
 * Reserves other sizes for a server on its node, inside the caller's transaction. Throws `clusters.full` when the node
 * has no room for what is more than before.
 */
export async function changeRoom(tx: Queryable, change: { clusterId: number; serverId: number; room: Room }) {
  await store.lockNodes(tx, change.clusterId);
  const before = await store.findNodeOfServer(tx, change.serverId);
  await store.updateReservation(tx, change.serverId, change.room);
  const after = await store.findNodeOfServer(tx, change.serverId);
  const isOver = (size: keyof Room) =>
    after!.used[size] > Math.max(after!.capacity[size], before!.used[size]);
  if (isOver('vcpus') || isOver('memoryMb') || isOver('diskGb'))
    throw new CodedError('clusters.full', 'The node of this server has no room for it.');
}
