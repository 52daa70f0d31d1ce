import type { FastifyError, FastifyInstance } from 'fastify';
import { CodedError } from '#common/errors/index.ts';
import { clockAheadCode, telemetryContentType } from '#contracts/sensor-api/http.ts';
import { HttpError } from '#service-kit/http/index.ts';

/** HTTP status of each upload error. */
const statuses: Readonly<Record<string, number>> = {
  'telemetry.malformed': 400,
  'telemetry.encoding_unsupported': 400,
  'telemetry.too_large': 413,
  'telemetry.refused': 422,
  // The sensor keeps the upload and sends it again when its clock is right.
  'telemetry.clock_ahead': 503,
  // The sensor retries, or drops windows that are a minute old.
  'live.store_full': 503,
  'live.store_unavailable': 503,
  'live.store_evicts': 503,
};

/** A separate scope, because only its bodies are bytes, of up to `bytesMax`. */
export async function registerUploadScope(
  app: FastifyInstance,
  bytesMax: number,
  routes: (scope: FastifyInstance) => void,
): Promise<void> {
  await app.register(async (scope) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser(
      telemetryContentType,
      { parseAs: 'buffer', bodyLimit: bytesMax },
      (_request, body, done) => done(null, body),
    );
    scope.setErrorHandler((error: FastifyError) => {
      throw translate(error, bytesMax);
    });
    routes(scope);
  });
}

function translate(error: FastifyError, bytesMax: number): Error {
  if (error instanceof CodedError) {
    const status = statuses[error.code];
    const code = error.code === 'telemetry.clock_ahead' ? clockAheadCode : error.code.replace('.', '_');
    if (status) return new HttpError(status, { code, message: error.message });
  }
  if (error.code === 'FST_ERR_CTP_BODY_TOO_LARGE') {
    const message = `An upload must not hold more than ${bytesMax} bytes.`;
    return new HttpError(413, { code: 'telemetry_too_large', message });
  }
  if (error.code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE') {
    const message = `Send telemetry as Content-Type: ${telemetryContentType}.`;
    return new HttpError(400, { code: 'telemetry_malformed', message });
  }
  return error;
}
