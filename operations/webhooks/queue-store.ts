/** The statements of the sender: an endpoint is claimed as a whole, and all that is recorded is fenced by its term. */
import { sql } from 'kysely';
import { isUnclaimed, setClaim } from '#service-kit/outbox/index.ts';
import { inTransaction, type Queryable } from '#service-kit/postgres/index.ts';

export interface ClaimedEndpoint {
  id: number;
  term: number;
  url: string;
  sealedSecret: Buffer | null;
  /** Signs too while it is set. */
  sealedPreviousSecret: Buffer | null;
  consecutiveFailures: number;
}

/**
 * Claims the endpoint whose delivery has been due the longest, among organizations that hold the fewest workers: at most
 * `perOrganizationMax` of one organization are served at a time, so its receivers that hang keep no other organization
 * waiting. One worker serves one endpoint at a time, so deliveries
 * keep their order and a hanging receiver delays no other endpoint; `skip locked` lets workers pass one another.
 */
export async function claimEndpoint(
  db: Queryable,
  claimSeconds: number,
  perOrganizationMax: number,
): Promise<ClaimedEndpoint | null> {
  return inTransaction(db, async (tx) => {
    // One claim at a time: workers that look at the same moment would all count none of the others.
    await sql`select pg_advisory_xact_lock(7318030)`.execute(tx);
    const { rows } = await sql<ClaimedEndpoint>`
    with held as (
      select organization_id, count(*) as workers from webhook_endpoints
      where claimed_until > svc_now() group by organization_id),
    due as (
      select e.id from webhook_deliveries d join webhook_endpoints e on e.id = d.endpoint_id
      where d.status = 'pending' and d.next_attempt_at <= svc_now() and e.disabled_at is null
        and ${isUnclaimed('e')}
        and coalesce((select workers from held where held.organization_id = e.organization_id), 0) < ${perOrganizationMax}
      order by coalesce((select workers from held where held.organization_id = e.organization_id), 0),
        d.next_attempt_at, d.id limit 1 for update of e skip locked)
    update webhook_endpoints e set ${setClaim(claimSeconds)}
    from due where e.id = due.id
    returning e.id, e.term, e.url, e.sealed_secret, e.consecutive_failures,
      case when e.previous_secret_until > svc_now() then e.sealed_previous_secret end as sealed_previous_secret`.execute(
      tx,
    );
    return rows[0] ?? null;
  });
}

/** Records the attempt and what it says of the endpoint; false when the term is over, and then nothing was recorded. */
export async function recordAttempt(
  tx: Queryable,
  endpoint: { id: number; term: number },
  result: {
    deliveryId: number;
    durationMs: number;
    statusCode: number | null;
    error: string | null;
  },
): Promise<boolean> {
  const failed = result.error !== null;
  const { rows } = await sql`update webhook_endpoints set
      consecutive_failures = case when ${failed} then consecutive_failures + 1 else 0 end,
      failing_since = case when ${failed} then coalesce(failing_since, svc_now()) end
    where id = ${endpoint.id} and term = ${endpoint.term} returning 1`.execute(tx);
  if (rows.length === 0) return false;
  await sql`with d as (update webhook_deliveries set attempts = attempts + 1, step = step + 1
      where id = ${result.deliveryId} returning id, attempts)
    insert into webhook_attempts (delivery_id, number, duration_ms, status_code, error)
    select id, attempts, ${result.durationMs}, ${result.statusCode}::int, ${result.error}::text from d`.execute(
    tx,
  );
  return true;
}

export async function finishDelivery(
  tx: Queryable,
  id: number,
  status: 'delivered' | 'failed',
): Promise<void> {
  await sql`update webhook_deliveries set status = ${status}, finished_at = svc_now() where id = ${id}`.execute(
    tx,
  );
}

/** Puts the delivery off, and for a shorter while everything else that is due at its endpoint. */
export async function postpone(
  tx: Queryable,
  endpointId: number,
  deliveryId: number,
  delaySeconds: number,
  restSeconds: number,
): Promise<void> {
  await sql`update webhook_deliveries set next_attempt_at = greatest(next_attempt_at, svc_now()
      + make_interval(secs => case when id = ${deliveryId} then ${delaySeconds}::float8 else ${restSeconds}::float8 end))
    where endpoint_id = ${endpointId} and status = 'pending'`.execute(tx);
}
