/** A monitor whose inventory, hosts and captures are those of a batch of random nodes, each in a site of its own. */
import { type MonitorServer, startMonitorServer } from '#monitor/testing/server.ts';
import type { RandomHost, RandomInventory } from './random-inventory.ts';

export interface InventoryStage extends AsyncDisposable {
  server: MonitorServer;
  /** The sensor of each slot. */
  sensors: readonly { id: number; siteId: number }[];
  /** Replaces what is stored. */
  store(batch: readonly RandomInventory[]): Promise<void>;
}

/** Of a slot: the site of its node and another one. */
const sitesOf = (slot: number) => ({ own: 1001 + slot * 2, other: 1002 + slot * 2 });
/** The sensor, one of its site, and one of the other site. */
const sensorId = (slot: number, host: number) => 10_001 + slot * 3 + host;

export async function startInventoryStage(slots: number): Promise<InventoryStage> {
  const server = await startMonitorServer();
  const { pool } = server.database;
  const all = Array.from({ length: slots }, (_, slot) => slot);
  await pool.query(
    `insert into sites (id, name) overriding system value select n, 'site ' || n from unnest($1::bigint[]) as n`,
    [all.flatMap((slot) => Object.values(sitesOf(slot)))],
  );
  const hosts = all.flatMap((slot) => [0, 1, 2].map((host) => ({ slot, host })));
  await pool.query(
    `insert into sensors (id, site_id, host_name, node) overriding system value
     select id, site, 'host-' || id, 'none' from unnest($1::bigint[], $2::bigint[]) as g(id, site)`,
    [
      hosts.map(({ slot, host }) => sensorId(slot, host)),
      hosts.map(({ slot, host }) => sitesOf(slot)[host === 2 ? 'other' : 'own']),
    ],
  );
  return {
    server,
    sensors: all.map((slot) => ({ id: sensorId(slot, 0), siteId: sitesOf(slot).own })),
    store: (batch) => storeBatch(server, batch),
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

async function storeBatch({ database: { pool } }: MonitorServer, batch: readonly RandomInventory[]) {
  const client = await pool.connect();
  try {
    await client.query('begin');
    await client.query(
      `truncate inventory_interfaces, inventory_vms, vm_placements, site_clusters, captures, host_inventories,
         scan_targets, scan_plans cascade`,
    );
    for (const [sql, rows] of statements(batch)) await client.query(sql, [JSON.stringify(rows)]);
    await client.query('commit');
  } catch (error) {
    await client.query('rollback');
    throw error;
  } finally {
    client.release();
  }
}

function statements(batch: readonly RandomInventory[]): [sql: string, rows: object[]][] {
  const each = <Row extends object>(rowsOf: (inventory: RandomInventory, slot: number) => Row[]) =>
    batch.flatMap(rowsOf);
  const hostRow = (slot: number, host: RandomHost, place: number) => ({
    ...{ id: sensorId(slot, place), node: host.node, is_revoked: host.isRevoked },
    ...{ interfaces: host.interfaces, age: host.interfacesAgeSeconds },
  });
  const hosts = each(({ hosts: all, boundTo }, slot) =>
    all.map((host, place) => ({ ...hostRow(slot, host, place), cluster_id: place === 0 ? boundTo : null })),
  );
  const servers = each(({ servers: all }) =>
    all.map((one) => ({
      ...{ cluster_id: one.clusterId, vm_id: one.vmId, node: one.node, state: one.state },
      ...{ is_retired: one.isRetired, age: one.ageSeconds, nics: one.nics },
    })),
  );
  const nics = servers.flatMap((server) =>
    server.nics.map((nic) => ({
      ...{ cluster_id: server.cluster_id, vm_id: server.vm_id, interface_id: nic.id, mac: nic.mac },
      ...{ addresses: [...new Set(nic.addresses)], is_retired: nic.isRetired, age: nic.ageSeconds },
      ...{ node: server.node, is_placed: !(server.is_retired || nic.isRetired) },
    })),
  );
  return [
    [
      `insert into site_clusters (cluster_id, site_id) select id, site from jsonb_to_recordset($1) as g(id bigint, site bigint)`,
      each(({ clusters }, slot) =>
        clusters.flatMap(({ id, site }) => (site === 'none' ? [] : [{ id, site: sitesOf(slot)[site] }])),
      ),
    ],
    [
      `update sensors s set node = g.node, cluster_id = g.cluster_id,
         revoked_at = case when g.is_revoked then svc_now() end
       from jsonb_to_recordset($1) as g(id bigint, node text, cluster_id bigint, is_revoked boolean) where s.id = g.id`,
      hosts,
    ],
    [
      `insert into host_inventories (sensor_id, observed_at, interfaces, interfaces_left_out, neighbours, neighbours_left_out)
       select id, svc_now() - age * interval '1 second', interfaces, 0, 0, 0
       from jsonb_to_recordset($1) as g(id bigint, age float8, interfaces jsonb) where age is not null`,
      hosts,
    ],
    [
      `insert into captures (site_id, sensor_id, name, role)
       select site, sensor, name, role from jsonb_to_recordset($1) as g(site bigint, sensor bigint, name text, role text)`,
      each(({ captures }, slot) =>
        captures.map((one) => ({ ...one, site: sitesOf(slot).own, sensor: sensorId(slot, 0) })),
      ),
    ],
    [
      `insert into inventory_vms (cluster_id, vm_id, node, name, state, updated_at, last_seen_at, retired_at)
       select cluster_id, vm_id, node, 'server', state, svc_now(), svc_now() - age * interval '1 second',
         case when is_retired then svc_now() end
       from jsonb_to_recordset($1) as g(cluster_id bigint, vm_id bigint, node text, state text, age float8, is_retired boolean)`,
      servers,
    ],
    [
      `insert into inventory_interfaces (cluster_id, vm_id, interface_id, mac, bridge, addresses, last_seen_at, retired_at)
       select cluster_id, vm_id, interface_id, mac, 'br0', addresses, svc_now() - age * interval '1 second',
         case when is_retired then svc_now() end
       from jsonb_to_recordset($1) as g(cluster_id bigint, vm_id bigint, interface_id bigint, mac text, addresses inet[],
         age float8, is_retired boolean)`,
      nics,
    ],
    // As an import keeps them: of each live interface one without an address, and one with each.
    [
      `insert into vm_placements (cluster_id, vm_id, node, mac, segment, address, is_unique, began_at, ended_at)
       select cluster_id, vm_id, node, mac, 'br0', address, true, svc_now() - interval '1 day',
         case when not is_placed then svc_now() end
       from jsonb_to_recordset($1) as g(cluster_id bigint, vm_id bigint, node text, mac text, addresses inet[], is_placed boolean)
       cross join lateral unnest(null::inet || addresses) as address`,
      nics,
    ],
  ];
}
