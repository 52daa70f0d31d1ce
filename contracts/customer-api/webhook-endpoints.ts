import { bodyErrors, conditionErrors, type Endpoint, idempotencyErrors, ok } from './endpoint.ts';
import { SelectionRequest, ShortListQuery } from './schema-kit.ts';
import {
  CreatedWebhook,
  CreateWebhookRequest,
  UpdateWebhookRequest,
  Webhook,
  WebhookDelivery,
  WebhookDeliveryList,
  WebhookList,
} from './webhook-schemas.ts';

const common = { versions: ['v2'], params: {}, selectsTenant: true } as const;
const onWebhook = { ...common, params: { id: 'webhook' } } as const;
const changeErrors = [...bodyErrors, 'not_found', 'read_only_key'] as const;
const action = { body: SelectionRequest, isBodyOptional: true } as const;
const queued = { 202: { description: 'The delivery, queued.', schema: WebhookDelivery } };

/** Endpoints of webhooks: of the workspace, managed by keys of an owner of the organization. */
export const webhookEndpoints = [
  {
    ...common,
    id: 'listWebhooks',
    method: 'GET',
    path: '/webhooks',
    summary: 'List webhooks',
    description:
      'The endpoints that are told what happens in the workspace. Only keys of an owner of the organization see them.',
    query: ShortListQuery,
    responses: {
      200: { description: 'A page of endpoints.', schema: WebhookList, headers: ['ETag', 'Link'] },
    },
    errors: ['invalid_cursor'],
  },
  {
    ...common,
    id: 'createWebhook',
    method: 'POST',
    path: '/webhooks',
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
    errors: [...changeErrors, ...idempotencyErrors, 'owner_only', 'limit_exceeded'],
  },
  {
    ...onWebhook,
    id: 'readWebhook',
    method: 'GET',
    path: '/webhooks/{id}',
    summary: 'Read a webhook',
    description: 'One endpoint of the workspace.',
    responses: ok(Webhook, 'The endpoint.'),
    errors: ['not_found'],
  },
  {
    ...onWebhook,
    id: 'updateWebhook',
    method: 'PATCH',
    path: '/webhooks/{id}',
    summary: 'Change a webhook',
    description:
      'Changes the given fields only. A disabled endpoint gets nothing, and nothing later of what it missed.',
    body: UpdateWebhookRequest,
    headers: ['If-Match'],
    responses: ok(Webhook, 'The endpoint.'),
    errors: [...changeErrors, ...conditionErrors],
  },
  {
    ...onWebhook,
    id: 'deleteWebhook',
    method: 'DELETE',
    path: '/webhooks/{id}',
    summary: 'Delete a webhook',
    description: 'Deletes the endpoint with its deliveries.',
    ...action,
    headers: ['If-Match'],
    responses: { 204: { description: 'Deleted.' } },
    errors: [...changeErrors, ...conditionErrors],
  },
  {
    ...onWebhook,
    id: 'testWebhook',
    method: 'POST',
    path: '/webhooks/{id}/test',
    summary: 'Test a webhook',
    description: 'Sends the endpoint an event `webhook.test`; at most 5 within 10 minutes.',
    ...action,
    responses: queued,
    errors: [...changeErrors, 'webhook_disabled', 'test_rate'],
  },
  {
    ...onWebhook,
    id: 'listWebhookDeliveries',
    method: 'GET',
    path: '/webhooks/{id}/deliveries',
    summary: 'List deliveries',
    description: 'The last 200 deliveries of the endpoint, newest first, each with its last attempt.',
    query: ShortListQuery,
    responses: {
      200: { description: 'A page of deliveries.', schema: WebhookDeliveryList, headers: ['ETag', 'Link'] },
    },
    errors: ['not_found', 'invalid_cursor'],
  },
  {
    ...common,
    id: 'replayWebhookDelivery',
    method: 'POST',
    path: '/webhooks/{id}/deliveries/{delivery_id}/replay',
    summary: 'Replay a delivery',
    description:
      'Sends a finished delivery of the list once more under the same `webhook-id`. One that is still pending is left alone.',
    params: { id: 'webhook', delivery_id: 'delivery' },
    ...action,
    responses: queued,
    errors: [...changeErrors, 'webhook_disabled'],
  },
] as const satisfies readonly Endpoint[];
