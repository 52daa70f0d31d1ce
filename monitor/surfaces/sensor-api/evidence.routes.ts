/** `POST /evidence/{incident_id}`: a capture file of an attack that this sensor observed. */
import type { FastifyError, FastifyInstance } from 'fastify';
import { Type } from 'typebox';
import { CodedError } from '#common/errors/index.ts';
import {
  evidenceContentType,
  evidenceUploadBytesMax,
  incidentUnknownCode,
} from '#contracts/sensor-api/evidence.ts';
import { HttpError } from '#service-kit/http/index.ts';
import { admitTo } from './admit.ts';
import { authenticateWith, sensorOf } from './authenticate.ts';
import type { SensorApiDeps } from './index.ts';

const Params = Type.Object({
  incidentId: Type.String({ pattern: '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' }),
});

/** HTTP status and code of each error. After 400, 404 and 413 the sensor never sends the file again. */
const answers: Readonly<Record<string, readonly [status: number, code: string]>> = {
  'evidence.incident_unknown': [409, incidentUnknownCode],
  'evidence.of_another': [404, 'incident_of_another_sensor'],
  'evidence.malformed': [400, 'evidence_malformed'],
  'evidence.too_large': [413, 'evidence_too_large'],
  'evidence.too_many': [429, 'evidence_too_many'],
  'evidence.store_full': [507, 'evidence_store_full'],
  'evidence.store_unavailable': [503, 'evidence_store_unavailable'],
  'evidence.removed': [503, 'evidence_removed'],
};

/** A separate scope, because only its bodies are capture files. */
export async function registerEvidence(app: FastifyInstance, deps: SensorApiDeps): Promise<void> {
  const { sensors, intake, evidence } = deps;
  await app.register(async (scope) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser(
      evidenceContentType,
      { parseAs: 'buffer', bodyLimit: evidenceUploadBytesMax },
      (_request, body, done) => done(null, body),
    );
    scope.setErrorHandler((error: FastifyError) => {
      throw translate(error);
    });
    scope.post<{ Body: Buffer | undefined; Params: { incidentId: string } }>(
      '/evidence/:incidentId',
      {
        onRequest: [authenticateWith(sensors), admitTo(intake)],
        bodyLimit: evidenceUploadBytesMax,
        schema: { params: Params },
      },
      async (request, reply) => {
        if (request.headers['content-encoding']?.trim().toLowerCase() !== 'zstd')
          throw new CodedError('evidence.malformed', 'Send the capture file with Content-Encoding: zstd.');
        const body = request.body ?? Buffer.alloc(0);
        const receipt = await evidence.receive(sensorOf(request), request.params.incidentId, body);
        return reply.status(201).send({ receipt });
      },
    );
  });
}

function translate(error: FastifyError): Error {
  if (error instanceof CodedError) {
    const answer = answers[error.code];
    if (answer) return new HttpError(answer[0], { code: answer[1], message: error.message });
  }
  if (error.code === 'FST_ERR_CTP_BODY_TOO_LARGE') {
    const message = `A capture file must not hold more than ${evidenceUploadBytesMax} bytes.`;
    return new HttpError(413, { code: 'evidence_too_large', message });
  }
  if (error.code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE') {
    const message = `Send capture files as Content-Type: ${evidenceContentType}.`;
    return new HttpError(400, { code: 'evidence_malformed', message });
  }
  return error;
}
