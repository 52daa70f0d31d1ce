import { createHash } from 'node:crypto';
import type { FastifyError, FastifyInstance } from 'fastify';
import { Type } from 'typebox';
import { CodedError } from '#common/errors/index.ts';
import {
  evidenceContentType,
  evidenceUploadBytesMax,
  incidentUnknownCode,
} from '#contracts/sensor-api/evidence.ts';
import {
  CredentialResponse,
  EnrolRequest,
  EnrolResponse,
  LiveReceipt,
  SensorPlan,
  TelemetryReceipt,
  uploadBytesMax,
} from '#contracts/sensor-api/http.ts';
import { liveBytesMax } from '#contracts/sensor-api/live.ts';
import { ScanPlan, ScanReceipt, ScanReport, scanReportBytesMax } from '#contracts/sensor-api/port-scans.ts';
import type { Evidence } from '#monitor/evidence/index.ts';
import type { Inbox } from '#monitor/inbox/index.ts';
import { requireIncidentsAlone } from '#monitor/incidents/index.ts';
import type { Intake } from '#monitor/intake/index.ts';
import type { Live } from '#monitor/live/index.ts';
import type { Scans } from '#monitor/scans/index.ts';
import type { Sensors } from '#monitor/sensors/index.ts';
import type { App } from '#service-kit/http/index.ts';
import { HttpError, originOf } from '#service-kit/http/index.ts';
import { admitTo, authenticateWith, registerUpload, sensorOf } from './authenticate.ts';

export async function registerSensorApi(app: App, deps: SensorApiDeps): Promise<void> {
  await app.register(
    async (plugin) => {
      const scope = plugin as unknown as FastifyInstance;
      registerEnrol(scope, deps);
      registerCredential(scope, deps);
      registerPlan(scope, deps);
      const { inbox, live } = deps;
      const telemetry = { bytesMax: uploadBytesMax, receipt: TelemetryReceipt };
      await registerUpload(scope, deps, '/telemetry', {
        ...telemetry,
        receive: (...upload) => inbox.receive(...upload),
      });
      await registerUpload(scope, deps, '/incidents', {
        ...telemetry,
        receive: (...upload) => inbox.receiveUrgent(...upload, requireIncidentsAlone),
      });
      await registerEvidence(scope, deps);
      await registerUpload(scope, deps, '/live', {
        ...{ bytesMax: liveBytesMax, receipt: LiveReceipt },
        receive: (...upload) => live.receive(...upload),
      });
      registerPortScans(scope, deps);
    },
    { prefix: '/agent/v1' },
  );
}

/** Features of the monitor that the sensor API uses. */
interface SensorApiDeps {
  sensors: Sensors;
  intake: Intake;
  inbox: Inbox;
  live: Live;
  evidence: Pick<Evidence, 'receive'>;
  scans: Pick<Scans, 'readPlan' | 'receive'>;
}

function registerEnrol(app: FastifyInstance, deps: SensorApiDeps): void {
  app.post<{ Body: EnrolRequest }>(
    '/enrol',
    { schema: { body: EnrolRequest, response: { 201: EnrolResponse } } },
    async (request, reply) => {
      const enrolled = await deps.sensors.enrol(request.body, originOf(request)).catch((error: unknown) => {
        if (!(error instanceof CodedError)) throw error;
        // The token is not used: the host may retry once the operator has removed the other sensor.
        if (error.code === 'sensors.node_taken')
          throw new HttpError(409, { code: 'node_taken', message: error.message });
        if (error.code !== 'sensors.invalid') throw error;
        throw new HttpError(422, { code: 'enrolment_refused', message: error.message });
      });
      if (!enrolled) {
        throw new HttpError(401, {
          code: 'enrolment_token_refused',
          message:
            'This enrolment token is unknown, used, or older than an hour. Create a new one in the site’s settings.',
        });
      }
      return reply.code(201).send(enrolled);
    },
  );
}

/** The credential alone identifies the sensor. */
const Nothing = Type.Object({}, { additionalProperties: false });

function registerCredential(app: FastifyInstance, deps: SensorApiDeps): void {
  app.post(
    '/credential',
    {
      onRequest: authenticateWith(deps.sensors),
      schema: { body: Nothing, response: { 201: CredentialResponse } },
    },
    async (request, reply) => {
      const rotated = await deps.sensors.rotateCredential(sensorOf(request), originOf(request));
      switch (rotated.outcome) {
        case 'issued':
          return reply.code(201).send({
            credential: rotated.credential,
            expires_at: new Date(rotated.expiresAtMs).toISOString(),
          });
        case 'not_due':
          throw new HttpError(409, {
            code: 'rotation_not_due',
            message: 'This credential is not to be replaced yet: the plan says when.',
          });
        case 'throttled':
          throw new HttpError(
            429,
            {
              code: 'rotation_throttled',
              message: 'A credential was issued a moment ago. Ask again in a few seconds.',
            },
            { 'retry-after': String(rotated.retryAfterSeconds) },
          );
        case 'refused':
          throw new HttpError(401, {
            code: 'unauthenticated',
            message: 'This credential is not taken any more.',
          });
      }
    },
  );
}

function registerPlan(app: FastifyInstance, deps: SensorApiDeps): void {
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

// `GET /port-scans`: what a sensor should scan. `POST /port-scans`: what became of a scan.

/** After these a sensor must not send the report again. */
const refusals: Readonly<Record<string, string>> = {
  'scans.unknown_target': 'scan_target_unknown',
  'scans.malformed': 'scan_report_malformed',
};

function registerPortScans(app: FastifyInstance, deps: SensorApiDeps): void {
  const { sensors, scans, intake } = deps;
  app.get(
    '/port-scans',
    { onRequest: authenticateWith(sensors), schema: { response: { 200: ScanPlan, 304: Type.Null() } } },
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

// `POST /evidence/{incident_id}`: a capture file of an attack that this sensor observed.

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
async function registerEvidence(app: FastifyInstance, deps: SensorApiDeps): Promise<void> {
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
