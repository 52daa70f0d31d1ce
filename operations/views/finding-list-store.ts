/** Potential vulnerabilities of all customers: of addresses that their servers have now. */
import { type RawBuilder, sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { sumOf } from './finding-count-store.ts';
import {
  beyond,
  beyondOfCve,
  conditions,
  type FindingFilter,
  type FindingPlace,
  type FindingRow,
  findingColumns,
  ignoreJoin,
  joined,
  keptFor,
  now,
  order,
} from './finding-store.ts';

export interface ListedFinding extends FindingRow {
  serverId: number;
  serverName: string;
  tenantId: number;
  tenantName: string;
}

export interface FindingListQuery extends Pick<FindingFilter, 'state' | 'severities' | 'cveId'> {
  tenantId?: number | undefined;
  serverId?: number | undefined;
  /** Part of the customer's name. */
  customer?: string | undefined;
  after?: FindingPlace | undefined;
  limit: number;
}

type Subject = Pick<FindingListQuery, 'tenantId' | 'serverId' | 'customer'>;

/** Whether the projection `p` of the tenant `t` is of these. */
export function isOfSubject({ tenantId, serverId, customer }: Subject): RawBuilder<unknown> {
  const all = [
    sql`true`,
    ...(tenantId === undefined ? [] : [sql`p.tenant_id = ${tenantId}`]),
    ...(serverId === undefined ? [] : [sql`p.server_id = ${serverId}`]),
    ...(customer === undefined ? [] : [sql`position(lower(${customer}::text) in lower(t.name)) > 0`]),
  ];
  return sql`(${sql.join(all, sql` and `)})`;
}

/** After `p`: addresses that have not been released. */
const addressJoin = sql`join allocations a on a.id = p.allocation_id and a.released_at is null`;

/** So many findings are sorted; of more, the order is read from an index. */
const sortedMax = 20_000;

/**
 * The most severe first. Few findings are collected and sorted; of many the index of the order is read until the page is
 * full, which would read far for few.
 */
export async function listAllFindings(db: Queryable, query: FindingListQuery): Promise<ListedFinding[]> {
  const wanted = await findWanted(db, query);
  const first = wanted.count <= sortedMax ? sortFirst(query, wanted) : readFirst(query, wanted);
  const { rows } = await sql<ListedFinding>`
    with first as materialized (${first})
    select ${findingColumns}, p.server_id as "serverId", (select name from servers where id = p.server_id) as "serverName",
      p.tenant_id as "tenantId", (select name from tenants where id = p.tenant_id) as "tenantName"
    from ${joined}
    where (f.allocation_id, f.transport, f.port, f.cve_id) in (select allocation_id, transport, port, cve_id from first)
    order by ${order}`.execute(db);
  return rows;
}

/** How many findings may be listed, and the addresses that have them; null: any. */
interface Wanted {
  count: number;
  allocationIds: number[] | null;
}

async function findWanted(
  db: Queryable,
  { state, severities, tenantId, serverId, customer }: FindingListQuery,
): Promise<Wanted> {
  const hasSubject = [tenantId, serverId, customer].some((value) => value !== undefined);
  if (!hasSubject && state !== 'ignored') return { count: Number.POSITIVE_INFINITY, allocationIds: null };
  // A count that does not hold any more is good enough to choose a way.
  const ofState = state === undefined ? (['active', 'ignored'] as const) : ([state] as const);
  const count = sql.join(
    ofState.map((each) => sumOf(each, severities)),
    sql` + `,
  );
  const { rows } = await sql<{ count: number; allocationIds: number[] }>`
    select coalesce(sum(${count}), 0)::int as count, coalesce(array_agg(p.allocation_id), '{}') as "allocationIds"
    from finding_projections p join finding_counts c on c.allocation_id = p.allocation_id join tenants t on t.id = p.tenant_id
    where ${isOfSubject({ tenantId, serverId, customer })}`.execute(db);
  const { count: found, allocationIds } = rows[0]!;
  return { count: found, allocationIds: hasSubject ? allocationIds : null };
}

const ofAddresses = ({ allocationIds }: Wanted) =>
  allocationIds === null ? sql`true` : sql`f.allocation_id = any(${allocationIds}::bigint[])`;

const beyondPage = ({ after, cveId }: FindingListQuery) =>
  after === undefined ? sql`true` : cveId === undefined ? beyond(after) : beyondOfCve(after);

/** The place of the page stands outside, where it does not tempt the planner to read the order. */
const sortFirst = (query: FindingListQuery, wanted: Wanted) => sql`
  with f as materialized (${query.state === 'ignored' ? collectIgnored(query, wanted) : collect(query, wanted)})
  select f.* from f where ${beyondPage(query)} order by ${order} limit ${query.limit}`;

const keys = sql`f.allocation_id, f.transport, f.port, f.cve_id, f.is_known_exploited, f.score`;

const collect = (query: FindingListQuery, wanted: Wanted) => sql`
  select ${keys} from ${joined} ${addressJoin}
  where not f.is_upstream and ${ofAddresses(wanted)} and ${sql.join([sql`true`, ...conditions(query)], sql` and `)}`;

/** Each ignore looks up its finding by the whole key; a join would read all findings of the port. */
const collectIgnored = ({ severities, cveId }: FindingListQuery, wanted: Wanted) => sql`
  select f.* from finding_ignores i cross join lateral (
    select ${keys} from findings f where f.allocation_id = i.allocation_id and f.transport = i.transport and f.port = i.port
      and f.cve_id = i.cve_id and f.fingerprint = i.fingerprint and not f.is_upstream and ${ofAddresses(wanted)}
      and ${sql.join([sql`true`, ...conditions({ severities, cveId })], sql` and `)} limit 1) f
  where i.ended_at is null and (i.until is null or i.until > ${now}) and (
    select true from finding_projections p ${addressJoin} join finding_services s on s.allocation_id = p.allocation_id
    where p.allocation_id = i.allocation_id and p.tenant_id = i.tenant_id and p.server_id = i.server_id
      and s.transport = i.transport and s.port = i.port and s.observed_at > ${now} - ${keptFor}::interval limit 1)`;

/**
 * Whether a finding is shown is asked of one after the other, in the order of the index. As joins this would be the planner's to
 * arrange, which takes a finding without an ignore for a rare one, collects them all and compares each with every server.
 */
const readFirst = (query: FindingListQuery, wanted: Wanted) => {
  const { state, severities, cveId } = query;
  return sql`
    select f.allocation_id, f.transport, f.port, f.cve_id from findings f
    where not f.is_upstream and ${ofAddresses(wanted)} and ${beyondPage(query)}
      and ${sql.join([sql`true`, ...conditions({ severities, cveId })], sql` and `)} and (
        select true from finding_projections p ${addressJoin} join finding_services s on s.allocation_id = p.allocation_id ${ignoreJoin}
        where p.allocation_id = f.allocation_id and s.transport = f.transport and s.port = f.port
          and s.observed_at > ${now} - ${keptFor}::interval
          and ${sql.join([sql`true`, ...conditions({ state })], sql` and `)} limit 1)
    order by ${order} limit ${query.limit}`;
};
