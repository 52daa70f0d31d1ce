import { createHash, randomBytes } from 'node:crypto';
import { CodedError } from '#common/errors/index.ts';
import type { EnrolRequest, EnrolResponse } from '#contracts/sensor-api/http.ts';
import { type Actor, requireOperator } from '#monitor/operators/index.ts';
import { mintCredential } from '#service-kit/credentials/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { insertSensor, insertToken, useToken } from './store.ts';

export interface EnrolmentToken {
  token: string;
  expiresAtMs: number;
}

/** Makes a token that enrols one sensor at this site within the next hour. */
export async function createEnrolmentToken(
  db: Queryable,
  actor: Actor,
  siteId: number,
): Promise<EnrolmentToken> {
  requireOperator(actor);
  const token = `svcenr_${randomBytes(32).toString('base64url')}`;
  const expiresAtMs = await insertToken(db, siteId, digestToken(token));
  if (expiresAtMs === null) throw new CodedError('sensors.no_site', 'There is no such site.');
  return { token, expiresAtMs };
}

/** Spends the token and makes the sensor in one transaction, so a token is never spent without its credential. */
export function enrolSensor(db: Queryable, request: EnrolRequest): Promise<EnrolResponse | null> {
  const credential = mintCredential('svcsen');
  return db.transaction().execute(async (trx) => {
    const used = await useToken(trx, digestToken(request.token));
    if (!used) return null;
    const sensorId = await insertSensor(trx, used.tokenId, {
      siteId: used.siteId,
      hostName: request.host_name,
      node: request.node,
      credentialId: credential.id,
      credentialDigest: credential.digest,
    });
    return {
      sensor_id: sensorId,
      site_id: used.siteId,
      site_name: used.siteName,
      credential: credential.token,
    };
  });
}

function digestToken(token: string): Buffer {
  return createHash('sha256').update(token, 'utf8').digest();
}
