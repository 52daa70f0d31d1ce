/** What came of an order: its server and its charge. */
import { type RawBuilder, sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

/** Orders whose caller has gone: reconciliation has taken over their charge. */
export async function listAbandonedCreated(db: Queryable): Promise<number[]> {
  const { rows } = await sql<{ id: number }>`
    select o.id from server_orders o
    where o.state = 'created' and o.queued_at is null and o.closed_reason is null
      and exists (select 1 from charges c where c.order_id = o.id and c.state not in ('intended', 'prepared'))
    order by o.id`.execute(db);
  return rows.map((row) => row.id);
}

export interface OrderOutcome {
  tenantId: number;
  state: 'created' | 'paid' | 'unpaid';
  /** Why a paid order was never carried out. */
  closedReason: string | null;
  serverId: number | null;
  chargeId: number | null;
  isDeclined: boolean;
}

export async function findOutcome(db: Queryable, orderId: number): Promise<OrderOutcome | null> {
  const { rows } = await sql<OrderOutcome>`
    select o.tenant_id, o.state, o.closed_reason, (select id from servers where order_id = o.id) as server_id,
      c.id as charge_id, coalesce(c.state = 'declined', false) as is_declined
    from server_orders o
    left join lateral (select id, state from charges where order_id = o.id order by id desc limit 1) c on true
    where o.id = ${orderId}`.execute(db);
  return rows[0] ?? null;
}

/**
 * Orders with a root password that is not needed any more: 24 hours after the server was ready or the order ended, or once
 * the server is gone.
 */
export const settledOrders: RawBuilder<unknown> = sql`
  select o.id from server_orders o
  where o.root_password is not null and o.created_at <= svc_now() - interval '24 hours'
    and (exists (select 1 from servers s where s.order_id = o.id
        and (s.provisioned_at <= svc_now() - interval '24 hours' or s.deleted_at is not null))
      or (not exists (select 1 from servers s where s.order_id = o.id)
        and (o.state = 'unpaid' or o.closed_reason is not null)))`;
