/** Bodies about endpoints of webhooks and their deliveries. */
import { type Static, Type } from 'typebox';
import { Nullable } from '../scalars.ts';
import { type EndpointDeclaration, ok, page } from './endpoint.ts';
import {
  Id,
  Moment,
  OneOf,
  PageOf,
  RequestBody,
  SelectionRequest,
  ShortListQuery,
  Titled,
} from './schema-kit.ts';
import { webhookEvents } from './webhook-events.ts';

const webhookFields = {
  id: Id,
  tenant_id: Nullable(
    Type.Integer({ minimum: 1, description: 'Null: of all workspaces and of the organization itself.' }),
  ),
  url: Type.String(),
  description: Type.String(),
  events: Type.Array(Type.String()),
  enabled: Type.Boolean(),
  failing_since: Nullable(Moment),
  created_at: Moment,
};
export const Webhook = Titled('Webhook', webhookFields);
export type Webhook = Static<typeof Webhook>;
export const WebhookList = PageOf('WebhookList', 'webhooks', Webhook);
export const CreatedWebhook = Titled('CreatedWebhook', {
  ...webhookFields,
  secret: Nullable(
    Type.String({
      description: '`whsec_…`, which signs deliveries. Only in this answer, and null in a repetition.',
    }),
  ),
});

const url = Type.String({ minLength: 1, maxLength: 500, description: 'HTTPS, on the public internet.' });
const description = Type.String({ maxLength: 200 });
const events = Type.Array(OneOf(webhookEvents.map(({ type }) => type)), {
  minItems: 1,
  maxItems: 100,
  description: 'Types of events.',
});
export const CreateWebhookRequest = RequestBody('CreateWebhookRequest', {
  url,
  events,
  description: Type.Optional(description),
});
export type CreateWebhookRequest = Static<typeof CreateWebhookRequest>;
export const UpdateWebhookRequest = RequestBody('UpdateWebhookRequest', {
  url: Type.Optional(url),
  events: Type.Optional(events),
  description: Type.Optional(description),
  enabled: Type.Optional(Type.Boolean({ description: 'False: pending deliveries are cancelled.' })),
});
export type UpdateWebhookRequest = Static<typeof UpdateWebhookRequest>;

export const WebhookDelivery = Titled('WebhookDelivery', {
  id: Id,
  webhook_id: Type.String({ description: 'The header `webhook-id` of the delivery.' }),
  type: Type.String(),
  status: OneOf(['pending', 'delivered', 'failed', 'cancelled']),
  attempts: Type.Integer(),
  next_attempt_at: Nullable(Moment),
  occurred_at: Moment,
  last_attempt: Nullable(
    Type.Object({
      at: Moment,
      status_code: Nullable(Type.Integer()),
      error: Nullable(Type.String()),
      duration_ms: Nullable(Type.Integer()),
    }),
  ),
});
export type WebhookDelivery = Static<typeof WebhookDelivery>;
export const WebhookDeliveryList = PageOf('WebhookDeliveryList', 'deliveries', WebhookDelivery);

const onWebhook = { id: 'webhook' } as const;
const resent = { 202: { description: 'The delivery, queued.', schema: WebhookDelivery } };

/** Endpoints of webhooks: of the workspace, managed by keys of an owner of the organization. */
export const webhookEndpoints = [
  {
    id: 'listWebhooks',
    call: 'GET /webhooks',
    summary: 'List webhooks',
    description:
      'The endpoints that are told what happens in the workspace. Only keys of an owner of the organization see them.',
    query: ShortListQuery,
    responses: page(WebhookList, 'A page of endpoints.'),
  },
  {
    id: 'createWebhook',
    call: 'POST /webhooks',
    summary: 'Create a webhook',
    description:
      'Tells an address of yours what happens in the workspace. Only this answer contains the `secret` with which deliveries are signed.',
    body: CreateWebhookRequest,
    headers: ['Idempotency-Key'],
    responses: {
      201: {
        description: 'The endpoint.',
        schema: CreatedWebhook,
        headers: ['Location', 'Idempotent-Replayed'],
      },
    },
    errors: ['owner_only', 'limit_exceeded'],
  },
  {
    id: 'readWebhook',
    call: 'GET /webhooks/{id}',
    params: onWebhook,
    summary: 'Read a webhook',
    description: 'One endpoint of the workspace.',
    responses: ok(Webhook, 'The endpoint.'),
  },
  {
    id: 'updateWebhook',
    call: 'PATCH /webhooks/{id}',
    params: onWebhook,
    summary: 'Change a webhook',
    description:
      'Changes the given fields only. A disabled endpoint gets nothing, and nothing later of what it missed.',
    body: UpdateWebhookRequest,
    headers: ['If-Match'],
    responses: ok(Webhook, 'The endpoint.'),
  },
  {
    id: 'deleteWebhook',
    call: 'DELETE /webhooks/{id}',
    params: onWebhook,
    summary: 'Delete a webhook',
    description: 'Deletes the endpoint with its deliveries.',
    body: SelectionRequest,
    headers: ['If-Match'],
    responses: { 204: { description: 'Deleted.' } },
  },
  {
    id: 'testWebhook',
    call: 'POST /webhooks/{id}/test',
    params: onWebhook,
    summary: 'Test a webhook',
    description: 'Sends the endpoint an event `webhook.test`; at most 5 within 10 minutes.',
    body: SelectionRequest,
    responses: resent,
    errors: ['webhook_disabled', 'test_rate'],
  },
  {
    id: 'listWebhookDeliveries',
    call: 'GET /webhooks/{id}/deliveries',
    params: onWebhook,
    summary: 'List deliveries',
    description: 'The last 200 deliveries of the endpoint, newest first, each with its last attempt.',
    query: ShortListQuery,
    responses: page(WebhookDeliveryList, 'A page of deliveries.'),
  },
  {
    id: 'replayWebhookDelivery',
    call: 'POST /webhooks/{id}/deliveries/{delivery_id}/replay',
    summary: 'Replay a delivery',
    description:
      'Sends a finished delivery of the list once more under the same `webhook-id`. One that is still pending is left alone.',
    params: { id: 'webhook', delivery_id: 'delivery' },
    body: SelectionRequest,
    responses: resent,
    errors: ['webhook_disabled'],
  },
] as const satisfies readonly EndpointDeclaration[];
