/** Deliveries of webhooks with the events that they carry. */
import { type RawBuilder, sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

export interface Delivery {
  id: number;
  endpointId: number;
  /** The `webhook-id`. */
  publicId: string;
  type: string;
  status: 'pending' | 'delivered' | 'failed' | 'cancelled';
  attempts: number;
  nextAttemptAt: Date;
  occurredAt: Date;
  lastAt: Date | null;
  lastStatusCode: number | null;
  lastError: string | null;
  lastDurationMs: number | null;
}

/** Deliveries of an endpoint, newest first, each with its last attempt. */
export async function listDeliveries(db: Queryable, endpointId: number, limit: number): Promise<Delivery[]> {
  const { rows } = await sql<Delivery>`
    select d.id, d.endpoint_id, v.public_id, v.type, d.status, d.attempts, d.next_attempt_at, v.occurred_at,
      a.at as last_at, a.status_code as last_status_code, a.error as last_error, a.duration_ms as last_duration_ms
    from webhook_deliveries d join events v on v.id = d.event_id
      left join webhook_attempts a on a.delivery_id = d.id and a.number = d.attempts
    where d.endpoint_id = ${endpointId} order by d.id desc limit ${limit}`.execute(db);
  return rows;
}

/** The body that a delivery carries; null where the endpoint has no such delivery. */
export async function findDeliveredEvent(
  db: Queryable,
  endpointId: number,
  deliveryId: number,
): Promise<{ publicId: string; type: string; occurredAt: Date; data: object } | null> {
  const { rows } = await sql<{ publicId: string; type: string; occurredAt: Date; data: object }>`
    select v.public_id, v.type, v.occurred_at, v.data
    from webhook_deliveries d join events v on v.id = d.event_id
    where d.id = ${deliveryId} and d.endpoint_id = ${endpointId}`.execute(db);
  return rows[0] ?? null;
}

export interface QueueHealth {
  pending: number;
  /** Seconds that the oldest due delivery has been waiting; 0 where none waits. */
  oldestSeconds: number;
  failingEndpoints: number;
  endpoints: number;
}

export async function readQueueHealth(db: Queryable): Promise<QueueHealth> {
  const { rows } = await sql<QueueHealth>`select
    (select count(*)::int from webhook_deliveries where status = 'pending')
      + (select count(*)::int from events where dispatched_at is null) as pending,
    coalesce(extract(epoch from svc_now() - least(
      (select min(next_attempt_at) from webhook_deliveries where status = 'pending' and next_attempt_at <= svc_now()),
      (select min(occurred_at) from events where dispatched_at is null))), 0)::float8 as oldest_seconds,
    (select count(*)::int from webhook_endpoints where failing_since is not null and disabled_at is null)
      as failing_endpoints,
    (select count(*)::int from webhook_endpoints) as endpoints`.execute(db);
  return rows[0]!;
}

/** An endpoint with failing deliveries; never its path, which may hold a secret of the receiver's. */
export interface FailingEndpoint {
  id: number;
  organizationName: string;
  /** The account of its events, or the payer of an organization that wants all of them. */
  tenantId: number;
  host: string;
  failingSince: Date;
  consecutiveFailures: number;
  lastStatusCode: number | null;
  lastError: string | null;
}

/** Those that fail longest come first. */
export async function listFailing(db: Queryable, limit: number): Promise<FailingEndpoint[]> {
  const { rows } = await sql<FailingEndpoint>`
    select e.id, o.name as organization_name,
      coalesce(e.tenant_id, (select t.id from tenants t where t.organization_id = o.id
        order by t.is_payer desc, t.id limit 1)) as tenant_id, substring(e.url from '^[a-z]+://([^/?#]+)') as host,
      e.failing_since, e.consecutive_failures, a.status_code as last_status_code, a.error as last_error
    from webhook_endpoints e join organizations o on o.id = e.organization_id
    left join lateral (select a.status_code, a.error from webhook_attempts a
      join webhook_deliveries d on d.id = a.delivery_id where d.endpoint_id = e.id
      order by a.at desc limit 1) a on true
    where e.failing_since is not null and e.disabled_at is null order by e.failing_since limit ${limit}`.execute(
    db,
  );
  return rows;
}

export interface DueDelivery {
  id: number;
  publicId: string;
  type: string;
  occurredAt: Date;
  data: object;
  step: number;
}

/** The endpoint's oldest due delivery. */
export async function nextDelivery(db: Queryable, endpointId: number): Promise<DueDelivery | null> {
  const { rows } = await sql<DueDelivery>`
    select d.id, v.public_id, v.type, v.occurred_at, v.data, d.step
    from webhook_deliveries d join events v on v.id = d.event_id
    where d.endpoint_id = ${endpointId} and d.status = 'pending' and d.next_attempt_at <= svc_now()
    order by d.id limit 1`.execute(db);
  return rows[0] ?? null;
}

/** How many tests an endpoint had in these seconds. */
export async function countTests(db: Queryable, endpointId: number, seconds: number): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*)::int as count from webhook_deliveries d join events v on v.id = d.event_id
    where d.endpoint_id = ${endpointId} and v.type = 'webhook.test'
      and d.created_at > svc_now() - make_interval(secs => ${seconds})`.execute(db);
  return rows[0]!.count;
}

/** Each endpoint that chose one of these events and existed when it happened, with the event's id, in the order of events. */
export const subscribedEndpoints = (eventIds: readonly number[]): RawBuilder<unknown> => sql`
  select e.id, v.id from events v join webhook_endpoints e on e.organization_id = v.organization_id
    and (e.tenant_id is null or e.tenant_id = v.tenant_id)
    and v.type = any(e.event_types) and e.disabled_at is null and e.created_at <= v.occurred_at
  where v.id = any(${[...eventIds]}::bigint[]) order by v.id, e.id`;
