import { createHash } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import { Type } from 'typebox';
import { SensorPlan } from '#contracts/sensor-api/http.ts';
import { authenticateWith, sensorOf } from './authenticate.ts';
import type { SensorApiDeps } from './index.ts';

export function registerPlan(app: FastifyInstance, deps: SensorApiDeps): void {
  app.get(
    '/plan',
    {
      onRequest: authenticateWith(deps.sensors),
      schema: { response: { 200: SensorPlan, 304: Type.Null() } },
    },
    async (request, reply) => {
      const { id, siteId, credentialState } = sensorOf(request);
      const { expiresAtMs, isRotationDue } = credentialState;
      const plan: SensorPlan = {
        ...(await deps.sensors.readPlan(siteId, id)),
        credential_version: 1,
        credential: {
          expires_at: expiresAtMs === null ? null : new Date(expiresAtMs).toISOString(),
          rotate: isRotationDue,
        },
      };
      const etag = `"${createHash('sha256').update(JSON.stringify(plan)).digest('base64url').slice(0, 27)}"`;
      reply.header('etag', etag).header('cache-control', 'private, no-cache');
      const known = request.headers['if-none-match']?.split(',').map((tag) => tag.trim().replace(/^W\//, ''));
      if (known?.includes(etag)) return reply.code(304).send();
      return reply.send(plan);
    },
  );
}
