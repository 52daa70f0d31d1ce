import { createHash, randomBytes } from 'node:crypto';
import { CodedError } from '#common/errors/index.ts';
import type { EnrolRequest, EnrolResponse } from '#contracts/sensor-api/http.ts';
import { type Actor, requireOperator } from '#monitor/operators/index.ts';
import { record, recorded } from '#service-kit/audit/index.ts';
import { mintCredential } from '#service-kit/credentials/index.ts';
import type { RequestOrigin } from '#service-kit/http/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { checkNode } from './choose-node.ts';
import { insertFirstCredential } from './credential-store.ts';
import { type ChosenNode, insertSensor, insertToken, useToken } from './store.ts';

export interface EnrolmentToken {
  token: string;
  expiresAtMs: number;
}

/**
 * Makes a token that enrols one sensor at this site within the next hour, and decides whose servers it will speak for.
 * Without a node the sensor names its own: only where no inventory tells the nodes.
 */
export async function createEnrolmentToken(
  db: Queryable,
  actor: Actor,
  siteId: number,
  node: ChosenNode | null = null,
): Promise<EnrolmentToken> {
  requireOperator(actor);
  const token = `svcenr_${randomBytes(32).toString('base64url')}`;
  const checked = node && checkNode(node);
  const expiresAtMs = await recorded(
    db,
    actor,
    { operation: 'site.issue_enrolment', subject: { kind: 'site', id: siteId }, after: { node: checked } },
    (trx) => insertToken(trx, siteId, digestToken(token), checked),
  );
  if (expiresAtMs === null) throw new CodedError('sensors.no_site', 'There is no such site.');
  return { token, expiresAtMs };
}

/** Spends the token and makes the sensor in one transaction, so a token is never spent without its credential. Throws `sensors.invalid`. */
export function enrolSensor(
  db: Queryable,
  request: EnrolRequest,
  origin?: RequestOrigin,
): Promise<EnrolResponse | null> {
  const credential = mintCredential('svcsen');
  return db.transaction().execute(async (trx) => {
    const used = await useToken(trx, digestToken(request.token));
    if (!used) return null;
    const sensorId = await insertSensor(trx, used.tokenId, {
      siteId: used.siteId,
      hostName: checkHostName(request.host_name),
      // A host must not choose whose servers it speaks for.
      node: used.node ?? checkNode({ name: request.node, clusterId: null }).name,
      clusterId: used.clusterId,
      isNodeBound: used.node !== null,
    });
    await insertFirstCredential(trx, sensorId, credential);
    const actor = { kind: 'sensor', id: sensorId, name: request.host_name, origin } as const;
    await record(trx, actor, {
      operation: 'sensor.enrol',
      subject: { kind: 'sensor', id: sensorId, name: request.host_name },
      after: { siteId: used.siteId, node: used.node ?? request.node },
    });
    return {
      sensor_id: sensorId,
      site_id: used.siteId,
      site_name: used.siteName,
      credential: credential.token,
    };
  });
}

function checkHostName(name: string): string {
  if (!/\p{C}/u.test(name)) return name;
  throw new CodedError('sensors.invalid', 'A host name has no control or formatting characters.');
}

function digestToken(token: string): Buffer {
  return createHash('sha256').update(token, 'utf8').digest();
}
