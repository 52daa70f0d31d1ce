/** Potential vulnerabilities of all customers: of addresses that their servers have now. */
import { type RawBuilder, sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { sumOf } from './finding-count-store.ts';
import {
  beyond,
  beyondOfCve,
  conditions,
  detailJoins,
  type FindingFilter,
  type FindingPlace,
  type FindingRow,
  findingColumns,
  joined,
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

/** After `p`: addresses that have not been released, with their server and customer. */
const ownerJoins = sql`
  join allocations a on a.id = p.allocation_id and a.released_at is null
  join servers v on v.id = p.server_id join tenants t on t.id = p.tenant_id`;

/** So many findings are sorted; of more, the order is read from an index. */
const sortedMax = 20_000;

/**
 * The most severe first. Few findings are collected and sorted; of many the index of the order is read until the page is
 * full, which would read far for few.
 */
export async function listAllFindings(db: Queryable, query: FindingListQuery): Promise<ListedFinding[]> {
  const { after, limit } = query;
  const wanted = await findWanted(db, query);
  const where = [
    sql`not f.is_upstream`,
    ...(wanted.allocationIds === null ? [] : [sql`f.allocation_id = any(${wanted.allocationIds}::bigint[])`]),
    ...conditions(query),
  ];
  const page =
    after === undefined ? sql`true` : query.cveId === undefined ? beyond(after) : beyondOfCve(after);
  const first = wanted.count <= sortedMax ? sortFirst(where, page, limit) : null;
  const { rows } = await sql<ListedFinding>`
    ${first === null ? sql`` : sql`with first as materialized (${first})`}
    select ${findingColumns}, p.server_id as "serverId", v.name as "serverName", p.tenant_id as "tenantId",
      t.name as "tenantName"
    from ${joined} ${ownerJoins} ${detailJoins}
    where ${
      first === null
        ? sql.join([...where, page], sql` and `)
        : sql`(f.allocation_id, f.transport, f.port, f.cve_id) in (select allocation_id, transport, port, cve_id from first)`
    } order by ${order} limit ${limit}`.execute(db);
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

/** The place of the page stands outside, where it does not tempt the planner to read the order. */
const sortFirst = (where: readonly RawBuilder<unknown>[], page: RawBuilder<unknown>, limit: number) => sql`
  with f as materialized (
    select f.allocation_id, f.transport, f.port, f.cve_id, f.is_known_exploited, f.score
    from ${joined} ${ownerJoins} where ${sql.join(where, sql` and `)})
  select f.* from f where ${page} order by ${order} limit ${limit}`;
