import { sql } from 'kysely';
import { eventRow, type NewEvent } from '#operations/views/event-store.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { StoredEvent } from './index.ts';

const columns = sql`id, public_id, type, organization_id, tenant_id, data,
  occurred_at`;

/** Inserts the event for the owner of the thing it is about; nothing where there is no such thing. */
export async function insertEvent(tx: Queryable, event: NewEvent): Promise<void> {
  await sql`insert into events (type, organization_id, tenant_id, data) ${eventRow(event)}`.execute(tx);
}

/**
 * The oldest events without deliveries; they count as dispatched when the caller's transaction commits.
 * `skip locked` lets several programs share the work, and a rolled back one gives its events back.
 */
export async function takeUndispatched(tx: Queryable, limit: number): Promise<StoredEvent[]> {
  const { rows } = await sql<StoredEvent>`
    update events set dispatched_at = svc_now()
    where id in (select id from events where dispatched_at is null order by id limit ${limit} for update skip locked)
    returning ${columns}`.execute(tx);
  return rows.sort((a, b) => a.id - b.id);
}

/** An event for one endpoint only. */
export async function insertOwnEvent(
  tx: Queryable,
  event: { type: string; organizationId: number; tenantId: number | null; data: object },
): Promise<number> {
  const { rows } = await sql<{ id: number }>`
    insert into events (type, organization_id, tenant_id, data, dispatched_at)
    values (${event.type}, ${event.organizationId}, ${event.tenantId}, ${JSON.stringify(event.data)}::jsonb, svc_now())
    returning id`.execute(tx);
  return rows[0]!.id;
}

/** Forgets dispatched events, their deliveries and attempts; a few thousand at a time, so that no lock is held long. */
export async function deleteOlderThan(db: Queryable, days: number): Promise<void> {
  await sql`delete from events where id in (select id from events
    where occurred_at < svc_now() - make_interval(days => ${days}) and dispatched_at is not null
    order by occurred_at limit 5000)`.execute(db);
}
