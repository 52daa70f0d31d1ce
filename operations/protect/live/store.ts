/** Every statement on live buckets. */
import { sql } from 'kysely';
import type { LivePoint } from '#contracts/admin-api/live.ts';
import type { Allocation } from '#operations/addresses/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { Source, Standing } from '../traffic/index.ts';

/** How long buckets are kept. */
const kept = sql.lit('1 hour');
/** A source of a generation without minutes that has sent nothing for so long loses it to the next one. */
const silence = sql.lit('1 minute');

/**
 * Notes an attempt for these generations, and says for which of them the source may deliver: those whose minutes it owns,
 * and of those that no source owns minutes of, the ones that no other source delivers live now.
 */
export async function claim(
  tx: Queryable,
  { projectId, siteId }: Source,
  allocations: readonly (Pick<Allocation, 'id' | 'tenantId' | 'serverId' | 'address'> & {
    standing: Standing;
  })[],
): Promise<Set<number>> {
  const open = allocations.filter(({ standing }) => standing !== 'held');
  const owned = open.filter(({ standing }) => standing === 'owned').map(({ id }) => id);
  const given = JSON.stringify(
    open.map(({ id, tenantId, serverId, address }) => ({ id, tenantId, serverId, address })),
  );
  const { rows } = await sql<{ id: number }>`
    insert into protect_live_series as s (allocation_id, tenant_id, server_id, address, source_project_id, source_site_id)
    select id, "tenantId", "serverId", address, ${projectId}, ${siteId}
    from jsonb_to_recordset(${given}::jsonb) as g(id bigint, "tenantId" bigint, "serverId" bigint, address text) order by id
    on conflict (allocation_id) do update set source_project_id = excluded.source_project_id,
      source_site_id = excluded.source_site_id, attempted_at = svc_now()
      where s.allocation_id = any(${owned}::bigint[])
        or (s.source_project_id, s.source_site_id) = (excluded.source_project_id, excluded.source_site_id)
        or coalesce(s.received_at, '-infinity') <= svc_now() - ${silence}::interval
    returning allocation_id as id`.execute(tx);
  const claimed = new Set(rows.map(({ id }) => id));
  const refused = allocations.map(({ id }) => id).filter((id) => !claimed.has(id));
  // In the order of ids, as above, so that two deliveries never wait for each other.
  if (refused.length > 0)
    await sql`update protect_live_series set attempted_at = svc_now() where allocation_id in (
      select allocation_id from protect_live_series where allocation_id = any(${refused}::bigint[])
      order by allocation_id for update)`.execute(tx);
  return claimed;
}

/** A bucket as it came. */
export type BucketInput = LivePoint & { allocationId: number };

/** Writes buckets that are new or different; returns their generations. Those beyond the hour are left out. */
export async function upsertBuckets(tx: Queryable, buckets: readonly BucketInput[]): Promise<Set<number>> {
  const ids = [...new Set(buckets.map(({ allocationId }) => allocationId))];
  await sql`delete from protect_live_buckets
    where allocation_id = any(${ids}::bigint[]) and started_at < svc_now() - ${kept}::interval`.execute(tx);
  const { rows } = await sql<{ id: number }>`
    with written as (
      insert into protect_live_buckets as held (allocation_id, started_at, inbound_bps, outbound_bps, pps, coverage,
        observed_seconds)
      select "allocationId", sent.timestamp, sent.inbound_bps, sent.outbound_bps, sent.pps, sent.coverage,
        sent.observed_seconds
      from jsonb_to_recordset(${JSON.stringify(buckets)}::jsonb) as sent("allocationId" bigint, timestamp timestamptz,
        inbound_bps double precision, outbound_bps double precision, pps double precision, coverage double precision,
        observed_seconds double precision)
      left join protect_live_buckets known
        on known.allocation_id = "allocationId" and known.started_at = sent.timestamp
      where sent.timestamp >= svc_now() - ${kept}::interval and (known.started_at is null
        or (known.inbound_bps, known.outbound_bps, known.pps, known.coverage, known.observed_seconds)
          is distinct from (sent.inbound_bps, sent.outbound_bps, sent.pps, sent.coverage, sent.observed_seconds))
      order by 1, 2
      on conflict (allocation_id, started_at) do update set inbound_bps = excluded.inbound_bps,
        outbound_bps = excluded.outbound_bps, pps = excluded.pps, coverage = excluded.coverage,
        observed_seconds = excluded.observed_seconds, received_at = svc_now()
      returning allocation_id)
    select distinct allocation_id as id from written`.execute(tx);
  return new Set(rows.map(({ id }) => id));
}

/** Notes what was acknowledged. A replay never moves the newest observation back (NET-4.10). */
export async function noteReceipts(tx: Queryable, buckets: readonly BucketInput[]): Promise<void> {
  await sql`
    update protect_live_series s set received_at = svc_now(), received_buckets = sent.buckets,
      latest_at = greatest(s.latest_at, sent.latest)
    from (select "allocationId" as id, count(*)::int as buckets, max(timestamp) as latest
      from jsonb_to_recordset(${JSON.stringify(buckets)}::jsonb) as b("allocationId" bigint, timestamp timestamptz)
      group by 1) sent
    where s.allocation_id = sent.id`.execute(tx);
}

/** Which generations a reader sees: those of this server in this tenant, and of one address where it is given. */
export interface LiveScope {
  serverId: number;
  tenantId: number;
  address: string | null;
}

const seriesOf = (scope: LiveScope) => sql`
  server_id = ${scope.serverId} and tenant_id = ${scope.tenantId}
  and (${scope.address}::text is null or address = ${scope.address})`;

export interface LiveRow {
  address: string;
  startedAt: Date;
  inboundBps: number | null;
  outboundBps: number | null;
  pps: number | null;
  coverage: number | null;
  observedSeconds: number;
}

/** Buckets that began at or after this time, in time order. */
export async function listBuckets(db: Queryable, scope: LiveScope, fromMs: number): Promise<LiveRow[]> {
  const { rows } = await sql<LiveRow>`
    select address, started_at, inbound_bps, outbound_bps, pps, coverage, observed_seconds
    from protect_live_series join protect_live_buckets using (allocation_id)
    where ${seriesOf(scope)} and started_at >= ${new Date(fromMs)} and started_at >= svc_now() - ${kept}::interval
    order by started_at, allocation_id`.execute(db);
  return rows;
}

/** How the delivery stands of the addresses that a server has now. */
export interface LiveStatus {
  attemptedAt: Date | null;
  receivedAt: Date | null;
  latestAt: Date | null;
  /** Addresses with live traffic, and buckets of their last deliveries. */
  addresses: number;
  buckets: number;
  /** Deliveries are tried and none of them was taken: another source delivers. */
  isRefused: boolean;
}

export async function readStatus(db: Queryable, scope: LiveScope): Promise<LiveStatus> {
  const { rows } = await sql<LiveStatus>`
    select max(attempted_at) as attempted_at, max(received_at) as received_at, max(latest_at) as latest_at,
      count(received_at)::int as addresses, coalesce(sum(received_buckets), 0)::int as buckets,
      coalesce(max(attempted_at) > max(received_at) + interval '30 seconds', false) as is_refused
    from protect_live_series where ${seriesOf(scope)}`.execute(db);
  return rows[0]!;
}

/** Deletes at most `limit` buckets beyond the hour, and series that no delivery names; how many buckets they were. */
export async function deleteExpired(tx: Queryable, limit: number): Promise<number> {
  const { numAffectedRows } = await sql`
    delete from protect_live_buckets where (allocation_id, started_at) in (
      select allocation_id, started_at from protect_live_buckets
      where started_at < svc_now() - ${kept}::interval limit ${limit})`.execute(tx);
  await sql`delete from protect_live_series where attempted_at < svc_now() - interval '1 day'`.execute(tx);
  return Number(numAffectedRows ?? 0n);
}
