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
export const ownerJoins = sql`
  join allocations a on a.id = p.allocation_id and a.released_at is null
  join servers v on v.id = p.server_id join tenants t on t.id = p.tenant_id`;

export function subjectConditions({
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
