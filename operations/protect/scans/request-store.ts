/** Every statement on scan requests. */

import { sql } from 'kysely';
import { type ScanState, scanStates } from '#contracts/port-scan/index.ts';
import { kept } from '#contracts/retention.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import {
  isPending,
  nextState,
  type RequestCause,
  type RequestedAddress,
  type RequestKind,
  type RequestRow,
  requestLimits,
} from './scan-request.ts';

/** How long a request is shown after its end (NET-8.R4). */
const keptFor = sql.lit(kept.scans);

/** The start window has passed; the row says so at the next look of the loop. */
const hasLapsed = sql`(r.state = 'queued' and r.expires_at <= svc_now())`;

/** Columns of `RequestRow`, of the table `r`. A lapsed request is expired from that moment on. */
export const requestColumns = sql`r.id, r.kind, r.allocation_id, r.cluster_id, r.tenant_id, r.server_id, r.address,
  case when ${hasLapsed} then 'expired' else r.state end as state, r.requested_at, r.expires_at, r.claimed_at,
  r.started_at, r.heartbeat_at, r.progress,
  case when ${hasLapsed} then r.expires_at else r.finished_at end as finished_at`;

/** States that this cause ends, from the table of transitions. */
const endedBy = (cause: RequestCause): ScanState[] =>
  scanStates.filter((state) => {
    const next = nextState(state, cause);
    return next !== null && next !== state;
  });

/** One at a time makes requests for an account, so that its limits hold over all processes. */
export async function lockAccount(tx: Queryable, tenantId: number): Promise<void> {
  await sql`select pg_advisory_xact_lock(7318040, ${tenantId}::int)`.execute(tx);
}

/** What the limits are decided by. The caller has locked the account. */
export interface Standing {
  /** Pending requests of the account. */
  pendingOfAccount: number;
  /** Pending requests of the server, oldest first. */
  pending: RequestRow[];
  /** Seconds until the server's cooldown ends; 0: it has. */
  cooldownSeconds: number;
}

export async function readStanding(
  tx: Queryable,
  { serverId, tenantId }: { serverId: number; tenantId: number },
): Promise<Standing> {
  const { rows } = await sql<{ pendingOfAccount: number; cooldownSeconds: number }>`
    select (select count(*) from scan_requests where tenant_id = ${tenantId} and finished_at is null)::int
        as pending_of_account,
      coalesce((select greatest(0, ceil(extract(epoch from max(requested_at)
          + make_interval(secs => ${requestLimits.cooldownSeconds}) - svc_now())))
        from scan_requests where server_id = ${serverId} and kind = 'manual'), 0)::int as cooldown_seconds`.execute(
    tx,
  );
  const { rows: pending } = await sql<RequestRow>`
    select ${requestColumns} from scan_requests r where server_id = ${serverId} and finished_at is null
    order by requested_at, id`.execute(tx);
  return { ...rows[0]!, pending };
}

/** A person, or a key that acts for one. */
export interface Requester {
  personId: number;
  isByKey: boolean;
}

/** A request for each address; one that has a pending request already gets none. */
export async function insertRequests(
  tx: Queryable,
  kind: RequestKind,
  addresses: readonly RequestedAddress[],
  by: Requester | null = null,
): Promise<RequestRow[]> {
  const given = addresses.map(({ id, clusterId, tenantId, serverId, address }) => ({
    ...{ id, clusterId, tenantId, serverId, address },
  }));
  const { rows } = await sql<RequestRow>`
    insert into scan_requests as r (kind, allocation_id, cluster_id, tenant_id, server_id, address, person_id, is_by_key)
    select ${kind}, id, "clusterId", "tenantId", "serverId", address, ${by?.personId ?? null}::bigint, ${by?.isByKey ?? false}
    from jsonb_to_recordset(${JSON.stringify(given)}::jsonb)
      as g(id bigint, "clusterId" bigint, "tenantId" bigint, "serverId" bigint, address text)
    order by id
    on conflict (allocation_id) where state in ('queued', 'running') do nothing
    returning ${requestColumns}`.execute(tx);
  return rows;
}

/** A request that a monitor speaks about, locked until the transaction ends. */
export interface LockedRequest extends RequestRow {
  /** Claimed by this source. */
  isOwner: boolean;
  /** Claimed by no source, or by one that has been silent for 15 minutes. */
  isFree: boolean;
  hasLapsed: boolean;
}

/** In the order of their ids, so that two deliveries never wait for each other. */
export async function lockRequests(
  tx: Queryable,
  ids: readonly string[],
  source: { projectId: number; siteId: number },
): Promise<LockedRequest[]> {
  const { rows } = await sql<LockedRequest>`
    select ${requestColumns}, ${hasLapsed} as has_lapsed,
      coalesce((r.project_id, r.source_site_id) = (${source.projectId}::bigint, ${source.siteId}::bigint), false)
        as is_owner, coalesce(r.source_seen_at <= svc_now() - interval '15 minutes', true) as is_free
    from scan_requests r where r.id = any(${[...ids]}::uuid[]) order by r.id for update`.execute(tx);
  return rows;
}

/** What a monitor said of a request; times and progress only move forward. */
export interface Contact {
  state: ScanState;
  /** The claim is given back. */
  isReleased?: boolean;
  startedAt?: Date | null;
  heartbeatAt?: Date | null;
  progress?: number | null;
}

/** A time of the sensor, which our clock bounds; null stays null, which `least` alone would not keep. */
const notAhead = (at: Date | null) =>
  sql`case when ${at}::timestamptz is not null then least(${at}::timestamptz, svc_now()) end`;

export async function noteContact(
  tx: Queryable,
  id: string,
  source: { projectId: number; siteId: number },
  { state, isReleased = false, startedAt = null, heartbeatAt = null, progress = null }: Contact,
): Promise<void> {
  const isFinal = !isPending(state);
  await sql`
    update scan_requests set state = ${state},
      project_id = ${isReleased ? null : source.projectId}, source_site_id = ${isReleased ? null : source.siteId},
      source_seen_at = ${isReleased ? sql`null` : sql`svc_now()`},
      claimed_at = ${isReleased ? sql`null` : sql`coalesce(claimed_at, svc_now())`},
      started_at = coalesce(started_at, ${notAhead(startedAt)}),
      heartbeat_at = greatest(heartbeat_at, ${notAhead(heartbeatAt)}),
      progress = greatest(progress, ${progress}::float8),
      finished_at = ${isFinal ? sql`svc_now()` : sql`null`}
    where id = ${id}::uuid`.execute(tx);
}

/** Notes that the owner still speaks of the request, at most once a minute. */
export async function noteSource(tx: Queryable, id: string): Promise<void> {
  await sql`update scan_requests set source_seen_at = svc_now()
    where id = ${id}::uuid and source_seen_at < svc_now() - interval '1 minute'`.execute(tx);
}

/** Moves a locked request by a cause that the table allows. */
export async function endRequest(
  tx: Queryable,
  id: string,
  state: ScanState,
  times: { startedAt?: Date; finishedAt?: Date } = {},
): Promise<void> {
  await sql`
    update scan_requests set state = ${state},
      started_at = coalesce(started_at, ${times.startedAt ?? null}::timestamptz),
      progress = case when ${state} = 'complete' then 100 else progress end,
      finished_at = case when ${state} = 'expired' then expires_at
        else coalesce(${times.finishedAt ?? null}::timestamptz, svc_now()) end
    where id = ${id}::uuid`.execute(tx);
}

/** Expires the lapsed requests of these servers, or of all. Rows that a delivery holds are left for the next time. */
export async function expireLapsed(tx: Queryable, serverId: number | 'all'): Promise<void> {
  const ofServer = serverId === 'all' ? sql`true` : sql`server_id = ${serverId}`;
  await sql`
    update scan_requests set state = 'expired', finished_at = expires_at
    where id in (select id from scan_requests where state = any(${endedBy('window_passed')}::text[])
      and expires_at <= svc_now() and ${ofServer}
      order by id for update ${serverId === 'all' ? sql`skip locked` : sql``})`.execute(tx);
}

/** Cancels the queued requests of a kind of a server; returns how many. A lapsed one has expired and stays so. */
export async function cancelQueued(
  tx: Queryable,
  cause: 'views_off' | 'superseded',
  { serverId, kind }: { serverId: number; kind: RequestKind },
): Promise<number> {
  const { numAffectedRows } = await sql`
    update scan_requests set state = 'cancelled', finished_at = svc_now()
    where id in (select id from scan_requests where state = any(${endedBy(cause)}::text[])
      and kind = ${kind} and server_id = ${serverId} and expires_at > svc_now() order by id for update)`.execute(
    tx,
  );
  return Number(numAffectedRows ?? 0n);
}

/** The generations of all pending requests. */
export async function listPendingAllocations(db: Queryable): Promise<number[]> {
  const { rows } = await sql<{ id: number }>`
    select allocation_id as id from scan_requests where finished_at is null`.execute(db);
  return rows.map(({ id }) => id);
}

/** Ends the pending requests of generations that are over. */
export async function endReleased(tx: Queryable, allocationIds: readonly number[]): Promise<void> {
  for (const state of endedBy('released'))
    await sql`
      update scan_requests set state = ${nextState(state, 'released')}, finished_at = svc_now()
      where id in (select id from scan_requests where allocation_id = any(${[...allocationIds]}::bigint[])
        and state = ${state} and (state <> 'queued' or expires_at > svc_now()) order by id for update skip locked)`.execute(
      tx,
    );
}

/** Requests of a server's present addresses, newest first. */
export async function listRequests(
  db: Queryable,
  of: { serverId: number; tenantId: number; allocationIds: readonly number[] },
  limit: number,
): Promise<RequestRow[]> {
  const { rows } = await sql<RequestRow>`
    select ${requestColumns} from scan_requests r
    where r.server_id = ${of.serverId} and r.tenant_id = ${of.tenantId}
      and r.allocation_id = any(${[...of.allocationIds]}::bigint[])
      and coalesce(r.finished_at, 'infinity') > svc_now() - ${keptFor}::interval
    order by r.requested_at desc, r.id desc limit ${limit}`.execute(db);
  return rows;
}

/** Deletes requests seven days after their end. */
export async function deleteExpiredRequests(tx: Queryable, limit: number): Promise<number> {
  const { numAffectedRows } = await sql`
    delete from scan_requests where id in (select id from scan_requests
      where finished_at < svc_now() - ${keptFor}::interval limit ${limit})`.execute(tx);
  return Number(numAffectedRows ?? 0n);
}

/** Without a fetch for so long, a page says that no monitor fetches. */
const silence = sql.lit('5 minutes');

/** Notes that a project fetches; returns the revision of its connection, a new one when its clusters have changed. */
export async function noteFetch(
  db: Queryable,
  projectId: number,
  clusterIds: readonly number[] | null,
): Promise<number> {
  const clusters = clusterIds === null ? null : [...clusterIds].sort((a, b) => a - b);
  const { rows } = await sql<{ revision: number }>`
    insert into scan_connections as held (project_id, cluster_ids) values (${projectId}, ${clusters}::bigint[])
    on conflict (project_id) do update set fetched_at = svc_now(), cluster_ids = excluded.cluster_ids,
      revision = case when held.cluster_ids is not distinct from excluded.cluster_ids then held.revision
        else nextval('scan_connection_revisions') end
    returning revision`.execute(db);
  return rows[0]!.revision;
}

/** The clusters whose requests are fetched now; null: all. */
export async function listFetchedClusters(db: Queryable): Promise<number[] | null> {
  const { rows } = await sql<{ isAll: boolean; clusterIds: string[] }>`
    select coalesce(bool_or(cluster_ids is null), false) as is_all,
      array(select distinct unnest(cluster_ids) from scan_connections
        where fetched_at > svc_now() - ${silence}::interval)::text[] as cluster_ids
    from scan_connections where fetched_at > svc_now() - ${silence}::interval`.execute(db);
  const { isAll, clusterIds } = rows[0]!;
  return isAll ? null : clusterIds.map(Number);
}

/** Where a page of requests begins: the moment of the first page, and the place in the order of that moment. */
export interface PageCursor {
  /** RFC 3339 in microseconds. */
  asOf: string;
  turn: number;
  tenantId: number;
}

export interface PageRow extends RequestRow {
  turn: number;
}

/** The first page's moment. */
export async function readMoment(db: Queryable): Promise<string> {
  const { rows } = await sql<{ asOf: string }>`
    select to_char(svc_now() at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as as_of`.execute(db);
  return rows[0]!.asOf;
}

/**
 * Pending requests after the cursor: the oldest of each account, then the second oldest of each, and so on. Turns are
 * counted over what was pending at the first page's moment, also where it has ended since, so that no request is left out or
 * comes twice while requests end between two pages.
 */
export async function listPage(
  db: Queryable,
  clusterIds: readonly number[] | null,
  { asOf, turn, tenantId }: PageCursor,
  limit: number,
): Promise<PageRow[]> {
  const inClusters = clusterIds === null ? sql`true` : sql`cluster_id = any(${[...clusterIds]}::bigint[])`;
  const { rows } = await sql<PageRow>`
    with turns as (
      select id, row_number() over (partition by tenant_id order by requested_at, id)::int as turn from scan_requests
      where requested_at <= ${asOf}::timestamptz and coalesce(finished_at, 'infinity') > ${asOf}::timestamptz
        and not (state = 'queued' and expires_at <= ${asOf}::timestamptz) and ${inClusters})
    select ${requestColumns}, t.turn from turns t join scan_requests r using (id)
    where r.finished_at is null and not (r.state = 'queued' and r.expires_at <= svc_now())
      and (t.turn, r.tenant_id) > (${turn}::int, ${tenantId}::bigint)
    order by t.turn, r.tenant_id limit ${limit}`.execute(db);
  return rows;
}
