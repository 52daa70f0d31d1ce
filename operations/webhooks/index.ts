import { type Actor, requireStaff } from '#operations/accounts/index.ts';
import {
  type Delivery,
  type FailingEndpoint,
  findDeliveredEvent,
  listDeliveries,
  listFailing,
  type QueueHealth,
  readQueueHealth,
} from '#operations/views/delivery-store.ts';
import type { FeatureWork } from '#service-kit/jobs/index.ts';
import type { LoopDeps } from '#service-kit/leases/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { Secrets } from '#service-kit/secrets/index.ts';
import type { TargetRules } from '#service-kit/webhooks/index.ts';
import * as manage from './manage-endpoint.ts';
import { createWebhookSender, createWebhookUpkeep } from './send-deliveries.ts';
import * as store from './store.ts';

export type { Endpoint } from './manage-endpoint.ts';
export type { Attempt } from './store.ts';

/** Where webhooks keep sealed secrets. */
export const webhookSecrets = [store.endpointSecret, store.formerSecret] as const;

/** Everything but `readQueueHealth` and `listFailing` is for owners of organizations and their keys; others see no endpoint. */
export type Webhooks = ReturnType<typeof createWebhooks>;

export function createWebhooks(deps: LoopDeps & { secrets: Secrets; rules: TargetRules }) {
  const { db, secrets, rules } = deps;
  return {
    /** What it does beside the calls. */
    work: { parts: [createWebhookSender(deps), createWebhookUpkeep(deps)] } satisfies FeatureWork,
    listEndpoints: async (actor: Actor) => store.listEndpoints(db(), await manage.managedBy(db(), actor)),
    /** Throws `webhooks.not_found`, as all below. */
    findEndpoint: (actor: Actor, id: number) => manage.findOwned(db(), actor, id),
    createEndpoint: (
      actor: Actor,
      input: manage.CreateEndpointInput,
      onCreated?: (tx: Queryable, endpointId: number) => Promise<void>,
    ) => manage.createEndpoint(db(), secrets, rules, actor, input, onCreated),
    /** What the input leaves out stays. */
    changeEndpoint: (
      actor: Actor,
      id: number,
      input: Partial<manage.EndpointInput> & { isEnabled?: boolean },
      precondition?: manage.EndpointPrecondition,
    ) => manage.changeEndpoint(db(), rules, actor, id, input, precondition),
    /** The new secret, to be shown once. */
    rotateSecret: (actor: Actor, id: number) => manage.rotateEndpointSecret(db(), secrets, actor, id),
    setEnabled: (actor: Actor, id: number, isEnabled: boolean) =>
      manage.setEndpointEnabled(db(), actor, id, isEnabled),
    deleteEndpoint: (actor: Actor, id: number, precondition?: manage.EndpointPrecondition) =>
      manage.deleteEndpoint(db(), actor, id, precondition),
    /** The id of the test's delivery. */
    sendTest: (actor: Actor, id: number) => manage.sendTest(db(), actor, id),
    /** False when there is no such delivery, or it is still under way. */
    replayDelivery: (actor: Actor, id: number, deliveryId: number) =>
      manage.replayDelivery(db(), actor, id, deliveryId),
    async listDeliveries(actor: Actor, id: number, limit: number): Promise<Delivery[]> {
      const endpoint = await manage.findOwned(db(), actor, id);
      return listDeliveries(db(), endpoint.id, limit);
    },
    /** One delivery's attempts, last one first, and the body it carries; null where there is no such delivery. */
    async findDelivery(
      actor: Actor,
      id: number,
      deliveryId: number,
    ): Promise<{ attempts: store.Attempt[]; publicId: string; body: object } | null> {
      const endpoint = await manage.findOwned(db(), actor, id);
      const event = await findDeliveredEvent(db(), endpoint.id, deliveryId);
      if (event === null) return null;
      const { publicId, type, occurredAt, data } = event;
      const attempts = await store.listAttempts(db(), endpoint.id, deliveryId);
      return { attempts, publicId, body: { type, timestamp: occurredAt.toISOString(), data } };
    },
    /** How much waits, and for how long. Staff only. */
    async readQueueHealth(actor: Actor): Promise<QueueHealth> {
      requireStaff(actor);
      return readQueueHealth(db());
    },
    /** Endpoints whose receivers fail, the longest first. Staff only. */
    async listFailing(actor: Actor, limit: number): Promise<FailingEndpoint[]> {
      requireStaff(actor);
      return listFailing(db(), limit);
    },
  };
}

/** Deliveries that wait longer than this lack workers or a database, not receivers. */
const lateSeconds = 60;

/** Whether customers are told too late, because of us. */
export const isQueueLate = (health: Pick<QueueHealth, 'oldestSeconds'>): boolean =>
  health.oldestSeconds > lateSeconds;
