/** Potential vulnerabilities of all customers: of addresses that their servers have now. */
import { type RawBuilder, sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import {
  beyond,
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

export interface FindingListQuery extends FindingFilter {
  tenantId?: number | undefined;
  serverId?: number | undefined;
  /** Part of the customer's name. */
  customer?: string | undefined;
  after?: FindingPlace | undefined;
  limit: number;
}

/** After `p`: addresses that have not been released, with their server and customer. */
const ownerJoins = sql`
  join allocations a on a.id = p.allocation_id and a.released_at is null
  join servers v on v.id = p.server_id join tenants t on t.id = p.tenant_id`;

function subjectConditions({
  tenantId,
  serverId,
  customer,
}: Omit<FindingListQuery, 'limit'>): RawBuilder<unknown>[] {
  return [
    sql`not f.is_upstream`,
    ...(tenantId === undefined ? [] : [sql`p.tenant_id = ${tenantId}`]),
    ...(serverId === undefined ? [] : [sql`p.server_id = ${serverId}`]),
    ...(customer === undefined ? [] : [sql`position(lower(${customer}::text) in lower(t.name)) > 0`]),
  ];
}

/** The most severe first. */
export async function listAllFindings(
  db: Queryable,
  { after, limit, ...query }: FindingListQuery,
): Promise<ListedFinding[]> {
  const where = [
    ...subjectConditions(query),
    ...conditions(query),
    ...(after === undefined ? [] : [beyond(after)]),
  ];
  const { rows } = await sql<ListedFinding>`
    select ${findingColumns}, p.server_id as "serverId", v.name as "serverName", p.tenant_id as "tenantId",
      t.name as "tenantName"
    from ${joined} ${ownerJoins} ${detailJoins}
    where ${sql.join(where, sql` and `)} order by ${order} limit ${limit}`.execute(db);
  return rows;
}

export interface FindingTotals {
  /** Findings, and servers that have active ones. */
  active: number;
  ignored: number;
  servers: number;
  /** Active ones. */
  critical: number;
  high: number;
  medium: number;
  low: number;
  none: number;
  unrated: number;
  knownExploited: number;
  /** Services that can't be assessed. */
  unable: number;
  /** Of the newest check of any address; null while none was delivered. */
  checkedAt: Date | null;
  /** Of the oldest records that an address was compared with. */
  databaseAt: Date | null;
}

/** Over what `listAllFindings` lists. */
export async function totalFindings(
  db: Queryable,
  query: Omit<FindingListQuery, 'after' | 'limit'>,
): Promise<FindingTotals> {
  const where = [...subjectConditions(query), ...conditions(query)];
  const found = await sql<Omit<FindingTotals, 'unable' | 'checkedAt' | 'databaseAt'>>`
    select count(*) filter (where i.id is null)::int as active, count(*) filter (where i.id is not null)::int as ignored,
      count(distinct p.server_id) filter (where i.id is null)::int as servers,
      count(*) filter (where i.id is null and f.severity = 'critical')::int as critical,
      count(*) filter (where i.id is null and f.severity = 'high')::int as high,
      count(*) filter (where i.id is null and f.severity = 'medium')::int as medium,
      count(*) filter (where i.id is null and f.severity = 'low')::int as low,
      count(*) filter (where i.id is null and f.severity = 'none')::int as none,
      count(*) filter (where i.id is null and f.severity is null)::int as unrated,
      count(*) filter (where i.id is null and f.is_known_exploited)::int as "knownExploited"
    from ${joined} ${ownerJoins} where ${sql.join(where, sql` and `)}`.execute(db);
  const services = await sql<Pick<FindingTotals, 'unable' | 'checkedAt' | 'databaseAt'>>`
    select (select count(*) from finding_services s join finding_projections p on p.allocation_id = s.allocation_id ${ownerJoins}
        where s.reason is not null and s.observed_at > svc_now() - interval '7 days')::int as unable,
      max(p.checked_at) as "checkedAt", min(p.database_at) as "databaseAt"
    from finding_projections p ${ownerJoins}`.execute(db);
  return { ...found.rows[0]!, ...services.rows[0]! };
}
