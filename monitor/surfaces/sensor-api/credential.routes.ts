import type { FastifyInstance } from 'fastify';
import { Type } from 'typebox';
import { CredentialResponse } from '#contracts/sensor-api/http.ts';
import { HttpError, originOf } from '#service-kit/http/index.ts';
import { authenticateWith, sensorOf } from './authenticate.ts';
import type { SensorApiDeps } from './index.ts';

/** The credential alone identifies the sensor. */
const Nothing = Type.Object({}, { additionalProperties: false });

export function registerCredential(app: FastifyInstance, deps: SensorApiDeps): void {
  app.post(
    '/credential',
    {
      onRequest: authenticateWith(deps.sensors),
      schema: { body: Nothing, response: { 201: CredentialResponse } },
    },
    async (request, reply) => {
      const rotated = await deps.sensors.rotateCredential(sensorOf(request), originOf(request));
      switch (rotated.outcome) {
        case 'issued':
          return reply.code(201).send({
            credential: rotated.credential,
            expires_at: new Date(rotated.expiresAtMs).toISOString(),
          });
        case 'not_due':
          throw new HttpError(409, {
            code: 'rotation_not_due',
            message: 'This credential is not to be replaced yet: the plan says when.',
          });
        case 'throttled':
          throw new HttpError(
            429,
            {
              code: 'rotation_throttled',
              message: 'A credential was issued a moment ago. Ask again in a few seconds.',
            },
            { 'retry-after': String(rotated.retryAfterSeconds) },
          );
        case 'refused':
          throw new HttpError(401, {
            code: 'unauthenticated',
            message: 'This credential is not taken any more.',
          });
      }
    },
  );
}
