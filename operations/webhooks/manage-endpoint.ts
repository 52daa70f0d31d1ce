/** What the owner of an organization does with its endpoints. A key does none of it. */
import { CodedError, hasCode } from '#common/errors/index.ts';
import { oneLine } from '#common/text/index.ts';
import { testEvent, webhookEvents } from '#contracts/customer-api/index.ts';
import { type Actor, type CustomerActor, forbidden } from '#operations/accounts/index.ts';
import { recordTestEvent } from '#operations/events/index.ts';
import { ownsTenant } from '#operations/views/index.ts';
import { changedMembers, record } from '#service-kit/audit/index.ts';
import { inTransaction, type Queryable } from '#service-kit/postgres/index.ts';
import type { Secrets } from '#service-kit/secrets/index.ts';
import {
  formatSecret,
  invalidWebhook,
  mintSecret,
  parseEndpointUrl,
  type TargetRules,
} from '#service-kit/webhooks/index.ts';
import * as store from './store.ts';

export interface EndpointInput {
  url: string;
  description: string;
  eventTypes: readonly string[];
}

export interface CreateEndpointInput extends EndpointInput {
  organizationId: number;
  tenantId: number | null;
}

const endpointsMax = 20;
const overlapHours = 24;
const testsMax = 5;
const testWindowSeconds = 600;

/** Throws `webhooks.invalid`, `webhooks.limit` and `accounts.forbidden`. The secret is in this result alone. */
export async function createEndpoint(
  db: Queryable,
  secrets: Secrets,
  rules: TargetRules,
  actor: Actor,
  input: CreateEndpointInput,
): Promise<{ endpointId: number; secret: string }> {
  requireOwner(actor, input.organizationId);
  const { organizationId, tenantId } = input;
  if (tenantId !== null && !(await ownsTenant(db, organizationId, tenantId)))
    throw invalidWebhook('There is no such workspace in this organization.');
  const secret = mintSecret();
  const checked = check(rules, input);
  await secrets.ready();
  const endpointId = await inTransaction(db, async (tx) => {
    const id = await store.nextEndpointId(tx);
    const sealedSecret = await secrets.seal(tx, store.endpointSecret, id, secret);
    const endpoint = { ...checked, id, organizationId, tenantId, sealedSecret };
    if (!(await store.insertEndpoint(tx, endpoint, endpointsMax)))
      throw new CodedError(
        'webhooks.limit',
        `There are ${endpointsMax} endpoints already. Delete one first.`,
      );
    await recordEndpoint(
      tx,
      actor,
      'webhook.create',
      { id, organizationId, tenantId, ...checked },
      { after: checked },
    );
    return id;
  });
  return { endpointId, secret: formatSecret(secret) };
}

/** Throws `webhooks.invalid` and `webhooks.not_found`. */
export async function changeEndpoint(
  db: Queryable,
  rules: TargetRules,
  actor: Actor,
  id: number,
  input: EndpointInput,
): Promise<void> {
  const endpoint = await findOwned(db, actor, id);
  const after = check(rules, input);
  await inTransaction(db, async (tx) => {
    await store.updateEndpoint(tx, endpoint.id, after);
    const { url, description, eventTypes } = endpoint;
    const states = changedMembers({ url, description, eventTypes }, after);
    await recordEndpoint(tx, actor, 'webhook.update', endpoint, states);
  });
}

/** The new secret, for this result alone; for a day deliveries carry the former one's signature as well. */
export async function rotateEndpointSecret(
  db: Queryable,
  secrets: Secrets,
  actor: Actor,
  id: number,
): Promise<string> {
  const endpoint = await findOwned(db, actor, id);
  const secret = mintSecret();
  await secrets.ready();
  await inTransaction(db, async (tx) => {
    const former = await openFormer(tx, secrets, endpoint.id);
    const sealed = {
      secret: await secrets.seal(tx, store.endpointSecret, endpoint.id, secret),
      former: former && (await secrets.seal(tx, store.formerSecret, endpoint.id, former)),
    };
    await store.rotateSecret(tx, endpoint.id, sealed, overlapHours);
    await recordEndpoint(tx, actor, 'webhook.rotate_secret', endpoint);
  });
  return formatSecret(secret);
}

/** Null where it does not open: a rotation is how that is mended. */
async function openFormer(tx: Queryable, secrets: Secrets, id: number): Promise<Buffer | null> {
  const sealed = await store.lockSecret(tx, id);
  if (sealed === undefined) throw notFound();
  try {
    return await secrets.open(tx, store.endpointSecret, id, sealed);
  } catch (error) {
    if (hasCode(error, 'secrets.refused')) return null;
    throw error;
  }
}

export async function deleteEndpoint(db: Queryable, actor: Actor, id: number): Promise<void> {
  const endpoint = await findOwned(db, actor, id);
  await inTransaction(db, async (tx) => {
    await store.deleteEndpoint(tx, endpoint.id);
    await recordEndpoint(tx, actor, 'webhook.delete', endpoint);
  });
}

export async function setEndpointEnabled(
  db: Queryable,
  actor: Actor,
  id: number,
  isEnabled: boolean,
): Promise<void> {
  const endpoint = await findOwned(db, actor, id);
  await db.transaction().execute(async (tx) => {
    if (isEnabled) await store.enableEndpoint(tx, endpoint.id);
    else await store.disableEndpoint(tx, endpoint.id, 'owner');
    await recordEndpoint(tx, actor, isEnabled ? 'webhook.enable' : 'webhook.disable', endpoint);
  });
}

/** Sends the endpoint an event of its own. Throws `webhooks.disabled`. */
export async function sendTest(db: Queryable, actor: Actor, id: number): Promise<number> {
  const endpoint = await findOwned(db, actor, id);
  requireEnabled(endpoint);
  return db.transaction().execute(async (tx) => {
    // Counted before it is written, under the endpoint's lock, so that many at once do not pass.
    if ((await store.lockAndCountTests(tx, endpoint.id, testWindowSeconds)) >= testsMax)
      throw new CodedError(
        'webhooks.test_rate',
        `This endpoint had ${testsMax} tests within ten minutes. Wait a few minutes, then try again.`,
      );
    const eventId = await recordTestEvent(tx, {
      type: testEvent.type,
      organizationId: endpoint.organizationId,
      tenantId: endpoint.tenantId,
      data: { endpoint_id: endpoint.id, href: null },
    });
    const deliveryId = await store.insertDelivery(tx, endpoint.id, eventId);
    await recordEndpoint(tx, actor, 'webhook.test', endpoint, { after: { deliveryId } });
    return deliveryId;
  });
}

/** Delivers a finished delivery once more, under the same `webhook-id`. Throws `webhooks.disabled`. */
export async function replayDelivery(
  db: Queryable,
  actor: Actor,
  id: number,
  deliveryId: number,
): Promise<boolean> {
  const endpoint = await findOwned(db, actor, id);
  requireEnabled(endpoint);
  return inTransaction(db, async (tx) => {
    if (!(await store.restartDelivery(tx, endpoint.id, deliveryId))) return false;
    await recordEndpoint(tx, actor, 'webhook.replay', endpoint, { after: { deliveryId } });
    return true;
  });
}

function recordEndpoint(
  tx: Queryable,
  actor: Actor,
  operation: `webhook.${string}`,
  endpoint: Pick<Endpoint, 'id' | 'url' | 'organizationId' | 'tenantId'>,
  states: { before?: object; after?: object } = {},
): Promise<void> {
  const { id, url, organizationId, tenantId } = endpoint;
  const subject = { kind: 'webhook', id, name: url };
  return record(tx, actor, { operation, subject, organizationId, tenantId, ...states });
}

/** The endpoint, if it is one of an organization that the actor owns; throws `webhooks.not_found` for any other. */
export async function findOwned(db: Queryable, actor: Actor, id: number): Promise<Endpoint> {
  const found = await store.findEndpoint(db, ownedBy(actor), id);
  if (found === null) throw notFound();
  return found;
}

function notFound(): CodedError {
  return new CodedError('webhooks.not_found', 'There is no such endpoint.');
}

export function ownedBy(actor: Actor): readonly number[] {
  return isOwner(actor) ? actor.ownedOrganizationIds : [];
}

function isOwner(actor: Actor): actor is CustomerActor {
  return actor.kind === 'customer' && actor.keyId === null;
}

function requireOwner(actor: Actor, organizationId: number): void {
  if (!ownedBy(actor).includes(organizationId))
    throw forbidden('Only the owner of the organization sets up webhooks.');
}

function requireEnabled(endpoint: Endpoint): void {
  if (endpoint.disabledAt === null) return;
  throw new CodedError('webhooks.disabled', 'The endpoint is disabled. Enable it first.');
}

function check(rules: TargetRules, input: EndpointInput): EndpointInput {
  const description = oneLine(input.description);
  if (description.length > 200) throw invalidWebhook('A description has at most 200 characters.');
  return {
    url: parseEndpointUrl(input.url, rules),
    description,
    eventTypes: parseEventTypes(input.eventTypes),
  };
}

export interface Endpoint {
  id: number;
  organizationId: number;
  /** null: every workspace, and the organization itself. */
  tenantId: number | null;
  url: string;
  description: string;
  eventTypes: string[];
  createdAt: Date;
  disabledAt: Date | null;
  disabledReason: 'gone' | 'owner' | null;
  consecutiveFailures: number;
  failingSince: Date | null;
  /** Until when deliveries carry the former secret's signature too. */
  previousSecretUntil: Date | null;
}

/** The chosen events, each once, in their usual order; throws `webhooks.invalid` when there is none or an unknown one. */
function parseEventTypes(chosen: readonly string[]): string[] {
  const known: readonly string[] = webhookEvents.map((event) => event.type);
  const unknown = chosen.find((type) => !known.includes(type));
  if (unknown !== undefined) throw invalidWebhook(`There is no event ${unknown}.`);
  const types = known.filter((type) => chosen.includes(type));
  if (types.length === 0) throw invalidWebhook('Choose at least one event.');
  return types;
}
