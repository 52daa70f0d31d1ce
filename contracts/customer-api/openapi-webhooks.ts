/** The `webhooks` of the OpenAPI document: what we send to the endpoints that customers name. */
import { eventBodySchema, testEvent, webhookEvents } from './webhook-events.ts';

type Json = Record<string, unknown>;

const parameter = (name: string, description: string, schema: Json) => ({
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

const responses = {
  '2XX': { description: 'Accepted. Any other answer, or none within 15 seconds, is retried.' },
  '410': { description: 'Gone: the endpoint is disabled.' },
};

/** One entry for each event; `refer` puts titled schemas among the components. */
export function describeWebhooks(refer: (schema: unknown) => unknown): Json {
  return Object.fromEntries(
    [...webhookEvents, testEvent].map((kind) => [
      kind.type,
      {
        post: {
          operationId: `receive${kind.type.replaceAll(/(?:^|[._])(\w)/g, (_, first: string) => first.toUpperCase())}`,
          summary: kind.summary,
          security: [],
          parameters,
          requestBody: {
            required: true,
            content: { 'application/json': { schema: refer(eventBodySchema(kind)) } },
          },
          responses,
        },
      },
    ]),
  );
}
