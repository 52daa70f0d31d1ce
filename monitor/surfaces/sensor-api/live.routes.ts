import type { FastifyInstance } from 'fastify';
import { LiveReceipt } from '#contracts/sensor-api/http.ts';
import { liveBytesMax } from '#contracts/sensor-api/live.ts';
import { admitTo } from './admit.ts';
import { authenticateWith, sensorOf } from './authenticate.ts';
import type { SensorApiDeps } from './index.ts';
import { registerUploadScope } from './upload-scope.ts';

export function registerLive(app: FastifyInstance, deps: SensorApiDeps): Promise<void> {
  return registerUploadScope(app, liveBytesMax, (scope) => {
    scope.post<{ Body: Buffer | undefined }>(
      '/live',
      {
        onRequest: [authenticateWith(deps.sensors), admitTo(deps.intake)],
        bodyLimit: liveBytesMax,
        schema: { response: { 200: LiveReceipt } },
      },
      async (request) => {
        const encoding = request.headers['content-encoding'];
        return deps.live.receive(sensorOf(request), request.body ?? Buffer.alloc(0), encoding);
      },
    );
  });
}
