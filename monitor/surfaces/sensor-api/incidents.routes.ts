import type { FastifyInstance } from 'fastify';
import { TelemetryReceipt, uploadBytesMax } from '#contracts/sensor-api/http.ts';
import { requireIncidentsAlone } from '#monitor/incidents/index.ts';
import { admitTo } from './admit.ts';
import { authenticateWith, sensorOf } from './authenticate.ts';
import type { SensorApiDeps } from './index.ts';
import { registerUploadScope } from './upload-scope.ts';

export function registerIncidents(app: FastifyInstance, deps: SensorApiDeps): Promise<void> {
  const { sensors, intake, inbox } = deps;
  return registerUploadScope(app, uploadBytesMax, (scope) => {
    scope.post<{ Body: Buffer | undefined }>(
      '/incidents',
      {
        onRequest: [authenticateWith(sensors), admitTo(intake)],
        bodyLimit: uploadBytesMax,
        schema: { response: { 200: TelemetryReceipt } },
      },
      async (request) => {
        const encoding = request.headers['content-encoding'];
        const body = request.body ?? Buffer.alloc(0);
        return inbox.receiveUrgent(sensorOf(request), body, encoding, requireIncidentsAlone);
      },
    );
  });
}
