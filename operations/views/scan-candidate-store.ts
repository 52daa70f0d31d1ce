/** Which addresses are new and were never scanned. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

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
    select a.id, a.cluster_id as "clusterId", a.tenant_id as "tenantId", a.server_id as "serverId",
      host(a.address) as address
    from allocations a join servers s on s.id = a.server_id
    where a.released_at is null and a.assigned_at > svc_now() - interval '1 day' and ${inClusters}
      and s.provisioning_state = 'ready' and s.power_state = 'running'
      and not exists (select 1 from scan_requests r
        where r.allocation_id = a.id and r.state not in ('expired', 'cancelled'))
    order by a.id limit ${limit}`.execute(db);
  return rows;
}
