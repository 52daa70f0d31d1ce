import type { FastifyReply, FastifyRequest } from 'fastify';
import type { AuthenticatedSensor, CredentialCheck, Sensors } from '#monitor/sensors/index.ts';
import { readBearer } from '#service-kit/credentials/index.ts';
import { HttpError, originOf } from '#service-kit/http/index.ts';

const known = new WeakMap<FastifyRequest, AuthenticatedSensor>();
const unknown: CredentialCheck = { isTaken: false, why: 'unknown' };

/** A hook that admits only enrolled sensors, before the body is read. */
export function authenticateWith(sensors: Pick<Sensors, 'checkCredential'>) {
  return async (request: FastifyRequest, _reply: FastifyReply): Promise<void> => {
    const token = readBearer(request.raw.rawHeaders);
    const checked = token === null ? unknown : await sensors.checkCredential(token, originOf(request));
    if (!checked.isTaken) throw refusalOf(checked);
    known.set(request, checked.sensor);
  };
}

/** The sensor that the hook admitted. */
export function sensorOf(request: FastifyRequest): AuthenticatedSensor {
  return known.get(request)!;
}

function refusalOf(checked: Exclude<CredentialCheck, { isTaken: true }>): HttpError {
  const refuse = (code: string, message: string) =>
    new HttpError(401, { code, message }, { 'www-authenticate': 'Bearer' });
  if (checked.why === 'unknown')
    return refuse('unauthenticated', 'This sensor is not known here. Enrol it again with a new token.');
  const at = new Date(checked.endedAtMs).toISOString();
  return checked.why === 'expired'
    ? refuse('credential_expired', `This credential ended at ${at}. Enrol the sensor again with a new token.`)
    : refuse(
        'credential_replaced',
        `This credential was replaced at ${at}, by this sensor or by a copy of it. Enrol the sensor again with a new token, and stop the copy.`,
      );
}
