import { sql } from 'kysely';
import { lockOrganization } from '#operations/accounts/index.ts';

import { countTests, subscribedEndpoints } from '#operations/views/delivery-store.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { SecretColumn } from '#service-kit/secrets/index.ts';
import type { Endpoint } from './manage-endpoint.ts';

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

const endpointColumns = sql`e.id, e.organization_id, e.tenant_id, e.url, e.description, e.event_types, e.created_at,
  e.disabled_at, e.disabled_reason, e.consecutive_failures, e.failing_since,
  case when e.previous_secret_until > svc_now() then e.previous_secret_until end as previous_secret_until`;

/** Endpoints that are managed: of these organizations, and of these workspaces alone where there are some. */
export interface EndpointScope {
  organizationIds: readonly number[];
  /** Null: of all. */
  tenantIds: readonly number[] | null;
  /** Those of a whole organization, too. */
  hasWhole: boolean;
}

const managedIn = ({ organizationIds, tenantIds, hasWhole }: EndpointScope) =>
  sql`e.organization_id = any(${[...organizationIds]}::bigint[]) and (${tenantIds === null}
    or e.tenant_id = any(${[...(tenantIds ?? [])]}::bigint[]) or ${hasWhole} and e.tenant_id is null)`;

/** Oldest first. */
export async function listEndpoints(db: Queryable, scope: EndpointScope): Promise<Endpoint[]> {
  const { rows } = await sql<Endpoint>`select ${endpointColumns} from webhook_endpoints e
    where ${managedIn(scope)} order by e.id`.execute(db);
  return rows;
}

export async function findEndpoint(
  db: Queryable,
  scope: EndpointScope,
  id: number,
): Promise<Endpoint | null> {
  const { rows } = await sql<Endpoint>`select ${endpointColumns} from webhook_endpoints e
    where e.id = ${id} and ${managedIn(scope)}`.execute(db);
  return rows[0] ?? null;
}

/** The endpoint as it is, with its row locked until the transaction ends; null where it was deleted. */
export async function lockEndpoint(tx: Queryable, id: number): Promise<Endpoint | null> {
  const { rows } = await sql<Endpoint>`select ${endpointColumns} from webhook_endpoints e
    where e.id = ${id} for no key update`.execute(tx);
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
  await lockOrganization(tx, endpoint.organizationId);
  const { rows } = await sql`
    insert into webhook_endpoints (id, organization_id, tenant_id, url, description, event_types, sealed_secret)
    overriding system value
    select ${endpoint.id}, ${endpoint.organizationId}, ${endpoint.tenantId}::bigint, ${endpoint.url},
      ${endpoint.description}, ${[...endpoint.eventTypes]}::text[], ${endpoint.sealedSecret}
    where (select count(*) from webhook_endpoints where organization_id = ${endpoint.organizationId}) < ${cap}
    returning 1`.execute(tx);
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
    ${subscribedEndpoints(eventIds)}
    on conflict (endpoint_id, event_id) do nothing`.execute(tx);
}

/** How many tests the endpoint had lately, with its row locked until the transaction ends. */
export async function lockAndCountTests(tx: Queryable, endpointId: number, seconds: number): Promise<number> {
  await sql`select 1 from webhook_endpoints where id = ${endpointId} for no key update`.execute(tx);
  return countTests(tx, endpointId, seconds);
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
    select a.number, a.at, a.duration_ms, a.status_code, a.error
    from webhook_attempts a join webhook_deliveries d on d.id = a.delivery_id
    where d.id = ${deliveryId} and d.endpoint_id = ${endpointId} order by a.number desc`.execute(db);
  return rows;
}
