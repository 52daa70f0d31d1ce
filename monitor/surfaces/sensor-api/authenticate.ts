import type { FastifyReply, FastifyRequest } from 'fastify';
import type { EnrolledSensor, Sensors } from '#monitor/sensors/index.ts';
import { readBearer } from '#service-kit/credentials/index.ts';
import { HttpError } from '#service-kit/http/index.ts';

const known = new WeakMap<FastifyRequest, EnrolledSensor>();

/** A hook that lets only enrolled sensors through, before the body is read. */
export function authenticateWith(sensors: Pick<Sensors, 'authenticate'>) {
  return async (request: FastifyRequest, _reply: FastifyReply): Promise<void> => {
    const token = readBearer(request.raw.rawHeaders);
    const sensor = token === null ? null : await sensors.authenticate(token);
    if (!sensor) {
      throw new HttpError(
        401,
        {
          code: 'unauthenticated',
          message: 'This sensor is not known here. Enrol it again with a new token.',
        },
        { 'www-authenticate': 'Bearer' },
      );
    }
    known.set(request, sensor);
  };
}

/** The sensor that the hook let through. */
export function sensorOf(request: FastifyRequest): EnrolledSensor {
  return known.get(request)!;
}
