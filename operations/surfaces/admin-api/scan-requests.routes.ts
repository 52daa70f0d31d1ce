/** Scan requests of customers: monitors fetch what is pending, and say what became of it (NET-4.e). */
import { Type } from 'typebox';
import { type CodedError, hasCode } from '#common/errors/index.ts';
import {
  ScanRequestOutcomes,
  ScanRequestsPage,
  ScanRequestUpdates,
  scanRequestsContract,
  scanRequestsLimitDefault,
  scanRequestsLimitMax,
  scanRequestsPath,
} from '#contracts/admin-api/port-scans.ts';
import { type ProtectScans, readScanCursor } from '#operations/protect/index.ts';
import { type App, HttpError } from '#service-kit/http/index.ts';
import { requireProject } from './authenticate.ts';
import { refusal } from './receivers.routes.ts';

const Query = Type.Object(
  {
    after: Type.Optional(Type.String({ maxLength: 200 })),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: scanRequestsLimitMax })),
  },
  { additionalProperties: false },
);
const { permission } = scanRequestsContract;

export function registerScanRequests(app: App, { protectScans }: { protectScans: ProtectScans }): void {
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
