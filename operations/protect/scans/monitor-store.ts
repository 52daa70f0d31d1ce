/** What monitors fetch: connections that ask, and the pages of pending requests. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { requestColumns } from './request-store.ts';
import type { RequestRow } from './scan-request.ts';

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
    select coalesce(bool_or(cluster_ids is null), false) as "isAll",
      array(select distinct unnest(cluster_ids) from scan_connections
        where fetched_at > svc_now() - ${silence}::interval)::text[] as "clusterIds"
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
    select to_char(svc_now() at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as "asOf"`.execute(db);
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
