import type { FastifyRequest } from 'fastify';
import { schemas } from '#contracts/customer-api/index.ts';
import type { Features } from '#operations/features.ts';
import type { Delivery } from '#operations/views/delivery-store.ts';
import type { Endpoint } from '#operations/webhooks/index.ts';
import { type Call, type Handlers, notFound } from '../call.ts';
import { preconditionOn } from '../conditional.ts';
import { idempotent } from '../idempotent.ts';
import { bodyReader, idOf, pageOf, readSelection } from '../request-parts.ts';

const readCreate = bodyReader(schemas.CreateWebhookRequest);
const readUpdate = bodyReader(schemas.UpdateWebhookRequest);
const deliveriesMax = 200;

/** The key within the workspace of the call: endpoints of its other workspaces are not there. */
const actorIn = ({ actor, tenant }: Call) => ({ ...actor, tenantIds: [tenant.id] });

export function webhookHandlers(deps: Features) {
  const { webhooks } = deps;
  const find = (call: Call, request: FastifyRequest) => webhooks.findEndpoint(actorIn(call), idOf(request));
  const precondition = (request: FastifyRequest) => preconditionOn(request, schemas.Webhook, showWebhook);
  /** One of those that are listed. */
  const readDelivery = async (call: Call, id: number, deliveryId: number) => {
    const deliveries = await webhooks.listDeliveries(actorIn(call), id, deliveriesMax);
    const found = deliveries.find((delivery) => delivery.id === deliveryId);
    if (found === undefined) throw notFound();
    return showDelivery(found);
  };
  return {
    async listWebhooks(call, request, reply) {
      const endpoints = await webhooks.listEndpoints(actorIn(call));
      const { page, pagination } = pageOf(request, reply, endpoints, (endpoint) => endpoint.id);
      return { webhooks: page.map(showWebhook), pagination };
    },

    async createWebhook(call, request, reply) {
      const body = readCreate(call, request);
      const { url, events: eventTypes, description = '' } = body;
      const { organizationId } = call.principal;
      const input = { organizationId, tenantId: call.tenant.id, url, description, eventTypes };
      const made = await idempotent<{ endpointId: number; secret: string | null }>(deps.idempotency, {
        ...{ call, request, reply, body },
        run: (claim) =>
          webhooks.createEndpoint(actorIn(call), input, async (tx, id) =>
            claim?.bind(tx, { kind: 'webhook', id }),
          ),
        // The secret can't be read again.
        replay: async ({ id }) => ({ endpointId: id, secret: null }),
      });
      const shown = showWebhook(await webhooks.findEndpoint(actorIn(call), made.endpointId));
      reply.code(201).header('location', `/api/${call.version}/webhooks/${made.endpointId}`);
      return { ...shown, secret: made.secret };
    },

    readWebhook: async (call, request) => showWebhook(await find(call, request)),

    async updateWebhook(call, request) {
      const { id } = await find(call, request);
      const { url, events, description, enabled } = readUpdate(call, request);
      const input = {
        ...(url === undefined ? {} : { url }),
        ...(events === undefined ? {} : { eventTypes: events }),
        ...(description === undefined ? {} : { description }),
        ...(enabled === undefined ? {} : { isEnabled: enabled }),
      };
      await webhooks.changeEndpoint(actorIn(call), id, input, precondition(request));
      return showWebhook(await find(call, request));
    },

    async deleteWebhook(call, request, reply) {
      const { id } = await find(call, request);
      readSelection(call, request);
      await webhooks.deleteEndpoint(actorIn(call), id, precondition(request));
      return reply.code(204).send();
    },

    async testWebhook(call, request, reply) {
      const { id } = await find(call, request);
      readSelection(call, request);
      const deliveryId = await webhooks.sendTest(actorIn(call), id);
      reply.code(202);
      return readDelivery(call, id, deliveryId);
    },

    async listWebhookDeliveries(call, request, reply) {
      const { id } = await find(call, request);
      const deliveries = await webhooks.listDeliveries(actorIn(call), id, deliveriesMax);
      const { page, pagination } = pageOf(request, reply, deliveries, (delivery) => delivery.id);
      return { deliveries: page.map(showDelivery), pagination };
    },

    async replayWebhookDelivery(call, request, reply) {
      const { id } = await find(call, request);
      const deliveryId = idOf(request, 'delivery_id');
      await readDelivery(call, id, deliveryId);
      readSelection(call, request);
      await webhooks.replayDelivery(actorIn(call), id, deliveryId);
      reply.code(202);
      return readDelivery(call, id, deliveryId);
    },
  } satisfies Handlers;
}

function showWebhook(endpoint: Endpoint): schemas.Webhook {
  return {
    id: endpoint.id,
    tenant_id: endpoint.tenantId,
    url: endpoint.url,
    description: endpoint.description,
    events: endpoint.eventTypes,
    enabled: endpoint.disabledAt === null,
    failing_since: endpoint.failingSince?.toISOString() ?? null,
    created_at: endpoint.createdAt.toISOString(),
  };
}

function showDelivery(delivery: Delivery): schemas.WebhookDelivery {
  const { lastAt } = delivery;
  return {
    id: delivery.id,
    webhook_id: delivery.publicId,
    type: delivery.type,
    status: delivery.status,
    attempts: delivery.attempts,
    next_attempt_at: delivery.status === 'pending' ? delivery.nextAttemptAt.toISOString() : null,
    occurred_at: delivery.occurredAt.toISOString(),
    last_attempt:
      lastAt === null
        ? null
        : {
            at: lastAt.toISOString(),
            status_code: delivery.lastStatusCode,
            error: delivery.lastError,
            duration_ms: delivery.lastDurationMs,
          },
  };
}
