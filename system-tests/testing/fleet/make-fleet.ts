/** A fleet as a monitor that is connected to operations knows it: sensors on sites, their nodes' servers, an hour of live windows. */
import {
  enrolFleet,
  type FleetSensor,
  hostsOfUpload,
  nodeOf,
  sensorVersion,
} from '#monitor/facts/testing/bench-fleet.ts';
import type { BenchDatabase } from '#monitor/facts/testing/bench-monitor.ts';
import { systemActor } from '#monitor/operators/index.ts';

/** First octet of all addresses; they are globally routable. */
const firstOctet = 45;
export const windowsOfHour = 360;

export async function makeFleet(
  bench: BenchDatabase,
  sensors: number,
  sites: number,
): Promise<FleetSensor[]> {
  const fleet = await enrolFleet(bench, { sensors, sites, firstOctet });
  const { pool } = bench.database;
  const siteIds = [...new Set(fleet.map(({ siteId }) => siteId))];
  // A cluster of the site's number.
  for (const siteId of siteIds) await bench.monitor.sites.mapCluster(systemActor, siteId, siteId);
  await pool.query(`update sites set local_cidrs = '{${firstOctet}.0.0.0/8}'`);
  const servers = `select s.site_id, s.i, s.node, h, s.i * ${hostsOfUpload} + h as vm_id,
      '${firstOctet}.' || s.i / 256 || '.' || s.i % 256 || '.' || h + 1 as address,
      '02:00:' || lpad(to_hex(s.i / 256), 2, '0') || ':' || lpad(to_hex(s.i % 256), 2, '0') || ':00:' || lpad(to_hex(h), 2, '0') as mac
    from unnest($1::bigint[], $2::int[], $3::text[]) s(site_id, i, node), generate_series(0, ${hostsOfUpload - 1}) h`;
  const values = [
    fleet.map(({ siteId }) => siteId),
    fleet.map(({ index }) => index),
    fleet.map(({ index }) => nodeOf(index)),
  ];
  await pool.query(
    `insert into inventory_vms (cluster_id, vm_id, node, name, state, updated_at)
     select site_id, vm_id, node, 'server-' || vm_id, 'running', svc_now() from (${servers}) v`,
    values,
  );
  await pool.query(
    `insert into inventory_interfaces (cluster_id, vm_id, interface_id, mac, bridge, addresses)
     select site_id, vm_id, vm_id, mac, 'br0', array[address::inet] from (${servers}) v`,
    values,
  );
  await pool.query(
    `insert into vm_placements (cluster_id, vm_id, node, mac, segment, address, is_unique, began_at)
     select site_id, vm_id, node, mac, 'br0', address::inet, true, '-infinity' from (${servers}) v`,
    values,
  );
  await pool.query(
    `insert into allocation_targets (allocation_id, billing_account_id, virtual_machine_id, cluster_id, address, assigned_at,
       is_supported)
     select vm_id, 1, vm_id, site_id, address::inet, '2026-01-01T00:00:00Z', true from (${servers}) v`,
    values,
  );
  // As if those that don't send any minute did: an alert for each would be judged and told.
  await pool.query(
    `insert into sensor_contacts (sensor_id, last_contact_at, sensor_version, spool_id, sequence, newest_minute_at)
     select id, svc_now() + interval '1 day', '${sensorVersion}', gen_random_uuid(), 1, svc_now() + interval '1 day' from sensors`,
  );
  await pool.query('analyze');
  return fleet;
}

/** Fills the hour before each window of these sites with its like. */
export async function fillLiveHour({ database }: BenchDatabase, siteIds: readonly number[]): Promise<void> {
  const columns = `site_id, sensor_id, capture, role, observed_ms, packets, ip_bytes, parser_dropped, kernel_dropped,
    merged_frames, addresses, rx_bytes, tx_bytes, host_packets, hosts_left_out`;
  await database.pool.query(
    `insert into live_windows (${columns}, run_id, started_at)
     select ${columns}, gen_random_uuid(), started_at - n * interval '10 seconds' from live_windows, generate_series(1, ${windowsOfHour - 1}) n
     where site_id = any($1) order by n desc`,
    [siteIds],
  );
  await database.pool.query('analyze live_windows');
}
