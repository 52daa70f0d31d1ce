import { CodedError } from '#common/errors/index.ts';
import { type Actor, requireOperator } from '#monitor/operators/index.ts';
import { type ChangedAddress, lockNodes } from '#monitor/placements/index.ts';
import { lockSite } from '#monitor/sites/index.ts';
import { record } from '#service-kit/audit/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { type ChosenNode, listOccupants, type Occupant, updateNode } from './store.ts';

const nameLengthMax = 255;

/** The node as it is stored. Throws `sensors.invalid`. */
export function checkNode(node: ChosenNode): ChosenNode {
  const name = node.name.trim();
  if (name === '' || name.length > nameLengthMax || /\p{C}/u.test(name)) {
    throw new CodedError(
      'sensors.invalid',
      `A node's name has 1 to ${nameLengthMax} printable characters. Write it as operations does.`,
    );
  }
  return { name, clusterId: node.clusterId };
}

/** Throws `sensors.node_taken` when the node has another sensor: both would report the same servers. */
export async function requireFreeNode(
  trx: Queryable,
  siteId: number,
  node: ChosenNode,
  { exceptSensorId = null, advice }: { exceptSensorId?: number | null; advice: string },
): Promise<void> {
  const [occupant] = await listOccupants(trx, siteId, node, exceptSensorId);
  if (occupant) throw nodeTaken(node, occupant, advice);
}

function nodeTaken(node: ChosenNode, { hostName }: Occupant, advice: string): CodedError {
  const place = node.clusterId === null ? '' : ` of cluster ${node.clusterId}`;
  return new CodedError(
    'sensors.node_taken',
    `Node ${node.name}${place} already has the sensor of host ${hostName}, and a node has one sensor. ${advice}`,
  );
}

/**
 * Says which node a sensor is on. What it told of the last 24 hours is judged again, for the servers of both nodes.
 * False: the site has no such sensor. Throws `sensors.node_taken`.
 */
export async function chooseNode(
  deps: {
    db: () => Queryable;
    onPlaced?: ((trx: Queryable, changed: readonly ChangedAddress[]) => Promise<void>) | undefined;
  },
  actor: Actor,
  sensor: { siteId: number; sensorId: number },
  chosen: ChosenNode,
): Promise<boolean> {
  requireOperator(actor);
  const node = checkNode(chosen);
  return deps
    .db()
    .transaction()
    .execute(async (trx) => {
      // Sensors of a site get and lose nodes one after another.
      await lockSite(trx, sensor.siteId);
      await requireFreeNode(trx, sensor.siteId, node, {
        exceptSensorId: sensor.sensorId,
        advice: 'Remove that sensor first, or choose another node.',
      });
      const listAddresses = await lockNodes(trx);
      const before = await updateNode(trx, sensor.siteId, sensor.sensorId, node);
      if (before === null) return false;
      await deps.onPlaced?.(trx, await listAddresses([before, node.name]));
      await record(trx, actor, {
        operation: 'sensor.choose_node',
        subject: { kind: 'sensor', id: sensor.sensorId },
        before: { node: before },
        after: { node: node.name },
      });
      return true;
    });
}
