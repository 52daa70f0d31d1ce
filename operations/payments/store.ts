/** Every statement on saved cards and charges. */
import { sql } from 'kysely';
import { lockTenantStatus } from '#operations/accounts/index.ts';
import { chargeableTenant } from '#operations/views/tenant-store.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { Charge, SavedCard } from './charge.ts';
import type { GatewayCard } from './gateways/gateway.ts';

const cardColumns = sql`
  c.id, c.tenant_id, c.brand, c.last4, c.expires_month, c.expires_year, c.is_default, c.created_at,
  make_date(c.expires_year, c.expires_month, 1) < date_trunc('month', svc_now() at time zone 'utc')::date as is_expired`;

/** The tenant's cards at this gateway, the default one first. */
export async function listCards(db: Queryable, tenantId: number, gateway: string): Promise<SavedCard[]> {
  const { rows } = await sql<SavedCard>`
    select ${cardColumns} from saved_cards c
    where c.tenant_id = ${tenantId} and c.gateway = ${gateway} and c.removed_at is null
    order by c.is_default desc, c.id`.execute(db);
  return rows;
}

/** The card that is charged: the default one, unless it has expired. */
export async function findChargeableCard(
  db: Queryable,
  tenantId: number,
  gateway: string,
): Promise<SavedCard | null> {
  const cards = await listCards(db, tenantId, gateway);
  return cards.find((card) => card.isDefault && !card.isExpired) ?? null;
}

/** Locks the tenant's cards for a change of which is the default. */
export async function lockCards(tx: Queryable, tenantId: number): Promise<void> {
  await lockTenantStatus(tx, tenantId);
}

/** The id of the card, also when it was saved before. */
export async function insertCard(
  tx: Queryable,
  card: GatewayCard & { tenantId: number; gateway: string; isDefault: boolean },
): Promise<number> {
  const { rows } = await sql<{ id: number }>`
    insert into saved_cards as kept (tenant_id, gateway, reference, brand, last4, expires_month, expires_year, is_default)
    values (${card.tenantId}, ${card.gateway}, ${card.reference}, ${card.brand}, ${card.last4}, ${card.expiresMonth},
      ${card.expiresYear}, ${card.isDefault})
    on conflict (gateway, reference) where removed_at is null do update set brand = kept.brand
    returning id`.execute(tx);
  return rows[0]!.id;
}

/** Makes this card the tenant's default; false when it is not one of theirs. */
export async function setDefaultCard(
  tx: Queryable,
  tenantId: number,
  gateway: string,
  cardId: number,
): Promise<boolean> {
  const { rows } = await sql`
    select 1 from saved_cards
    where id = ${cardId} and tenant_id = ${tenantId} and gateway = ${gateway} and removed_at is null`.execute(
    tx,
  );
  if (rows.length === 0) return false;
  await sql`update saved_cards set is_default = false
    where tenant_id = ${tenantId} and gateway = ${gateway} and is_default and removed_at is null`.execute(tx);
  await sql`update saved_cards set is_default = true where id = ${cardId}`.execute(tx);
  return true;
}

/** Ends a card; returns the gateway's name for it, or null when it is not one of theirs. */
export async function removeCard(tx: Queryable, tenantId: number, cardId: number): Promise<string | null> {
  const { rows } = await sql<{ reference: string; gateway: string }>`
    update saved_cards set removed_at = svc_now(), is_default = false
    where id = ${cardId} and tenant_id = ${tenantId} and removed_at is null
    returning reference, gateway`.execute(tx);
  const removed = rows[0];
  if (!removed) return null;
  await sql`update saved_cards set is_default = true where id = (
      select id from saved_cards where tenant_id = ${tenantId} and gateway = ${removed.gateway} and removed_at is null
      order by id desc limit 1)
    and not exists (select 1 from saved_cards d where d.tenant_id = ${tenantId} and d.gateway = ${removed.gateway}
      and d.removed_at is null and d.is_default)`.execute(tx);
  return removed.reference;
}

export async function findCustomer(db: Queryable, tenantId: number, gateway: string): Promise<string | null> {
  const { rows } = await sql<{ reference: string }>`
    select reference from gateway_customers where tenant_id = ${tenantId} and gateway = ${gateway}`.execute(
    db,
  );
  return rows[0]?.reference ?? null;
}

/** Keeps the first reference that was noted, which it returns. */
export async function insertCustomer(
  db: Queryable,
  tenantId: number,
  gateway: string,
  reference: string,
): Promise<string> {
  await sql`insert into gateway_customers (tenant_id, gateway, reference)
    values (${tenantId}, ${gateway}, ${reference}) on conflict do nothing`.execute(db);
  return (await findCustomer(db, tenantId, gateway)) ?? reference;
}

const chargeColumns = sql`
  id, charge_key as key, tenant_id, card_id, order_id, purpose, amount_quanta, currency, gateway, gateway_reference,
  state, decline_reason, attempts, next_attempt_at, last_error, created_at,
  settled_at`;

export interface NewCharge {
  key: string;
  tenantId: number;
  cardId: number;
  orderId: number | null;
  purpose: Charge['purpose'];
  amountQuanta: number;
  gateway: string;
}

/** Null for a closed account, which is no longer charged. */
export async function insertCharge(tx: Queryable, charge: NewCharge): Promise<Charge | null> {
  const { rows } = await sql<Charge>`
    insert into charges (charge_key, tenant_id, card_id, order_id, purpose, amount_quanta, currency, gateway)
    select ${charge.key}, id, ${charge.cardId}, ${charge.orderId}, ${charge.purpose}, ${charge.amountQuanta}::bigint,
      currency, ${charge.gateway}
    from (${chargeableTenant(charge.tenantId)}) t
    returning ${chargeColumns}`.execute(tx);
  return rows[0] ?? null;
}

/** What the gateway must be told beyond the charge's own row. */
export async function findChargeParties(
  db: Queryable,
  chargeId: number,
): Promise<{ cardReference: string; customerReference: string | null }> {
  const { rows } = await sql<{ cardReference: string; customerReference: string | null }>`
    select c.reference as card_reference, g.reference as customer_reference
    from charges x join saved_cards c on c.id = x.card_id
    left join gateway_customers g on g.tenant_id = x.tenant_id and g.gateway = x.gateway
    where x.id = ${chargeId}`.execute(db);
  return rows[0]!;
}

/** Notes the gateway's name of the charge; false when reconciliation has taken the charge over since. */
export async function notePrepared(db: Queryable, chargeId: number, reference: string): Promise<boolean> {
  const { rows } = await sql`
    update charges set state = 'prepared', gateway_reference = ${reference}
    where id = ${chargeId} and state = 'intended' returning 1`.execute(db);
  return rows.length === 1;
}

/**
 * Ends a charge whose caller still waits; false, and nothing changed, when reconciliation has taken it over since. That
 * condition is what keeps a slow answer from crediting what is being given back.
 */
export async function settleCharge(
  tx: Queryable,
  chargeId: number,
  state: 'succeeded' | 'declined' | 'unconfirmed' | 'voided',
  detail: { declineReason?: string; error?: string } = {},
): Promise<boolean> {
  const { rows } = await sql`
    update charges set state = ${state}, decline_reason = ${detail.declineReason ?? null},
      last_error = ${detail.error ?? null},
      next_attempt_at = case when ${state} = 'unconfirmed' then svc_now() + interval '30 seconds' end,
      settled_at = case when ${state} = 'unconfirmed' then null else svc_now() end
    where id = ${chargeId} and state in ('intended', 'prepared') returning 1`.execute(tx);
  return rows.length === 1;
}

/**
 * Takes over one charge that waits for reconciliation, or whose process has gone: from then on no caller that still waits
 * for it can settle it as succeeded. The next attempt is put off, so no second worker takes it meanwhile.
 */
export async function claimUnsettled(db: Queryable, abandonSeconds: number): Promise<Charge | null> {
  const { rows } = await sql<Charge>`
    update charges set state = 'unconfirmed', attempts = attempts + 1,
      next_attempt_at = svc_now() + make_interval(secs => least(3600, 60 * power(2, least(attempts, 6)))::int)
    where id = (
      select id from charges
      where (state in ('intended', 'prepared') and created_at <= svc_now() - make_interval(secs => ${abandonSeconds}))
        or (state = 'unconfirmed' and next_attempt_at <= svc_now())
      order by id limit 1 for update skip locked)
    returning ${chargeColumns}`.execute(db);
  return rows[0] ?? null;
}

/** The same for one order's charge, if it is due. */
export async function claimUnsettledOf(db: Queryable, orderId: number): Promise<Charge | null> {
  const { rows } = await sql<Charge>`
    update charges set attempts = attempts + 1, next_attempt_at = svc_now() + interval '60 seconds'
    where order_id = ${orderId} and state = 'unconfirmed' and next_attempt_at <= svc_now()
    returning ${chargeColumns}`.execute(db);
  return rows[0] ?? null;
}

/** Hands an order's charge that had succeeded to reconciliation, due at once; null when there is none. */
export async function reopenOrderCharge(tx: Queryable, orderId: number): Promise<Charge | null> {
  const { rows } = await sql<Charge>`
    update charges set state = 'unconfirmed', settled_at = null, next_attempt_at = svc_now(),
      last_error = 'the order was refused after it was paid'
    where order_id = ${orderId} and state = 'succeeded' returning ${chargeColumns}`.execute(tx);
  return rows[0] ?? null;
}

/** The end of a charge that was given up. */
export async function endUnconfirmed(
  db: Queryable,
  chargeId: number,
  state: 'voided' | 'refunded',
): Promise<boolean> {
  const { rows } = await sql`
    update charges set state = ${state}, settled_at = svc_now(), next_attempt_at = null, last_error = null
    where id = ${chargeId} and state = 'unconfirmed' returning 1`.execute(db);
  return rows.length === 1;
}

export async function noteAttempt(db: Queryable, chargeId: number, error: string): Promise<void> {
  await sql`update charges set last_error = ${error} where id = ${chargeId} and state = 'unconfirmed'`.execute(
    db,
  );
}

/** Lets reconciliation look at an unconfirmed charge now; false when it isn't one. */
export async function scheduleReconciliation(
  db: Queryable,
  by: { id: number } | { key: string },
): Promise<boolean> {
  const condition = 'id' in by ? sql`id = ${by.id}` : sql`charge_key = ${by.key}`;
  const { rows } = await sql`
    update charges set next_attempt_at = svc_now() where ${condition} and state = 'unconfirmed' returning 1`.execute(
    db,
  );
  return rows.length === 1;
}

export async function listChargesOfTenant(db: Queryable, tenantId: number, limit: number): Promise<Charge[]> {
  const { rows } = await sql<Charge>`
    select ${chargeColumns} from charges where tenant_id = ${tenantId} order by id desc limit ${limit}`.execute(
    db,
  );
  return rows;
}

/** Charges that wait, oldest first, then those that reconciliation has ended, newest first. */
export async function listReconciled(db: Queryable, limit: number): Promise<Charge[]> {
  const { rows } = await sql<Charge>`
    select ${chargeColumns} from charges where state in ('unconfirmed', 'voided', 'refunded')
    order by state <> 'unconfirmed', case when state = 'unconfirmed' then id else -id end limit ${limit}`.execute(
    db,
  );
  return rows;
}
