import { createHash, randomBytes } from 'node:crypto';
import { CodedError } from '#common/errors/index.ts';
import type { EnrolRequest, EnrolResponse } from '#contracts/sensor-api/http.ts';
import { type Actor, requireOperator } from '#monitor/operators/index.ts';
import { type ChangedAddress, lockNodes } from '#monitor/placements/index.ts';
import { findSite, lockSite } from '#monitor/sites/index.ts';
import { record, recorded } from '#service-kit/audit/index.ts';
import { mintCredential } from '#service-kit/credentials/index.ts';
import type { RequestOrigin } from '#service-kit/http/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { insertFirstCredential } from './credential-store.ts';
import {
  type ChosenNode,
  insertSensor,
  insertToken,
  listOccupants,
  type Occupant,
  revokeSensor,
  updateNode,
  useToken,
} from './store.ts';

export interface EnrolmentToken {
  token: string;
  expiresAtMs: number;
}

/** Where a token's sensor is to be. */
export interface EnrolmentPlace {
  /** Absent: the sensor names its node itself; only where no inventory tells the nodes. */
  node?: ChosenNode | null;
  /** What becomes of a sensor that the node already has: it is removed, or the enrolment is refused (default). */
  replaces?: boolean;
}

/**
 * Makes a token that enrols one sensor at this site within the next hour, and decides whose servers it will speak for.
 * Throws `sensors.node_taken` for a node that has a sensor, unless the new one replaces it.
 */
export async function createEnrolmentToken(
  db: Queryable,
  actor: Actor,
  siteId: number,
  { node = null, replaces = false }: EnrolmentPlace = {},
): Promise<EnrolmentToken> {
  requireOperator(actor);
  const token = `svcenr_${randomBytes(32).toString('base64url')}`;
  const checked = node && checkNode(node);
  // A host that names its node itself must not choose which sensor it removes.
  if (replaces && !checked)
    throw new CodedError('sensors.invalid', 'Choose the node whose sensor is to be replaced.');
  const expiresAtMs = await recorded(
    db,
    actor,
    {
      operation: 'site.issue_enrolment',
      subject: { kind: 'site', id: siteId },
      after: { node: checked, ...(replaces && { replaces }) },
    },
    async (trx) => {
      const advice = 'Let the new sensor replace it, remove it first, or choose another node.';
      if (checked && !replaces) await requireFreeNode(trx, siteId, checked, { advice });
      if (!(await findSite(trx, siteId))) return null;
      return insertToken(trx, siteId, digestToken(token), checked, replaces);
    },
  );
  if (expiresAtMs === null) throw new CodedError('sensors.no_site', 'There is no such site.');
  return { token, expiresAtMs };
}

/**
 * Spends the token and makes the sensor in one transaction, so a token is never spent without its credential. Throws
 * `sensors.invalid`, and `sensors.node_taken` for a node that has a sensor which the token does not replace.
 */
export function enrolSensor(
  db: Queryable,
  request: EnrolRequest,
  origin?: RequestOrigin,
): Promise<EnrolResponse | null> {
  const credential = mintCredential('svcsen');
  return db.transaction().execute(async (trx) => {
    const used = await useToken(trx, digestToken(request.token));
    if (!used) return null;
    const { siteId, clusterId } = used;
    const site = (await findSite(trx, siteId))!;
    const hostName = checkHostName(request.host_name);
    // A host must not choose whose servers it speaks for.
    const node = checkNode({ name: used.node ?? request.node, clusterId });
    // Sensors of a site get and lose nodes one after another.
    await lockSite(trx, siteId);
    const replaced = used.replaces ? await listOccupants(trx, siteId, node) : [];
    for (const { id } of replaced) await revokeSensor(trx, siteId, id);
    const advice = 'Remove that sensor in the monitor, or make a token that replaces it.';
    await requireFreeNode(trx, siteId, node, { advice });
    const sensorId = await insertSensor(trx, used.tokenId, {
      ...{ siteId, hostName, node: node.name, clusterId },
      isNodeBound: used.node !== null,
    });
    await insertFirstCredential(trx, sensorId, credential);
    const actor = { kind: 'sensor', id: sensorId, name: request.host_name, origin } as const;
    for (const { id, hostName: name } of replaced) {
      const subject = { kind: 'sensor', id, name };
      await record(trx, actor, {
        operation: 'sensor.replace',
        subject,
        after: { sensorId, node: node.name },
      });
    }
    await record(trx, actor, {
      operation: 'sensor.enrol',
      subject: { kind: 'sensor', id: sensorId, name: request.host_name },
      after: { siteId, node: node.name },
    });
    return { sensor_id: sensorId, site_id: siteId, site_name: site.name, credential: credential.token };
  });
}

function checkHostName(name: string): string {
  if (!/\p{C}/u.test(name)) return name;
  throw new CodedError('sensors.invalid', 'A host name has no control or formatting characters.');
}

function digestToken(token: string): Buffer {
  return createHash('sha256').update(token, 'utf8').digest();
}

const nameLengthMax = 255;

/** The node as it is stored. Throws `sensors.invalid`. */
function checkNode(node: ChosenNode): ChosenNode {
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
async function requireFreeNode(
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
 * Says which node a sensor is on. Its uploads of the last 24 hours are judged again, for the servers of both nodes.
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
