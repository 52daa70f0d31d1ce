/** Servers with their network interfaces and addresses, as the monitor imports them. */
import { sql } from 'kysely';
import { type Queryable, readNowMs } from '#service-kit/postgres/index.ts';
import type { PowerState, ProvisioningState } from './server.ts';

export interface InventoryRow {
  id: number;
  clusterId: number;
  node: string | null;
  name: string;
  provisioningState: Exclude<ProvisioningState, 'deleted'>;
  powerState: PowerState;
  updatedAt: Date;
  interfaces: {
    id: number;
    macAddress: string;
    bridge: string | null;
    vlan: number | null;
    addresses: string[];
  }[];
}

/** Living servers with their network interfaces, in the order of their ids, and the moment that the page is true for. */
export async function listInventory(
  db: Queryable,
  query: { afterId: number; limit: number; clusterIds?: readonly number[] },
): Promise<{ rows: InventoryRow[]; asOf: Date }> {
  const inClusters =
    query.clusterIds === undefined ? sql`true` : sql`s.cluster_id = any(${[...query.clusterIds]}::bigint[])`;
  const asOf = new Date(await readNowMs(db));
  const { rows } = await sql<InventoryRow>`
    select s.id, s.cluster_id as "clusterId", s.node, s.name, s.provisioning_state as "provisioningState",
      s.power_state as "powerState", s.updated_at as "updatedAt",
      coalesce((select json_agg(json_build_object('id', n.id, 'macAddress', n.mac_address, 'bridge', n.bridge,
          'vlan', n.vlan, 'addresses', coalesce((select json_agg(host(a.address) order by a.is_primary desc, a.id)
            from allocations a where a.server_id = s.id and a.released_at is null), '[]')) order by n.id)
        from server_interfaces n where n.server_id = s.id and n.released_at is null), '[]') as interfaces
    from servers s
    where s.id > ${query.afterId} and s.provisioning_state <> 'deleted' and ${inClusters}
    order by s.id limit ${query.limit}`.execute(db);
  return { rows, asOf };
}
