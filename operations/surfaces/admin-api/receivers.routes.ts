import { CodedError } from '#common/errors/index.ts';
import type { FeedReceiver } from '#operations/feeds/index.ts';
import { type App, HttpError } from '#service-kit/http/index.ts';
import { requireProject } from './authenticate.ts';

/** `POST` of each feed: its contract's path, bound and schemas; the answer follows the receiver's commit. */
export function registerReceivers(app: App, deps: { receivers: readonly FeedReceiver[] }): void {
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
export function refusal(error: CodedError): HttpError {
  const faults = error.details.fields as { path: string; message: string }[];
  return new HttpError(422, {
    code: 'validation_failed',
    reason: 'invalid_fields',
    message: error.message,
    fields: faults.map((fault) => ({ ...fault, code: 'invalid_value' })),
  });
}
