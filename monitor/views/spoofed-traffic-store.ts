/** Spoofed traffic of a sensor, with the servers that have its MACs and addresses now. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

/** By capture, sender and address. */
export interface SpoofedSum {
  capture: string;
  segment: string;
  /** Blank, with the address null, for what found no row of its own. */
  mac: string;
  address: string | null;
  bytes: number;
  packets: number;
  /** Start of the last minute with any, unix milliseconds. */
  lastMinuteMs: number;
  /** Names of the site's servers that have this MAC, and of those that have this address. */
  senders: string[];
  owners: string[];
}

export async function listSpoofedTraffic(
  reader: Queryable,
  siteId: number,
  sensorId: number,
  sinceMs: number,
  limit: number,
): Promise<SpoofedSum[]> {
  const { rows } = await sql<SpoofedSum>`
    with sums as (
      select capture, segment, mac, address, sum(bytes) as bytes, sum(packets) as packets, max(last_minute) as last_minute
      from spoofed_traffic
      where site_id = ${siteId} and sensor_id = ${sensorId} and hour >= to_timestamp(${sinceMs / 1000}::float8) - interval '1 hour'
        and last_minute >= to_timestamp(${sinceMs / 1000}::float8)
      group by capture, segment, mac, address
      order by last_minute desc, bytes desc, mac, address limit ${limit}),
    servers as (
      select p.mac, p.address, v.name from vm_placements p
      join site_clusters c on c.cluster_id = p.cluster_id and c.site_id = ${siteId}
      join inventory_vms v on v.cluster_id = p.cluster_id and v.vm_id = p.vm_id
      where p.ended_at is null)
    select capture, segment, mac, host(address) as address, bytes::float8 as bytes, packets::float8 as packets,
      (extract(epoch from last_minute) * 1000)::float8 as "lastMinuteMs",
      array(select distinct name from servers where servers.mac = sums.mac order by name) as senders,
      array(select distinct name from servers where servers.address = sums.address order by name) as owners
    from sums order by last_minute desc, bytes desc, mac, address`.execute(reader);
  return rows;
}
