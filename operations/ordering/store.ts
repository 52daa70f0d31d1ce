/** Every statement on server orders. */
import { sql } from 'kysely';
import { settledOrders } from '#operations/views/order-store.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';

/** From here on a statement of this transaction that waits longer for a lock fails. */
export async function boundLockWaits(tx: Queryable, lockTimeoutMs: number): Promise<void> {
  await sql`select set_config('lock_timeout', ${String(lockTimeoutMs)}, true)`.execute(tx);
}

/** Orders of the last hour, and how long until the oldest of them is an hour old. */
export async function countRecentOrders(
  tx: Queryable,
  tenantId: number,
): Promise<{ used: number; resetSeconds: number }> {
  const { rows } = await sql<{ used: number; resetSeconds: number }>`
    select count(*) as used,
      coalesce(ceil(extract(epoch from min(created_at) + interval '1 hour' - svc_now())), 3600)::int as reset_seconds
    from server_orders where tenant_id = ${tenantId} and created_at > svc_now() - interval '1 hour'`.execute(
    tx,
  );
  return rows[0]!;
}

export interface NewOrderRow {
  tenantId: number;
  planId: number;
  /** Zero for what is due is paid at once. */
  dueQuanta: number;
  rootPassword: string;
  request: object;
  formId: string | null;
}

export async function insertOrder(tx: Queryable, order: NewOrderRow): Promise<number> {
  const isPaid = order.dueQuanta === 0;
  const { rows } = await sql<{ id: number }>`
    insert into server_orders (tenant_id, plan_id, state, billing_cycle, due_quanta, root_password, request, form_id, paid_at)
    values (${order.tenantId}, ${order.planId}, ${isPaid ? 'paid' : 'created'}, 'hourly', ${order.dueQuanta},
      ${order.rootPassword}, ${JSON.stringify(order.request)}::jsonb, ${order.formId}, case when ${isPaid} then svc_now() end)
    returning id`.execute(tx);
  return rows[0]!.id;
}

/** An order of this form, or the very same order of the last seconds that was not refused. */
export async function findRepeated(
  tx: Queryable,
  order: { tenantId: number; formId: string | null; request: object; seconds: number },
): Promise<{ orderId: number; isSameForm: boolean } | null> {
  const { rows } = await sql<{ orderId: number; isSameForm: boolean }>`
    select id as order_id, form_id is not distinct from ${order.formId}::text and form_id is not null as is_same_form
    from server_orders
    where tenant_id = ${order.tenantId} and (form_id = ${order.formId}
      or (created_at > svc_now() - make_interval(secs => ${order.seconds}) and state <> 'unpaid'
        and request = ${JSON.stringify(order.request)}::jsonb))
    order by is_same_form desc, id desc limit 1`.execute(tx);
  return rows[0] ?? null;
}

/** What an order holds until it is carried out or closed, in the words of the feature that carries it out. */
export type Held = Record<string, unknown>;

export async function noteHeld(tx: Queryable, orderId: number, held: Held): Promise<void> {
  await sql`update server_orders set held = ${JSON.stringify(held)}::jsonb where id = ${orderId}`.execute(tx);
}

/** The outcome of an order's charge; returns what the order holds, or null when it was settled before or holds nothing. */
export async function settleOrder(
  tx: Queryable,
  orderId: number,
  state: 'paid' | 'unpaid',
): Promise<Held | null> {
  const { rows } = await sql<{ held: Held | null }>`update server_orders set state = ${state},
      paid_at = case when ${state} = 'paid' then svc_now() end,
      closed_reason = case when ${state} = 'unpaid' then 'not_paid' end
    where id = ${orderId} and state = 'created' returning held`.execute(tx);
  return rows[0]?.held ?? null;
}

export interface StoredOrder {
  id: number;
  tenantId: number;
  request: Record<string, unknown>;
}

export interface HeldOrder extends StoredOrder {
  held: Held;
}

/** A paid order whose provisioning is not queued yet, locked; null when it is, or never will be. */
export async function lockUnqueued(
  tx: Queryable,
  orderId: number,
): Promise<(StoredOrder & { held: Held | null }) | null> {
  const { rows } = await sql<StoredOrder & { held: Held | null }>`
    select id, tenant_id, request, held from server_orders
    where id = ${orderId} and state = 'paid' and queued_at is null and closed_reason is null for update`.execute(
    tx,
  );
  return rows[0] ?? null;
}

export async function noteQueued(tx: Queryable, orderId: number): Promise<void> {
  await sql`update server_orders set queued_at = svc_now() where id = ${orderId}`.execute(tx);
}

/** Says why a paid order will never be carried out; null when that was said before, or when it was carried out. */
export async function closeOrder(
  tx: Queryable,
  orderId: number,
  reason: string,
): Promise<{ held: Held | null } | null> {
  const { rows } = await sql<{ held: Held | null }>`update server_orders set closed_reason = ${reason}
    where id = ${orderId} and queued_at is null and closed_reason is null returning held`.execute(tx);
  return rows[0] ?? null;
}

/** Paid orders whose process died before it queued them. */
export async function listAbandonedPaid(db: Queryable, graceSeconds: number): Promise<number[]> {
  const { rows } = await sql<{ id: number }>`
    select id from server_orders
    where state = 'paid' and queued_at is null and closed_reason is null
      and paid_at <= svc_now() - make_interval(secs => ${graceSeconds})
    order by id limit 100`.execute(db);
  return rows.map((row) => row.id);
}

/** The password as it stands on the order; asked for by the creating answer and by provisioning alone. */
export async function findRootPassword(db: Queryable, orderId: number): Promise<string> {
  const { rows } = await sql<{ password: string | null }>`
    select root_password as password from server_orders where id = ${orderId}`.execute(db);
  const password = rows[0]?.password ?? null;
  if (password === null) throw new Error(`the root password of order ${orderId} was cleared`);
  return password;
}

/**
 * Clears the password of each order whose server has been ready for 24 hours or is gone, and of orders that were not
 * carried out within 24 hours. A server that waits or failed keeps its own: an operator may have it provisioned again. An
 * idempotency key of the order has expired by then.
 */
export async function clearRootPasswords(db: Queryable): Promise<number> {
  const { rows } = await sql`
    update server_orders set root_password = null where id in (${settledOrders})
    returning 1`.execute(db);
  return rows.length;
}

export interface ClosedOrder {
  id: number;
  tenantId: number;
  dueQuanta: number;
  reason: string;
  createdAt: Date;
}

/** Orders that were paid for by card and never carried out, newest first. */
export async function listPaidClosed(db: Queryable, limit: number): Promise<ClosedOrder[]> {
  const { rows } = await sql<ClosedOrder>`
    select id, tenant_id, due_quanta, closed_reason as reason, created_at
    from server_orders where state = 'paid' and closed_reason is not null order by id desc limit ${limit}`.execute(
    db,
  );
  return rows;
}
