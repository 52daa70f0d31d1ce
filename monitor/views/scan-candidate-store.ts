/** What the plan of a sensor's port scans is chosen from: its host, and the servers of its node. Ages are by the database's clock. */
import { sql } from 'kysely';
import type { HostInterface } from '#contracts/sensor-api/telemetry.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';

/** The host of a sensor. */
export interface ScanHost {
  siteId: number;
  node: string;
  /** Null: in any cluster of the site that has a node of this name. */
  clusterId: number | null;
  /** Clusters of the site that have servers on a node of this name. */
  clusters: number;
  /** Since the sensor listed its interfaces; null: it never did. */
  interfacesAgeSeconds: number | null;
  interfaces: HostInterface[];
  captures: { name: string; role: string }[];
  /** Addresses of all hosts of the site. */
  hostAddresses: string[];
}

type StoredHost = Omit<ScanHost, 'captures'> & { captures: ScanHost['captures'] | null };

/** Null for an unknown sensor. */
export async function readScanHost(reader: Queryable, sensorId: number): Promise<ScanHost | null> {
  const { rows } = await sql<StoredHost>`
    select s.site_id, s.node, s.cluster_id,
      (select count(distinct v.cluster_id)::int from inventory_vms v join site_clusters c on c.cluster_id = v.cluster_id
        where c.site_id = s.site_id and v.node = s.node and v.retired_at is null
          and coalesce(v.cluster_id = s.cluster_id, true)) as clusters,
      extract(epoch from svc_now() - h.observed_at)::float8 as interfaces_age_seconds,
      coalesce(h.interfaces, '[]') as interfaces,
      k.captures,
      coalesce((select array_agg(distinct split_part(a.prefix, '/', 1)) from host_inventories o
        join sensors n on n.id = o.sensor_id and n.site_id = s.site_id and n.revoked_at is null
        cross join lateral jsonb_array_elements(o.interfaces) i
        cross join lateral jsonb_array_elements_text(i->'addresses') as a(prefix)), '{}') as host_addresses
    from sensors s left join host_inventories h on h.sensor_id = s.id left join sensor_conditions k on k.sensor_id = s.id
    where s.id = ${sensorId}`.execute(reader);
  const host = rows[0];
  if (!host) return null;
  return { ...host, captures: host.captures ?? (await listCaptures(reader, sensorId)) };
}

/** A sensor that never said what it listens on: the captures that its minutes named. */
async function listCaptures(reader: Queryable, sensorId: number): Promise<ScanHost['captures']> {
  const { rows } = await sql<ScanHost['captures'][number]>`
    select name, role from captures where sensor_id = ${sensorId} order by id`.execute(reader);
  return rows;
}

/** An address of a live server's interface on the sensor's node. */
export interface ScanCandidate {
  clusterId: number;
  serverId: number;
  name: string;
  interfaceId: number;
  bridge: string | null;
  /** Canonical text. */
  address: string;
  state: string;
  serverAgeSeconds: number;
  interfaceAgeSeconds: number;
  /** When both were listed last: the older of the two, unix milliseconds. */
  listedAtMs: number;
  /** Interfaces of live servers that have this address, and servers of the site that have this MAC. */
  holders: number;
  macHolders: number;
  /** Its id among the sensor's targets; null before a plan named it. */
  targetId: number | null;
}

/** Addresses of live servers' interfaces on the node of sensor `s`. */
const candidates = sql`
    from sensors s
    join site_clusters c on c.site_id = s.site_id
    join inventory_vms v on v.cluster_id = c.cluster_id and v.node = s.node and v.retired_at is null
      and coalesce(v.cluster_id = s.cluster_id, true)
    join inventory_interfaces i on i.cluster_id = v.cluster_id and i.vm_id = v.vm_id and i.retired_at is null
    cross join lateral (select distinct u.address from unnest(i.addresses) as u(address)) a`;

/** In an order that lasts. More than a plan can hold are read, so that what is cut can be counted. */
export async function listScanCandidates(
  reader: Queryable,
  sensorId: number,
  limit: number,
): Promise<ScanCandidate[]> {
  const { rows } = await sql<ScanCandidate>`
    select v.cluster_id, v.vm_id as server_id, v.name, i.interface_id, i.bridge, host(a.address) as address, v.state,
      extract(epoch from svc_now() - v.last_seen_at)::float8 as server_age_seconds,
      extract(epoch from svc_now() - i.last_seen_at)::float8 as interface_age_seconds,
      floor(extract(epoch from least(v.last_seen_at, i.last_seen_at)) * 1000)::float8 as listed_at_ms,
      (select count(distinct (p.cluster_id, p.vm_id, p.mac))::int from vm_placements p
        where p.address = a.address and p.ended_at is null) as holders,
      (select count(distinct (p.cluster_id, p.vm_id))::int from vm_placements p
        join site_clusters o on o.cluster_id = p.cluster_id and o.site_id = s.site_id
        where p.mac = i.mac and p.address is null and p.ended_at is null) as mac_holders, t.id as target_id
    ${candidates}
    left join scan_targets t on t.sensor_id = s.id and t.cluster_id = v.cluster_id and t.vm_id = v.vm_id
      and t.interface_id = i.interface_id and t.address = a.address
    where s.id = ${sensorId} and s.revoked_at is null
    order by v.cluster_id, v.vm_id, i.interface_id, a.address limit ${limit}`.execute(reader);
  return rows;
}

/** All of them, where more are there than were read. */
export async function countScanCandidates(reader: Queryable, sensorId: number): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*)::int as count ${candidates} where s.id = ${sensorId}
      and s.revoked_at is null`.execute(reader);
  return rows[0]!.count;
}
