/** Which allocation the addresses of servers belong to, as operations listed it last. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

export interface AddressGeneration {
  clusterId: number;
  vmId: number;
  /** Canonical text. */
  address: string;
  /** The allocation's id and its assignment: a later owner has another one. */
  generation: string;
}

export async function listAddressGenerations(
  db: Queryable,
  servers: readonly { clusterId: number; vmId: number }[],
): Promise<AddressGeneration[]> {
  if (servers.length === 0) return [];
  const { rows } = await sql<AddressGeneration>`
    select t.cluster_id as "clusterId", t.virtual_machine_id as "vmId", host(t.address) as address,
      t.allocation_id || ' ' || t.assigned_at as generation
    from allocation_targets t
    join (select distinct cluster_id, vm_id from unnest(${servers.map((one) => one.clusterId)}::bigint[],
      ${servers.map((one) => one.vmId)}::bigint[]) as g(cluster_id, vm_id)) s
      on s.cluster_id = t.cluster_id and s.vm_id = t.virtual_machine_id
    order by 1, 2, 3, 4`.execute(db);
  return rows;
}
