/** `GET /port-scans`: what a sensor should scan. `POST /port-scans`: what became of a scan. */
import { createHash } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import { Type } from 'typebox';
import { CodedError } from '#common/errors/index.ts';
import { ScanPlan, ScanReceipt, ScanReport, scanReportBytesMax } from '#contracts/sensor-api/port-scans.ts';
import { HttpError } from '#service-kit/http/index.ts';
import { admitTo } from './admit.ts';
import { authenticateWith, sensorOf } from './authenticate.ts';
import type { SensorApiDeps } from './index.ts';

/** After these a sensor must not send the report again. */
const refusals: Readonly<Record<string, string>> = {
  'scans.unknown_target': 'scan_target_unknown',
  'scans.malformed': 'scan_report_malformed',
};

export function registerPortScans(app: FastifyInstance, deps: SensorApiDeps): void {
  const { sensors, scans, intake } = deps;
  app.get(
    '/port-scans',
    {
      onRequest: authenticateWith(sensors),
      schema: { response: { 200: ScanPlan, 304: Type.Null() } },
    },
    async (request, reply) => {
      const plan = await scans.readPlan(sensorOf(request));
      const etag = `"${createHash('sha256').update(JSON.stringify(plan)).digest('base64url').slice(0, 27)}"`;
      reply.header('etag', etag).header('cache-control', 'private, no-cache');
      const known = request.headers['if-none-match']?.split(',').map((tag) => tag.trim().replace(/^W\//, ''));
      if (known?.includes(etag)) return reply.code(304).send();
      return reply.send(plan);
    },
  );

  app.post<{ Body: ScanReport }>(
    '/port-scans',
    {
      onRequest: [authenticateWith(sensors), admitTo(intake)],
      bodyLimit: scanReportBytesMax,
      schema: { body: ScanReport, response: { 200: ScanReceipt } },
    },
    async (request) => {
      try {
        return await scans.receive(sensorOf(request), request.body);
      } catch (error) {
        const code = error instanceof CodedError ? refusals[error.code] : undefined;
        if (!code) throw error;
        throw new HttpError(422, { code, message: (error as Error).message });
      }
    },
  );
}
