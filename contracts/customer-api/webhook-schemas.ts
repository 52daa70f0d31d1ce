/** Bodies about endpoints of webhooks and their deliveries. */
import { type Static, Type } from 'typebox';
import { Nullable } from '../scalars.ts';
import { Id, Moment, OneOf, Pagination, TenantSelector } from './schema-kit.ts';
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
export const Webhook = Type.Object(webhookFields, { title: 'Webhook' });
export type Webhook = Static<typeof Webhook>;
export const WebhookList = Type.Object(
  { webhooks: Type.Array(Webhook), pagination: Pagination },
  { title: 'WebhookList' },
);
export const CreatedWebhook = Type.Object(
  {
    ...webhookFields,
    secret: Nullable(
      Type.String({
        description: '`whsec_…`, which signs deliveries. Only in this answer, and null in a repetition.',
      }),
    ),
  },
  { title: 'CreatedWebhook' },
);

const url = Type.String({
  minLength: 1,
  maxLength: 500,
  description: 'HTTPS, on the public internet.',
});
const description = Type.String({ maxLength: 200 });
const events = Type.Array(OneOf(webhookEvents.map(({ type }) => type)), {
  minItems: 1,
  maxItems: 100,
  description: 'Types of events.',
});
export const CreateWebhookRequest = Type.Object(
  { url, events, description: Type.Optional(description), tenant: Type.Optional(TenantSelector) },
  { title: 'CreateWebhookRequest', additionalProperties: false },
);
export type CreateWebhookRequest = Static<typeof CreateWebhookRequest>;
export const UpdateWebhookRequest = Type.Object(
  {
    url: Type.Optional(url),
    events: Type.Optional(events),
    description: Type.Optional(description),
    enabled: Type.Optional(Type.Boolean({ description: 'False: pending deliveries are cancelled.' })),
    tenant: Type.Optional(TenantSelector),
  },
  { title: 'UpdateWebhookRequest', additionalProperties: false },
);
export type UpdateWebhookRequest = Static<typeof UpdateWebhookRequest>;

export const WebhookDelivery = Type.Object(
  {
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
  },
  { title: 'WebhookDelivery' },
);
export type WebhookDelivery = Static<typeof WebhookDelivery>;
export const WebhookDeliveryList = Type.Object(
  { deliveries: Type.Array(WebhookDelivery), pagination: Pagination },
  { title: 'WebhookDeliveryList' },
);
