import { sql } from 'kysely';
import type { GuardReason } from '#contracts/guard-reasons.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';

export async function nameSensors(
  db: Queryable,
  ids: readonly number[],
): Promise<Map<number, { hostName: string; isRevoked: boolean }>> {
  if (ids.length === 0) return new Map();
  const { rows } = await sql<{ id: number; hostName: string; isRevoked: boolean }>`
    select id, host_name, revoked_at is not null as is_revoked from sensors
    where id = any(${[...ids]}::bigint[])`.execute(db);
  return new Map(rows.map((row) => [row.id, row]));
}

interface StoredScope {
  localCidrs: string[];
  node: { name: string; clusterId: number | null } | null;
}

/** Null when there is no such site. A sensor of another site has no node here. */
export async function readPlanScope(
  reader: Queryable,
  siteId: number,
  sensorId: number | null,
): Promise<StoredScope | null> {
  const { rows } = await sql<StoredScope>`
    select t.local_cidrs,
      case when s.id is null then null else json_build_object('name', s.node, 'clusterId', s.cluster_id) end as node
    from sites t left join sensors s on s.site_id = t.id and s.id = ${sensorId}::bigint
    where t.id = ${siteId}`.execute(reader);
  return rows[0] ?? null;
}

/** Since the sensor was enrolled, and how long ago the last one was. */
export interface LeftOutRows {
  ageSeconds: number;
  minuteRows: number;
  liveRows: number;
}

/** By sensor; those without such rows are not in it. */
export async function readLeftOut(db: Queryable): Promise<Map<number, LeftOutRows>> {
  const { rows } = await sql<LeftOutRows & { sensorId: number }>`
    select sensor_id, extract(epoch from svc_now() - last_at)::float8 as age_seconds, minute_rows, live_rows
    from sensor_set_asides`.execute(db);
  return new Map(rows.map(({ sensorId, ...leftOut }) => [sensorId, leftOut]));
}

/** Results of one sensor for a probe. */
export interface SensorView {
  sensorId: number;
  hostName: string;
  sent: number;
  lost: number;
  rttUs: number | null;
  lastMinuteMs: number;
}

/** What each sensor measured of a probe. */
export async function listSensorViews(
  db: Queryable,
  range: { probeId: number; fromMs: number; toMs: number },
): Promise<SensorView[]> {
  const { rows } = await sql<SensorView>`
    select r.sensor_id, s.host_name, sum(r.sent)::float8 as sent, sum(r.lost)::float8 as lost,
      avg(r.rtt_median_us)::float8 as rtt_us, (extract(epoch from max(r.minute)) * 1000)::float8 as last_minute_ms
    from probe_results r join sensors s on s.id = r.sensor_id
    where r.probe_id = ${range.probeId} and r.minute >= to_timestamp(${range.fromMs / 1000}::float8)
      and r.minute < to_timestamp(${range.toMs / 1000}::float8)
    group by r.sensor_id, s.host_name order by lower(s.host_name), r.sensor_id`.execute(db);
  return rows;
}

/** By capture, sender, address and reason. */
export interface SpoofedSum {
  capture: string;
  segment: string;
  /** Blank, with the address null, for what found no row of its own. */
  mac: string;
  /** Null where it is no server's. */
  address: string | null;
  reason: GuardReason;
  bytes: number;
  packets: number;
  /** Start of the last minute with any, unix milliseconds. */
  lastMinuteMs: number;
  /** Names of the site's servers that have this MAC, and of those that have this address. */
  senders: string[];
  owners: string[];
}

/** Spoofed traffic of a sensor, with the servers that have its MACs and addresses now. */
export async function listSpoofedTraffic(
  reader: Queryable,
  siteId: number,
  sensorId: number,
  sinceMs: number,
  limit: number,
): Promise<SpoofedSum[]> {
  const { rows } = await sql<SpoofedSum>`
    with sums as (
      select capture, segment, mac, address, reason, sum(bytes) as bytes, sum(packets) as packets, max(last_minute) as last_minute
      from spoofed_traffic
      where site_id = ${siteId} and sensor_id = ${sensorId} and hour >= to_timestamp(${sinceMs / 1000}::float8) - interval '1 hour'
        and last_minute >= to_timestamp(${sinceMs / 1000}::float8)
      group by capture, segment, mac, address, reason
      order by last_minute desc, bytes desc, mac, address, reason limit ${limit}),
    servers as (
      select p.mac, p.address, v.name from vm_placements p
      join site_clusters c on c.cluster_id = p.cluster_id and c.site_id = ${siteId}
      join inventory_vms v on v.cluster_id = p.cluster_id and v.vm_id = p.vm_id
      where p.ended_at is null)
    select capture, segment, mac, host(address) as address, reason, bytes::float8 as bytes, packets::float8 as packets,
      (extract(epoch from last_minute) * 1000)::float8 as last_minute_ms,
      array(select distinct name from servers where servers.mac = sums.mac order by name) as senders,
      array(select distinct name from servers where servers.address = sums.address order by name) as owners
    from sums order by last_minute desc, bytes desc, mac, address, reason`.execute(reader);
  return rows;
}

// Sites: their names, and at which of them something is that operations links to.

export async function nameSites(db: Queryable, ids: readonly number[]): Promise<Map<number, string>> {
  if (ids.length === 0) return new Map();
  const { rows } = await sql<{ id: number; name: string }>`
    select id, name from sites where id = any(${[...ids]}::bigint[])`.execute(db);
  return new Map(rows.map(({ id, name }) => [id, name]));
}

/** The sites of the clusters in which operations named addresses of this billing account. */
export async function listSitesOfAccount(db: Queryable, accountId: number): Promise<number[]> {
  const { rows } = await sql<{ siteId: number }>`
    select distinct c.site_id
    from allocation_targets t join site_clusters c on c.cluster_id = t.cluster_id
    where t.billing_account_id = ${accountId} order by 1`.execute(db);
  return rows.map(({ siteId }) => siteId);
}

/** The site of an incident; null for one that is not known. */
export async function findSiteOfIncident(db: Queryable, incidentId: string): Promise<number | null> {
  const { rows } = await sql<{ siteId: number }>`
    select site_id from incidents where id = ${incidentId}::uuid`.execute(db);
  return rows[0]?.siteId ?? null;
}
