import { CodedError } from '#common/errors/index.ts';
import { TelemetryReceipts, TelemetryRequest } from '#contracts/admin-api/schemas.ts';
import type { ProtectTraffic } from '#operations/protect-traffic/index.ts';
import { type App, HttpError } from '#service-kit/http/index.ts';
import { requireProject } from './authenticate.ts';

/** 50 targets of 60 minutes with 20 applications each, written out with generous names, are about 11 MB. */
const bodyBytesMax = 16 * 1024 * 1024;

/** `POST /protect/telemetry/`: minute telemetry, contract version 1 (NET-2.4); the answer follows its commit. */
export function registerTelemetry(app: App, deps: { protectTraffic: ProtectTraffic }): void {
  app.post(
    '/protect/telemetry/',
    {
      bodyLimit: bodyBytesMax,
      schema: { body: TelemetryRequest, response: { 200: TelemetryReceipts } },
      // Before the body is read: a project that may not deliver is told so and sends no megabytes.
      preParsing: async (request) => {
        requireProject(request, 'protect_telemetry_ingest');
      },
    },
    async (request) => {
      try {
        return await deps.protectTraffic.receive(
          { projectId: request.adminProject!.id, clusterIds: request.adminProject!.clusterIds },
          request.body,
        );
      } catch (error) {
        throw error instanceof CodedError && error.code === 'protect_traffic.invalid'
          ? refusal(error)
          : error;
      }
    },
  );
}

function refusal(error: CodedError): HttpError {
  const faults = error.details.fields as { path: string; message: string }[];
  return new HttpError(422, {
    code: 'validation_failed',
    reason: 'invalid_fields',
    message: error.message,
    fields: faults.map((fault) => ({ ...fault, code: 'invalid_value' })),
  });
}
