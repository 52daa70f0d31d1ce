/** What the owner of an organization does with its endpoints, and a key of theirs with those of its workspaces. */
import { CodedError, hasCode } from '#common/errors/index.ts';
import { oneLine } from '#common/text/index.ts';
import { testEvent, webhookEvents } from '#contracts/customer-api/index.ts';
import { type Actor, forbidden, requireWriter } from '#operations/accounts/index.ts';
import { recordTestEvent } from '#operations/events/index.ts';
import { findOwnersKey } from '#operations/views/key-store.ts';
import { ownsTenant } from '#operations/views/tenant-store.ts';
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
  onCreated?: (tx: Queryable, endpointId: number) => Promise<void>,
): Promise<{ endpointId: number; secret: string }> {
  const { organizationId, tenantId } = input;
  await requireOwner(db, actor, { organizationId, tenantId });
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
        { limit: 'webhooks', max: endpointsMax, used: endpointsMax },
      );
    await recordEndpoint(
      tx,
      actor,
      'webhook.create',
      { id, organizationId, tenantId, ...checked },
      { after: checked },
    );
    await onCreated?.(tx, id);
    return id;
  });
  return { endpointId, secret: formatSecret(secret) };
}

/** Called with the endpoint as it is, its row locked; what it throws refuses the change. */
export type EndpointPrecondition = (tx: Queryable, endpoint: Endpoint) => Promise<void>;

/** Throws `webhooks.invalid` and `webhooks.not_found`. What the input leaves out stays. */
export async function changeEndpoint(
  db: Queryable,
  rules: TargetRules,
  actor: Actor,
  id: number,
  input: Partial<EndpointInput> & { isEnabled?: boolean },
  precondition?: EndpointPrecondition,
): Promise<void> {
  await findManaged(db, actor, id);
  await inTransaction(db, async (tx) => {
    const endpoint = await lock(tx, id);
    await precondition?.(tx, endpoint);
    const { url, description, eventTypes } = endpoint;
    const after = check(rules, { url, description, eventTypes, ...input });
    await store.updateEndpoint(tx, endpoint.id, after);
    if (input.isEnabled !== undefined && input.isEnabled !== (endpoint.disabledAt === null))
      await switchEndpoint(tx, actor, endpoint, input.isEnabled);
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
  const endpoint = await findManaged(db, actor, id);
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

export async function deleteEndpoint(
  db: Queryable,
  actor: Actor,
  id: number,
  precondition?: EndpointPrecondition,
): Promise<void> {
  await findManaged(db, actor, id);
  await inTransaction(db, async (tx) => {
    const endpoint = await lock(tx, id);
    await precondition?.(tx, endpoint);
    await store.deleteEndpoint(tx, endpoint.id);
    await recordEndpoint(tx, actor, 'webhook.delete', endpoint);
  });
}

export async function setEndpointEnabled(db: Queryable, actor: Actor, id: number, isEnabled: boolean) {
  const endpoint = await findManaged(db, actor, id);
  await inTransaction(db, (tx) => switchEndpoint(tx, actor, endpoint, isEnabled));
}

async function switchEndpoint(tx: Queryable, actor: Actor, endpoint: Endpoint, isEnabled: boolean) {
  if (isEnabled) await store.enableEndpoint(tx, endpoint.id);
  else await store.disableEndpoint(tx, endpoint.id, 'owner');
  await recordEndpoint(tx, actor, isEnabled ? 'webhook.enable' : 'webhook.disable', endpoint);
}

async function lock(tx: Queryable, id: number): Promise<Endpoint> {
  const endpoint = await store.lockEndpoint(tx, id);
  if (endpoint === null) throw notFound();
  return endpoint;
}

/** Sends the endpoint an event of its own. Throws `webhooks.disabled`. */
export async function sendTest(db: Queryable, actor: Actor, id: number): Promise<number> {
  const endpoint = await findManaged(db, actor, id);
  requireEnabled(endpoint);
  return inTransaction(db, async (tx) => {
    // Counted before it is written, under the endpoint's lock, so that many at once do not pass.
    if ((await store.lockAndCountTests(tx, endpoint.id, testWindowSeconds)) >= testsMax)
      throw new CodedError(
        'webhooks.test_rate',
        `This endpoint had ${testsMax} tests within ten minutes. Wait a few minutes, then try again.`,
        { retrySeconds: testWindowSeconds },
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
  const endpoint = await findManaged(db, actor, id);
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

/** The endpoint, if the actor manages it; throws `webhooks.not_found` for any other. */
export async function findOwned(db: Queryable, actor: Actor, id: number): Promise<Endpoint> {
  const found = await store.findEndpoint(db, await managedBy(db, actor), id);
  if (found === null) throw notFound();
  return found;
}

/** The same for a change. */
async function findManaged(db: Queryable, actor: Actor, id: number): Promise<Endpoint> {
  const found = await findOwned(db, actor, id);
  requireWriter(actor);
  return found;
}

function notFound(): CodedError {
  return new CodedError('webhooks.not_found', 'There is no such endpoint.');
}

const none: store.EndpointScope = { organizationIds: [], tenantIds: [], hasWhole: false };

/**
 * What an owner manages: everything of their organizations. A key of an owner manages the endpoints of its workspaces, and
 * those of the whole organization if it reaches all of it.
 */
export async function managedBy(db: Queryable, actor: Actor): Promise<store.EndpointScope> {
  if (actor.kind !== 'customer') return none;
  if (actor.keyId === null)
    return { organizationIds: actor.ownedOrganizationIds, tenantIds: null, hasWhole: true };
  const key = await findOwnersKey(db, actor.keyId);
  if (key === null) return none;
  return { organizationIds: [key.organizationId], tenantIds: actor.tenantIds, hasWhole: key.reachesAll };
}

async function requireOwner(
  db: Queryable,
  actor: Actor,
  { organizationId, tenantId }: Pick<CreateEndpointInput, 'organizationId' | 'tenantId'>,
): Promise<void> {
  const { organizationIds, tenantIds, hasWhole } = await managedBy(db, actor);
  const isReached = tenantId === null ? hasWhole : (tenantIds?.includes(tenantId) ?? true);
  if (!organizationIds.includes(organizationId) || !isReached) {
    const message = 'Only the owner of the organization sets up webhooks.';
    throw actor.kind === 'customer' && actor.keyId !== null
      ? new CodedError('webhooks.owner_only', message)
      : forbidden(message);
  }
  requireWriter(actor);
}

function requireEnabled(endpoint: Endpoint): void {
  if (endpoint.disabledAt === null) return;
  throw new CodedError('webhooks.disabled', 'The endpoint is disabled. Enable it first.');
}

function check(rules: TargetRules, input: EndpointInput): EndpointInput {
  const description = oneLine(input.description);
  if (description.length > 200)
    throw invalidWebhook('A description has at most 200 characters.', 'description');
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
  if (unknown !== undefined) throw invalidWebhook(`There is no event ${unknown}.`, 'events');
  const types = known.filter((type) => chosen.includes(type));
  if (types.length === 0) throw invalidWebhook('Choose at least one event.', 'events');
  return types;
}
