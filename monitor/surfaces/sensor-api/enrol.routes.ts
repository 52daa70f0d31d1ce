import type { FastifyInstance } from 'fastify';
import { CodedError } from '#common/errors/index.ts';
import { EnrolRequest, EnrolResponse } from '#contracts/sensor-api/http.ts';
import { HttpError, originOf } from '#service-kit/http/index.ts';
import type { SensorApiDeps } from './index.ts';

export function registerEnrol(app: FastifyInstance, deps: SensorApiDeps): void {
  app.post<{ Body: EnrolRequest }>(
    '/enrol',
    { schema: { body: EnrolRequest, response: { 201: EnrolResponse } } },
    async (request, reply) => {
      const enrolled = await deps.sensors.enrol(request.body, originOf(request)).catch((error: unknown) => {
        if (!(error instanceof CodedError)) throw error;
        // The token is not used: the host may retry once the operator has removed the other sensor.
        if (error.code === 'sensors.node_taken')
          throw new HttpError(409, { code: 'node_taken', message: error.message });
        if (error.code !== 'sensors.invalid') throw error;
        throw new HttpError(422, { code: 'enrolment_refused', message: error.message });
      });
      if (!enrolled) {
        throw new HttpError(401, {
          code: 'enrolment_token_refused',
          message:
            'This enrolment token is unknown, used, or older than an hour. Create a new one in the site’s settings.',
        });
      }
      return reply.code(201).send(enrolled);
    },
  );
}
