import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { SecretColumn } from '#service-kit/secrets/index.ts';
import type { Delivery, Endpoint } from './endpoint.ts';

/** Signs deliveries. */
export const endpointSecret: SecretColumn = {
  table: 'webhook_endpoints',
  key: 'id',
  sealed: 'sealed_secret',
  clear: 'clear_secret',
};
/** Signs too for a while after a rotation. */
export const formerSecret: SecretColumn = {
  table: 'webhook_endpoints',
  key: 'id',
  sealed: 'sealed_previous_secret',
  clear: 'clear_previous_secret',
};

const endpointColumns = sql`e.id, e.organization_id as "organizationId", e.tenant_id as "tenantId", e.url,
  e.description, e.event_types as "eventTypes", e.created_at as "createdAt", e.disabled_at as "disabledAt",
  e.disabled_reason as "disabledReason", e.consecutive_failures as "consecutiveFailures",
  e.failing_since as "failingSince",
  case when e.previous_secret_until > svc_now() then e.previous_secret_until end as "previousSecretUntil"`;

/** Endpoints of these organizations, oldest first. */
export async function listEndpoints(db: Queryable, organizationIds: readonly number[]): Promise<Endpoint[]> {
  const { rows } = await sql<Endpoint>`select ${endpointColumns} from webhook_endpoints e
    where e.organization_id = any(${[...organizationIds]}::bigint[]) order by e.id`.execute(db);
  return rows;
}

export async function findEndpoint(
  db: Queryable,
  organizationIds: readonly number[],
  id: number,
): Promise<Endpoint | null> {
  const { rows } = await sql<Endpoint>`select ${endpointColumns} from webhook_endpoints e
    where e.id = ${id} and e.organization_id = any(${[...organizationIds]}::bigint[])`.execute(db);
  return rows[0] ?? null;
}

export interface NewEndpoint {
  id: number;
  organizationId: number;
  tenantId: number | null;
  url: string;
  description: string;
  eventTypes: readonly string[];
  sealedSecret: Buffer;
}

/** The id of an endpoint that is about to be written: its secret is sealed for this row. */
export async function nextEndpointId(tx: Queryable): Promise<number> {
  const { rows } = await sql<{ id: number }>`
    select nextval(pg_get_serial_sequence('webhook_endpoints', 'id')) as id`.execute(tx);
  return rows[0]!.id;
}

/** Under a lock on the organization, so that creates at the same time can't pass the cap; false when it is reached. */
export async function insertEndpoint(tx: Queryable, endpoint: NewEndpoint, cap: number): Promise<boolean> {
  await sql`select 1 from organizations where id = ${endpoint.organizationId} for update`.execute(tx);
  const { rows } = await sql`
    insert into webhook_endpoints (id, organization_id, tenant_id, url, description, event_types, sealed_secret)
    overriding system value
    select ${endpoint.id}, ${endpoint.organizationId}, ${endpoint.tenantId}::bigint, ${endpoint.url},
      ${endpoint.description}, ${[...endpoint.eventTypes]}::text[], ${endpoint.sealedSecret}
    where (select count(*) from webhook_endpoints where organization_id = ${endpoint.organizationId}) < ${cap}
    returning 1`.execute(tx);
  return rows.length === 1;
}

/** Whether the workspace is one of the organization. */
export async function ownsTenant(db: Queryable, organizationId: number, tenantId: number): Promise<boolean> {
  const { rows } =
    await sql`select 1 from tenants where id = ${tenantId} and organization_id = ${organizationId}`.execute(
      db,
    );
  return rows.length === 1;
}

export async function updateEndpoint(
  db: Queryable,
  id: number,
  change: { url: string; description: string; eventTypes: readonly string[] },
): Promise<void> {
  await sql`update webhook_endpoints set url = ${change.url}, description = ${change.description},
    event_types = ${[...change.eventTypes]}::text[] where id = ${id}`.execute(db);
}

/** The sealed secret, with the endpoint's row locked until the transaction ends; undefined where it was deleted. */
export async function lockSecret(tx: Queryable, id: number): Promise<Buffer | null | undefined> {
  const { rows } = await sql<{ sealed: Buffer | null }>`
    select sealed_secret as sealed from webhook_endpoints where id = ${id} for no key update`.execute(tx);
  return rows[0]?.sealed;
}

/** Gives the endpoint a new secret; the former one, null where it does not open, signs too for this long. */
export async function rotateSecret(
  tx: Queryable,
  id: number,
  sealed: { secret: Buffer; former: Buffer | null },
  overlapHours: number,
): Promise<void> {
  await sql`update webhook_endpoints set sealed_secret = ${sealed.secret}, sealed_previous_secret = ${sealed.former},
    clear_secret = null, clear_previous_secret = null,
    previous_secret_until = svc_now() + make_interval(hours => ${overlapHours}) where id = ${id}`.execute(tx);
}

/** Forgets former secrets that sign no more. */
export async function deleteFormerSecrets(db: Queryable): Promise<void> {
  await sql`update webhook_endpoints
    set clear_previous_secret = null, sealed_previous_secret = null, previous_secret_until = null
    where previous_secret_until <= svc_now()`.execute(db);
}

export async function deleteEndpoint(db: Queryable, id: number): Promise<void> {
  await sql`delete from webhook_endpoints where id = ${id}`.execute(db);
}

/** A worker that delivers to it loses its claim, and pending deliveries are cancelled. */
export async function disableEndpoint(tx: Queryable, id: number, reason: 'gone' | 'owner'): Promise<void> {
  await sql`update webhook_endpoints set disabled_at = svc_now(), disabled_reason = ${reason}, term = term + 1,
    claimed_until = null where id = ${id} and disabled_at is null`.execute(tx);
  await sql`update webhook_deliveries set status = 'cancelled', finished_at = svc_now()
    where endpoint_id = ${id} and status = 'pending'`.execute(tx);
}

export async function enableEndpoint(db: Queryable, id: number): Promise<void> {
  await sql`update webhook_endpoints set disabled_at = null, disabled_reason = null, consecutive_failures = 0,
    failing_since = null where id = ${id}`.execute(db);
}

/** One delivery of each event for each endpoint that chose it and existed when it happened. */
export async function insertDeliveries(tx: Queryable, eventIds: readonly number[]): Promise<void> {
  await sql`insert into webhook_deliveries (endpoint_id, event_id)
    select e.id, v.id from events v join webhook_endpoints e on e.organization_id = v.organization_id
      and (e.tenant_id is null or e.tenant_id = v.tenant_id)
      and v.type = any(e.event_types) and e.disabled_at is null and e.created_at <= v.occurred_at
    where v.id = any(${[...eventIds]}::bigint[]) order by v.id
    on conflict (endpoint_id, event_id) do nothing`.execute(tx);
}

/** How many tests the endpoint had lately, with its row locked until the transaction ends. */
export async function lockAndCountTests(tx: Queryable, endpointId: number, seconds: number): Promise<number> {
  await sql`select 1 from webhook_endpoints where id = ${endpointId} for no key update`.execute(tx);
  const { rows } = await sql<{ count: number }>`
    select count(*)::int as count from webhook_deliveries d join events v on v.id = d.event_id
    where d.endpoint_id = ${endpointId} and v.type = 'webhook.test'
      and d.created_at > svc_now() - make_interval(secs => ${seconds})`.execute(tx);
  return rows[0]!.count;
}

export async function insertDelivery(tx: Queryable, endpointId: number, eventId: number): Promise<number> {
  const { rows } = await sql<{ id: number }>`insert into webhook_deliveries (endpoint_id, event_id)
    values (${endpointId}, ${eventId}) returning id`.execute(tx);
  return rows[0]!.id;
}

/** Starts a finished delivery anew; false when it is not one of the endpoint's, or still under way. */
export async function restartDelivery(db: Queryable, endpointId: number, id: number): Promise<boolean> {
  const { rows } = await sql`update webhook_deliveries
    set status = 'pending', step = 0, next_attempt_at = svc_now(), finished_at = null
    where id = ${id} and endpoint_id = ${endpointId} and status <> 'pending' returning 1`.execute(db);
  return rows.length === 1;
}

/** Deliveries of an endpoint, newest first, each with its last attempt. */
export async function listDeliveries(db: Queryable, endpointId: number, limit: number): Promise<Delivery[]> {
  const { rows } = await sql<Delivery>`
    select d.id, d.endpoint_id as "endpointId", v.public_id as "publicId", v.type, d.status, d.attempts,
      d.next_attempt_at as "nextAttemptAt", v.occurred_at as "occurredAt", a.at as "lastAt",
      a.status_code as "lastStatusCode", a.error as "lastError", a.duration_ms as "lastDurationMs"
    from webhook_deliveries d join events v on v.id = d.event_id
      left join webhook_attempts a on a.delivery_id = d.id and a.number = d.attempts
    where d.endpoint_id = ${endpointId} order by d.id desc limit ${limit}`.execute(db);
  return rows;
}

export interface Attempt {
  number: number;
  at: Date;
  durationMs: number;
  statusCode: number | null;
  error: string | null;
}

/** Attempts of a delivery, the last one first. */
export async function listAttempts(
  db: Queryable,
  endpointId: number,
  deliveryId: number,
): Promise<Attempt[]> {
  const { rows } = await sql<Attempt>`
    select a.number, a.at, a.duration_ms as "durationMs", a.status_code as "statusCode", a.error
    from webhook_attempts a join webhook_deliveries d on d.id = a.delivery_id
    where d.id = ${deliveryId} and d.endpoint_id = ${endpointId} order by a.number desc`.execute(db);
  return rows;
}

/** The body that a delivery carries; null where the endpoint has no such delivery. */
export async function findDeliveredEvent(
  db: Queryable,
  endpointId: number,
  deliveryId: number,
): Promise<{ publicId: string; type: string; occurredAt: Date; data: object } | null> {
  const { rows } = await sql<{ publicId: string; type: string; occurredAt: Date; data: object }>`
    select v.public_id as "publicId", v.type, v.occurred_at as "occurredAt", v.data
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
      (select min(occurred_at) from events where dispatched_at is null))), 0)::float8 as "oldestSeconds",
    (select count(*)::int from webhook_endpoints where failing_since is not null and disabled_at is null)
      as "failingEndpoints",
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
    select e.id, o.name as "organizationName",
      coalesce(e.tenant_id, (select t.id from tenants t where t.organization_id = o.id
        order by t.is_payer desc, t.id limit 1)) as "tenantId",
      substring(e.url from '^[a-z]+://([^/?#]+)') as host, e.failing_since as "failingSince",
      e.consecutive_failures as "consecutiveFailures", a.status_code as "lastStatusCode", a.error as "lastError"
    from webhook_endpoints e join organizations o on o.id = e.organization_id
    left join lateral (select a.status_code, a.error from webhook_attempts a
      join webhook_deliveries d on d.id = a.delivery_id where d.endpoint_id = e.id
      order by a.at desc limit 1) a on true
    where e.failing_since is not null and e.disabled_at is null order by e.failing_since limit ${limit}`.execute(
    db,
  );
  return rows;
}
