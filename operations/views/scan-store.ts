/**
 * Port scans of all customers: every request, of the sensors' own scans those that failed, and new addresses that were never
 * scanned.
 */
import { type RawBuilder, sql } from 'kysely';
import type { ScanKind, ScanProfile, ScanState } from '#contracts/port-scan/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';

export interface ListedScan {
  id: string;
  /** `routine`: a sensor's own scan, which is listed when it ended as partial. */
  kind: ScanKind;
  profile: ScanProfile;
  state: ScanState;
  isOverdue: boolean;
  serverId: number;
  serverName: string;
  tenantId: number;
  tenantName: string;
  clusterName: string;
  node: string | null;
  address: string;
  /** The server has the address no more. */
  isReleased: boolean;
  /** The person; null of automatic and routine scans, and of older requests. */
  requestedBy: string | null;
  isByKey: boolean;
  requestedAt: Date | null;
  startedAt: Date | null;
  heartbeatAt: Date | null;
  finishedAt: Date | null;
  /** Percent. */
  progress: number | null;
  /** Of the result; null where there is none. */
  notes: string[] | null;
  portsOpen: number | null;
  /** The place in the list: RFC 3339 in microseconds. */
  place: string;
}

export type ScanListState = 'running' | 'queued' | 'overdue' | 'failed' | 'complete' | 'cancelled';

export interface ScanListQuery {
  state?: ScanListState | undefined;
  nodeId?: number | undefined;
  tenantId?: number | undefined;
  serverId?: number | undefined;
  /** Part of the customer's name. */
  customer?: string | undefined;
  /** The last one of the page before. */
  after?: { place: string; id: string } | undefined;
  limit: number;
}

/** The start window has passed; the row says so at the next look of the loop. */
const hasLapsed = sql`(r.state = 'queued' and r.expires_at <= svc_now())`;
/** Without contact for so long, a running scan is overdue. */
const isOverdue = (seconds: number) => sql`(r.state = 'running'
  and coalesce(r.heartbeat_at, r.started_at) < svc_now() - make_interval(secs => ${seconds}::float8))`;

function inState(state: ScanListState, overdueSeconds: number): RawBuilder<unknown> {
  if (state === 'overdue') return isOverdue(overdueSeconds);
  if (state === 'queued') return sql`r.state = 'queued' and not ${hasLapsed}`;
  if (state === 'failed') return sql`(r.state in ('partial', 'expired') or ${hasLapsed})`;
  return sql`r.state = ${state}`;
}

/** Of the server `s` and the tenant `t`. */
function subjectConditions({ nodeId, tenantId, serverId, customer }: ScanListQuery): RawBuilder<unknown>[] {
  return [
    ...(nodeId === undefined
      ? []
      : [
          sql`exists (select 1 from nodes n where n.id = ${nodeId} and n.cluster_id = s.cluster_id and n.name = s.node)`,
        ]),
    ...(tenantId === undefined ? [] : [sql`s.tenant_id = ${tenantId}`]),
    ...(serverId === undefined ? [] : [sql`s.id = ${serverId}`]),
    ...(customer === undefined ? [] : [sql`position(lower(${customer}::text) in lower(t.name)) > 0`]),
  ];
}

/** Newest first. `overdueSeconds`: how long a running scan may be silent. */
export async function listAllScans(
  db: Queryable,
  query: ScanListQuery,
  overdueSeconds: number,
): Promise<ListedScan[]> {
  const { state, after, limit } = query;
  const about = subjectConditions(query);
  const beyond = (at: RawBuilder<unknown>, id: RawBuilder<unknown>) =>
    after === undefined ? sql`true` : sql`(${at}, ${id}) < (${after.place}::timestamptz, ${after.id}::uuid)`;
  const requests = [
    beyond(sql`r.requested_at`, sql`r.id`),
    ...(state === undefined ? [] : [inState(state, overdueSeconds)]),
    ...about,
  ];
  const routine = [
    sql`p.kind = 'routine' and p.state = 'partial' and ${state === undefined || state === 'failed' ? sql`true` : sql`false`}`,
    beyond(sql`p.started_at`, sql`p.scan_id`),
    ...about,
  ];
  const { rows } = await sql<ListedScan>`
    with listed as (
      (select r.id, r.kind, 'full' as profile, case when ${hasLapsed} then 'expired' else r.state end as state,
        ${isOverdue(overdueSeconds)} as is_overdue, r.server_id, r.tenant_id, r.allocation_id, r.address, r.person_id,
        r.is_by_key, r.requested_at, r.started_at, r.heartbeat_at,
        case when ${hasLapsed} then r.expires_at else r.finished_at end as finished_at, r.progress, r.requested_at as at
      from scan_requests r join servers s on s.id = r.server_id join tenants t on t.id = r.tenant_id
      where ${sql.join(requests, sql` and `)} order by r.requested_at desc, r.id desc limit ${limit})
      union all
      (select p.scan_id, p.kind, p.profile, p.state, false, p.server_id, p.tenant_id, p.allocation_id, p.address, null, false,
        null, p.started_at, null, p.finished_at, null, p.started_at
      from port_scans p join servers s on s.id = p.server_id join tenants t on t.id = p.tenant_id
      where ${sql.join(routine, sql` and `)} order by p.started_at desc, p.scan_id desc limit ${limit}))
    select l.id, l.kind, l.profile, l.state, coalesce(l.is_overdue, false) as is_overdue, l.server_id,
      s.name as server_name, l.tenant_id, t.name as tenant_name, c.name as cluster_name, s.node, l.address,
      a.released_at is not null as is_released, who.name as requested_by, l.is_by_key, l.requested_at, l.started_at,
      l.heartbeat_at, l.finished_at, l.progress, result.notes, result.ports_open,
      to_char(l.at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as place
    from listed l join servers s on s.id = l.server_id join tenants t on t.id = l.tenant_id
      join clusters c on c.id = s.cluster_id join allocations a on a.id = l.allocation_id
      left join people who on who.id = l.person_id
      left join lateral (select p.notes, p.ports_open from port_scans p
        where (l.kind = 'routine' and p.scan_id = l.id) or (l.kind <> 'routine' and p.request_id = l.id)
        order by p.finished_at desc limit 1) result on true
    order by l.at desc, l.id desc limit ${limit}`.execute(db);
  return rows;
}

export interface PendingScans {
  running: number;
  /** Of these, without contact. */
  overdue: number;
  queued: number;
  /** Of these, in clusters whose requests no monitor fetches now. */
  unfetched: number;
}

/** `fetchedClusters`: null means all. */
export async function countPendingScans(
  db: Queryable,
  fetchedClusters: readonly number[] | null,
  overdueSeconds: number,
): Promise<PendingScans> {
  const isFetched =
    fetchedClusters === null ? sql`true` : sql`r.cluster_id = any(${[...fetchedClusters]}::bigint[])`;
  const { rows } = await sql<PendingScans>`
    select count(*) filter (where r.state = 'running')::int as running,
      count(*) filter (where ${isOverdue(overdueSeconds)})::int as overdue,
      count(*) filter (where r.state = 'queued' and not ${hasLapsed})::int as queued,
      count(*) filter (where r.state = 'queued' and not ${hasLapsed} and not ${isFetched})::int as unfetched
    from scan_requests r where r.state in ('queued', 'running')`.execute(db);
  return rows[0]!;
}

export interface ScanCandidate {
  id: number;
  clusterId: number;
  tenantId: number;
  serverId: number;
  address: string;
}

/** Allocations of running servers that were assigned within a day and have no request but those that ended unstarted. */
export async function listScanCandidates(
  db: Queryable,
  /** null: all. */
  clusterIds: readonly number[] | null,
  limit: number,
): Promise<ScanCandidate[]> {
  const inClusters = clusterIds === null ? sql`true` : sql`a.cluster_id = any(${[...clusterIds]}::bigint[])`;
  const { rows } = await sql<ScanCandidate>`
    select a.id, a.cluster_id, a.tenant_id, a.server_id, host(a.address) as address
    from allocations a join servers s on s.id = a.server_id
    where a.released_at is null and a.assigned_at > svc_now() - interval '1 day' and ${inClusters}
      and s.provisioning_state = 'ready' and s.power_state = 'running'
      and not exists (select 1 from scan_requests r
        where r.allocation_id = a.id and r.state not in ('expired', 'cancelled'))
    order by a.id limit ${limit}`.execute(db);
  return rows;
}
