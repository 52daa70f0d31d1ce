import { CodedError } from '#common/errors/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { chooseNode, type Node, type Room } from './node.ts';
import * as store from './store.ts';

/**
 * Reserves a server's room on a node of the cluster, inside the caller's transaction.
 *
 * The cluster's nodes stay locked until it ends, so two orders never get the same room. Throws `clusters.full`.
 */
export async function placeGuest(
  tx: Queryable,
  placement: { clusterId: number; serverId: number; room: Room },
): Promise<Node> {
  const node = chooseNode(await store.lockNodes(tx, placement.clusterId), placement.room);
  if (node === null) throw new CodedError('clusters.full', 'No node of this cluster has room for it.');
  await store.insertReservation(tx, { nodeId: node.id, serverId: placement.serverId, ...placement.room });
  return node;
}
