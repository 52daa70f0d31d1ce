/** The live servers of one node. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

export interface NodeServer {
  clusterId: number;
  vmId: number;
  name: string;
  state: string;
  addresses: string[];
  /** The last import that listed the server, unix milliseconds. */
  seenAtMs: number;
  /** The oldest such import of its interfaces; null: it has none. */
  interfacesSeenAtMs: number | null;
}

export async function listNodeServers(
  db: Queryable,
  clusterIds: readonly number[],
  node: string,
  limit: number,
): Promise<NodeServer[]> {
  const { rows } = await sql<NodeServer>`
    select v.cluster_id as "clusterId", v.vm_id as "vmId", v.name, v.state,
      (extract(epoch from v.last_seen_at) * 1000)::float8 as "seenAtMs",
      (extract(epoch from i.seen_at) * 1000)::float8 as "interfacesSeenAtMs", coalesce(i.addresses, '{}') as addresses
    from inventory_vms v
    left join lateral (
      select min(n.last_seen_at) as seen_at, array_agg(host(a) order by a) filter (where a is not null) as addresses
      from inventory_interfaces n left join lateral unnest(n.addresses) a on true
      where n.cluster_id = v.cluster_id and n.vm_id = v.vm_id and n.retired_at is null) i on true
    where v.cluster_id = any(${[...clusterIds]}::bigint[]) and v.node = ${node} and v.retired_at is null
    order by lower(v.name), v.vm_id limit ${limit}`.execute(db);
  return rows;
}
