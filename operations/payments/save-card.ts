/** Cards: given to the gateway on its own page, kept here by name only. */
import { CodedError, describeError } from '#common/errors/index.ts';
import { type Actor, forbidden, reachesTenant, type Tenant } from '#operations/accounts/index.ts';
import { record } from '#service-kit/audit/index.ts';
import { inTransaction, type Queryable } from '#service-kit/postgres/index.ts';
import type { PaymentsDeps } from './charge.ts';
import type { GatewayCard } from './gateways/gateway.ts';
import * as store from './store.ts';

/** Throws unless this actor may spend a tenant's money: its people and operators, never a key, never support. */
export function requireSpender(actor: Actor, tenantId: number): void {
  const isPerson = actor.kind === 'customer' && actor.keyId === null && actor.tenantIds.includes(tenantId);
  const isOperator = actor.kind === 'staff' && actor.role === 'operator';
  if (!isPerson && !isOperator && actor.kind !== 'system')
    throw forbidden('Cards are changed in the portal, by people of the organization.');
}

export function requireReach(actor: Actor, tenantId: number): void {
  if (!reachesTenant(actor, tenantId)) throw forbidden('This account is not yours.');
}

/** Where the browser goes to give the gateway a card. */
export async function startCardSetup(
  deps: PaymentsDeps,
  actor: Actor,
  tenant: Pick<Tenant, 'id' | 'name'> & { email: string | null },
  urls: { returnUrl: string; cancelUrl: string },
): Promise<string> {
  requireSpender(actor, tenant.id);
  const { url } = await ask(deps, async () =>
    deps.gateway.startCardSetup({ customerReference: await customerOf(deps, tenant), ...urls }),
  );
  return url;
}

/** What the gateway says. Throws `payments.unavailable` where it says nothing or refuses us, and tells operators why. */
async function ask<T>({ gateway, reporter }: PaymentsDeps, call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (error) {
    reporter.error('the payment gateway did not take a call about a card', {
      gateway: gateway.name,
      error: describeError(error),
    });
    const message = 'Payments are not available right now. Nothing was changed; try again later.';
    throw new CodedError('payments.unavailable', message, {}, error);
  }
}

async function customerOf(deps: PaymentsDeps, tenant: { id: number; name: string; email: string | null }) {
  const known = await store.findCustomer(deps.db(), tenant.id, deps.gateway.name);
  if (known !== null) return known;
  const made = await deps.gateway.ensureCustomer(tenant);
  return made === null ? null : store.insertCustomer(deps.db(), tenant.id, deps.gateway.name, made);
}

/**
 * Saves the card of a finished set-up and makes it the one that is charged. Doing it again changes nothing. Throws
 * `payments.no_card` for a set-up that is not finished or not this tenant's, and `payments.unavailable`.
 */
export async function finishCardSetup(
  deps: PaymentsDeps,
  actor: Actor,
  tenantId: number,
  setupReference: string,
): Promise<number> {
  requireSpender(actor, tenantId);
  const customer = await store.findCustomer(deps.db(), tenantId, deps.gateway.name);
  const card = await ask(deps, () => deps.gateway.finishCardSetup(setupReference, customer));
  if (card === null) throw new CodedError('payments.no_card', 'No card was saved. Add it again.');
  return saveCard(deps, actor, tenantId, card);
}

function saveCard(deps: PaymentsDeps, actor: Actor, tenantId: number, card: GatewayCard): Promise<number> {
  const gateway = deps.gateway.name;
  return inTransaction(deps.db(), async (tx) => {
    await store.lockCards(tx, tenantId);
    const id = await store.insertCard(tx, { ...card, tenantId, gateway, isDefault: false });
    await store.setDefaultCard(tx, tenantId, gateway, id);
    const { brand, last4 } = card;
    await recordCard(tx, actor, 'card.add', tenantId, id, { brand, last4 });
    return id;
  });
}

export async function makeCardDefault(
  deps: PaymentsDeps,
  actor: Actor,
  tenantId: number,
  cardId: number,
): Promise<boolean> {
  requireSpender(actor, tenantId);
  return inTransaction(deps.db(), async (tx) => {
    await store.lockCards(tx, tenantId);
    if (!(await store.setDefaultCard(tx, tenantId, deps.gateway.name, cardId))) return false;
    await recordCard(tx, actor, 'card.make_default', tenantId, cardId);
    return true;
  });
}

/** The newest of the others becomes the default. What the gateway says about it is no reason to keep the card here. */
export async function removeCard(
  deps: PaymentsDeps,
  actor: Actor,
  tenantId: number,
  cardId: number,
): Promise<boolean> {
  requireSpender(actor, tenantId);
  const reference = await inTransaction(deps.db(), async (tx) => {
    await store.lockCards(tx, tenantId);
    const removed = await store.removeCard(tx, tenantId, cardId);
    if (removed !== null) await recordCard(tx, actor, 'card.remove', tenantId, cardId);
    return removed;
  });
  if (reference === null) return false;
  await deps.gateway
    .forgetCard(reference)
    .catch((error) => deps.reporter.warn('the gateway kept a removed card', { error: String(error) }));
  return true;
}

function recordCard(
  tx: Queryable,
  actor: Actor,
  operation: `card.${string}`,
  tenantId: number,
  cardId: number,
  after: object | null = null,
): Promise<void> {
  return record(tx, actor, { operation, subject: { kind: 'card', id: cardId }, tenantId, after });
}
