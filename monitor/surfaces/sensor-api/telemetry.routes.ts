import type { FastifyError, FastifyInstance } from 'fastify';
import { CodedError } from '#common/errors/index.ts';
import { TelemetryReceipt, telemetryContentType, uploadBytesMax } from '#contracts/sensor-api/http.ts';
import { HttpError } from '#service-kit/http/index.ts';
import { authenticateWith, sensorOf } from './authenticate.ts';
import type { SensorApiDeps } from './index.ts';

/** What an upload's fault means on the wire. */
const statuses: Readonly<Record<string, number>> = {
  'telemetry.malformed': 400,
  'telemetry.encoding_unsupported': 400,
  'telemetry.too_large': 413,
  'telemetry.refused': 422,
};

export async function registerTelemetry(app: FastifyInstance, deps: SensorApiDeps): Promise<void> {
  // A scope of its own, because here alone bodies are bytes of up to 16 MiB.
  await app.register(async (scope) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser(
      telemetryContentType,
      { parseAs: 'buffer', bodyLimit: uploadBytesMax },
      (_request, body, done) => done(null, body),
    );
    scope.setErrorHandler((error: FastifyError) => {
      throw translate(error);
    });
    scope.post<{ Body: Buffer | undefined }>(
      '/telemetry',
      {
        onRequest: authenticateWith(deps.sensors),
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

function translate(error: FastifyError): Error {
  if (error instanceof CodedError) {
    const status = statuses[error.code];
    if (status) return new HttpError(status, { code: error.code.replace('.', '_'), message: error.message });
  }
  if (error.code === 'FST_ERR_CTP_BODY_TOO_LARGE') {
    const message = `An upload must not hold more than ${uploadBytesMax} bytes.`;
    return new HttpError(413, { code: 'telemetry_too_large', message });
  }
  if (error.code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE') {
    const message = `Send telemetry as Content-Type: ${telemetryContentType}.`;
    return new HttpError(400, { code: 'telemetry_malformed', message });
  }
  return error;
}
