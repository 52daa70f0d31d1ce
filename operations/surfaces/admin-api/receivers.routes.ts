import { Type } from 'typebox';
import { CodedError, hasCode } from '#common/errors/index.ts';
import {
  ScanRequestOutcomes,
  ScanRequestsPage,
  ScanRequestUpdates,
  scanRequestsContract,
  scanRequestsLimitDefault,
  scanRequestsLimitMax,
  scanRequestsPath,
} from '#contracts/admin-api/port-scans.ts';
import type { Features } from '#operations/features.ts';
import { readScanCursor } from '#operations/protect/index.ts';
import { type App, HttpError } from '#service-kit/http/index.ts';
import { requireProject } from './authenticate.ts';

/** `POST` of each feed: its contract's path, bound and schemas; the answer follows the receiver's commit. */
export function registerReceivers(app: App, deps: Features): void {
  for (const receiver of deps.receivers) {
    const { path, request: body, answer, bodyBytesMax, permission } = receiver.contract;
    app.post(
      path,
      {
        bodyLimit: bodyBytesMax,
        schema: { body, response: { 200: answer } },
        // Before the body is read: a project that may not deliver is told so and sends no megabytes.
        preParsing: async (request) => {
          requireProject(request, permission);
        },
      },
      async (request) => {
        const { id: projectId, clusterIds } = request.adminProject!;
        try {
          return await receiver.receive({ projectId, clusterIds }, request.body);
        } catch (error) {
          throw error instanceof CodedError && error.code === receiver.invalidCode ? refusal(error) : error;
        }
      },
    );
  }
}

/** Content that the schema can't see: a 422 that names the fields. */
function refusal(error: CodedError): HttpError {
  const faults = error.details.fields as { path: string; message: string }[];
  return new HttpError(422, {
    code: 'validation_failed',
    reason: 'invalid_fields',
    message: error.message,
    fields: faults.map((fault) => ({ ...fault, code: 'invalid_value' })),
  });
}

const Query = Type.Object(
  {
    after: Type.Optional(Type.String({ maxLength: 200 })),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: scanRequestsLimitMax })),
  },
  { additionalProperties: false },
);
const { permission } = scanRequestsContract;

/** Scan requests of customers: monitors fetch what is pending, and say what became of it (NET-4.e). */
export function registerScanRequests(app: App, { protectScans }: Features): void {
  app.get(
    scanRequestsPath,
    { schema: { querystring: Query, response: { 200: ScanRequestsPage } } },
    async (request) => {
      const { id: projectId, clusterIds } = requireProject(request, permission);
      const { after, limit = scanRequestsLimitDefault } = request.query;
      const cursor = after === undefined ? null : readScanCursor(after);
      if (after !== undefined && cursor === null) throw invalidCursor();
      return protectScans.listRequests({ projectId, clusterIds }, { after: cursor, limit });
    },
  );

  app.post(
    scanRequestsPath,
    {
      schema: { body: ScanRequestUpdates, response: { 200: ScanRequestOutcomes } },
      preParsing: async (request) => {
        requireProject(request, permission);
      },
    },
    async (request) => {
      const { id: projectId, clusterIds } = request.adminProject!;
      try {
        return await protectScans.updateRequests({ projectId, clusterIds }, request.body);
      } catch (error) {
        throw hasCode(error, 'port_scans.invalid') ? refusal(error as CodedError) : error;
      }
    },
  );
}

function invalidCursor(): HttpError {
  return new HttpError(422, {
    code: 'validation_failed',
    reason: 'invalid_fields',
    message: 'The cursor is not of this list.',
    fields: [{ path: 'after', code: 'invalid_value', message: 'take `next_after` of the page before' }],
  });
}
