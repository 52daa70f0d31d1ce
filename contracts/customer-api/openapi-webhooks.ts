/** The `webhooks` of the OpenAPI document: what we send to the endpoints that customers name. */
import { type Json, type Parameter, type Parts, pascal } from './openapi-parts.ts';
import { eventBodySchema, testEvent, webhookEvents } from './webhook-events.ts';

const parameter = (name: string, description: string, schema: Json): Parameter => ({
  name,
  in: 'header',
  required: true,
  description,
  schema,
});

const parameters = [
  parameter('webhook-id', 'Id of the event; the same in every delivery attempt.', {
    type: 'string',
    pattern: '^msg_[0-9a-f]{32}$',
  }),
  parameter('webhook-timestamp', 'Time of the signature of this attempt, in seconds since 1970.', {
    type: 'string',
    pattern: '^\\d+$',
  }),
  parameter(
    'webhook-signature',
    'One or more signatures with spaces between them, each `v1,` and the base64 of an HMAC-SHA256 of `id.timestamp.body`.',
    { type: 'string', pattern: '^v1,[A-Za-z0-9+/]{43}=( v1,[A-Za-z0-9+/]{43}=)*$' },
  ),
];

const answers: Record<string, [name: string, description: string]> = {
  '2XX': ['WebhookAccepted', 'Accepted. Any other answer, or none within 15 seconds, is retried.'],
  '410': ['WebhookGone', 'Gone: the endpoint is disabled.'],
};

/** One entry for each event. */
export function describeWebhooks(parts: Parts): Json {
  return Object.fromEntries(
    [...webhookEvents, testEvent].map((kind) => [
      kind.type,
      {
        post: {
          operationId: `receive${pascal(kind.type)}`,
          summary: kind.summary,
          security: [],
          parameters: parameters.map((one) => parts.shareParameter(one)),
          requestBody: {
            required: true,
            content: { 'application/json': { schema: parts.schema(eventBodySchema(kind)) } },
          },
          responses: Object.fromEntries(
            Object.entries(answers).map(([status, [name, description]]) => [
              status,
              parts.share('responses', name, { description }),
            ]),
          ),
        },
      },
    ]),
  );
}
