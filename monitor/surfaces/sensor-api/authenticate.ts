import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { TSchema } from 'typebox';
import { CodedError } from '#common/errors/index.ts';
import { clockAheadCode, telemetryContentType } from '#contracts/sensor-api/http.ts';
import { type Intake, Throttled } from '#monitor/intake/index.ts';
import type { AuthenticatedSensor, CredentialCheck, Sensors } from '#monitor/sensors/index.ts';
import { readBearer } from '#service-kit/credentials/index.ts';
import { HttpError, onClosed, originOf } from '#service-kit/http/index.ts';

const known = new WeakMap<FastifyRequest, AuthenticatedSensor>();
const unknown: CredentialCheck = { isTaken: false, why: 'unknown' };

/** A hook that admits only enrolled sensors, before the body is read. */
export function authenticateWith(sensors: Pick<Sensors, 'checkCredential'>) {
  return async (request: FastifyRequest, _reply: FastifyReply): Promise<void> => {
    const token = readBearer(request.raw.rawHeaders);
    const checked = token === null ? unknown : await sensors.checkCredential(token, originOf(request));
    if (!checked.isTaken) throw refusalOf(checked);
    known.set(request, checked.sensor);
  };
}

/** The sensor that the hook admitted. */
export function sensorOf(request: FastifyRequest): AuthenticatedSensor {
  return known.get(request)!;
}

function refusalOf(checked: Exclude<CredentialCheck, { isTaken: true }>): HttpError {
  const refuse = (code: string, message: string) =>
    new HttpError(401, { code, message }, { 'www-authenticate': 'Bearer' });
  if (checked.why === 'unknown')
    return refuse('unauthenticated', 'This sensor is not known here. Enrol it again with a new token.');
  const at = new Date(checked.endedAtMs).toISOString();
  return checked.why === 'expired'
    ? refuse('credential_expired', `This credential ended at ${at}. Enrol the sensor again with a new token.`)
    : refuse(
        'credential_replaced',
        `This credential was replaced at ${at}, by this sensor or by a copy of it. Enrol the sensor again with a new token, and stop the copy.`,
      );
}

/** A hook that admits a sensor's upload, or answers when to retry, before the body is read. */
export function admitTo(intake: Pick<Intake, 'admit'>) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    try {
      onClosed(reply, intake.admit(sensorOf(request).id));
    } catch (error) {
      if (!(error instanceof Throttled)) throw error;
      throw new HttpError(
        429,
        { code: 'intake_throttled', message: error.message },
        { 'retry-after': String(error.retryAfterSeconds) },
      );
    }
  };
}

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

/** A call that takes an upload, in a separate scope, because only its bodies are bytes, of up to `bytesMax`. */
export async function registerUpload(
  app: FastifyInstance,
  { sensors, intake }: { sensors: Sensors; intake: Intake },
  path: string,
  {
    bytesMax,
    receipt,
    receive,
  }: {
    bytesMax: number;
    receipt: TSchema;
    receive: (
      sensor: AuthenticatedSensor,
      body: Uint8Array,
      encoding: string | undefined,
    ) => Promise<unknown>;
  },
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
    scope.post<{ Body: Buffer | undefined }>(
      path,
      {
        onRequest: [authenticateWith(sensors), admitTo(intake)],
        bodyLimit: bytesMax,
        schema: { response: { 200: receipt } },
      },
      async (request) =>
        receive(sensorOf(request), request.body ?? Buffer.alloc(0), request.headers['content-encoding']),
    );
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
