import type { FastifyInstance } from 'fastify';
import { TelemetryReceipt, uploadBytesMax } from '#contracts/sensor-api/http.ts';
import { admitTo } from './admit.ts';
import { authenticateWith, sensorOf } from './authenticate.ts';
import type { SensorApiDeps } from './index.ts';
import { registerUploadScope } from './upload-scope.ts';

export function registerTelemetry(app: FastifyInstance, deps: SensorApiDeps): Promise<void> {
  return registerUploadScope(app, uploadBytesMax, (scope) => {
    scope.post<{ Body: Buffer | undefined }>(
      '/telemetry',
      {
        onRequest: [authenticateWith(deps.sensors), admitTo(deps.intake)],
        bodyLimit: uploadBytesMax,
        schema: { response: { 200: TelemetryReceipt } },
      },
      async (request) => {
        const encoding = request.headers['content-encoding'];
        return deps.inbox.receive(sensorOf(request), request.body ?? Buffer.alloc(0), encoding);
      },
    );
  });
}
