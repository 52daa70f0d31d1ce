/**
 * Search: one query for each kind of hit. Every statement is limited and uses an index of 0090, or reads a small table
 * (sites, sensors). Hits contain only data that the features of these tables show themselves.
 */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { ServerName } from './address-store.ts';

export interface SiteHit {
  siteId: number;
  siteName: string;
}

export interface AddressHit extends SiteHit {
  address: string;
  /** Blank for a globally unique address. */
  segment: string;
  deviceId: number;
  mac: string;
  /** Null while the binding lasts. */
  endedAtMs: number | null;
}

export interface DeviceHit extends SiteHit {
  deviceId: number;
  mac: string;
  segment: string;
  name: string | null;
  isArchived: boolean;
}

export interface MachineHit extends ServerName {
  state: string;
  isRetired: boolean;
  /** The site of its cluster, and its device there, if any. */
  siteId: number | null;
  siteName: string | null;
  deviceId: number | null;
}

export interface SensorHit extends SiteHit {
  sensorId: number;
  hostName: string;
  node: string;
}

export interface ApplicationHit extends SiteHit {
  name: string;
}

/** `web -1` as `'web':* & '1':*`; words contain only letters and digits. */
export function asQuery(words: readonly string[]): string {
  return words.map((word) => `'${word}':*`).join(' & ');
}

/** Escapes the three special characters of `like`. */
export function escaped(text: string): string {
  return text.replace(/[\\%_]/g, '\\$&');
}

export async function findSites(db: Queryable, text: string, limit: number): Promise<SiteHit[]> {
  const { rows } = await sql<SiteHit>`
    select id as site_id, name as site_name from sites
    where lower(name) like ${`%${escaped(text.toLowerCase())}%`} order by lower(name)
      limit ${limit}`.execute(db);
  return rows;
}

export async function findSensors(db: Queryable, text: string, limit: number): Promise<SensorHit[]> {
  const like = `%${escaped(text.toLowerCase())}%`;
  const { rows } = await sql<SensorHit>`
    select s.id as sensor_id, s.host_name, s.node, t.id as site_id, t.name as site_name
    from sensors s join sites t on t.id = s.site_id
    where s.revoked_at is null and (lower(s.host_name) like ${like} or lower(s.node) like ${like})
    order by lower(s.host_name), s.id limit ${limit}`.execute(db);
  return rows;
}

/** Live owners first; each address of a site once, and one that is not unique once per segment. */
export async function findAddresses(
  db: Queryable,
  first: string,
  last: string,
  limit: number,
): Promise<AddressHit[]> {
  const { rows } = await sql<AddressHit>`
    with owned as (
      select distinct on (b.address, b.site_id, b.segment) b.address, b.site_id, b.segment, b.device_id, b.mac, b.ended_at
      from ip_bindings b where b.address >= ${first}::inet and b.address <= ${last}::inet
      order by b.address, b.site_id, b.segment, b.ended_at desc nulls first, b.last_seen_at desc limit ${limit})
    select t.id as site_id, t.name as site_name, host(o.address) as address, o.segment, o.device_id, o.mac,
      (extract(epoch from o.ended_at) * 1000)::float8 as ended_at_ms
    from owned o join sites t on t.id = o.site_id
    order by o.ended_at is not null, o.address, lower(t.name), o.segment`.execute(db);
  return rows;
}

export const deviceHit = sql`d.id as device_id, d.mac, d.segment, t.id as site_id, t.name as site_name,
  coalesce(n.name, d.matched_vm_name) as name, d.archived_at is not null as is_archived`;

export async function findDevicesByMac(db: Queryable, prefix: string, limit: number): Promise<DeviceHit[]> {
  const { rows } = await sql<DeviceHit>`
    select ${deviceHit} from devices d join sites t on t.id = d.site_id left join device_names n on n.mac = d.mac
    where d.mac like ${`${prefix}%`} order by d.mac, lower(t.name), d.segment limit ${limit}`.execute(db);
  return rows;
}

export async function findDevicesByName(
  db: Queryable,
  words: readonly string[],
  limit: number,
): Promise<DeviceHit[]> {
  const { rows } = await sql<DeviceHit>`
    select ${deviceHit} from device_names n join devices d on d.mac = n.mac join sites t on t.id = d.site_id
    where search_words(n.name) @@ ${asQuery(words)}::tsquery
    order by d.archived_at is not null, lower(n.name), d.id limit ${limit}`.execute(db);
  return rows;
}

export async function findMachines(
  db: Queryable,
  asked: { id: number | null; words: readonly string[] },
  limit: number,
): Promise<MachineHit[]> {
  const { rows } = await sql<MachineHit>`
    with found as (
      (select cluster_id, vm_id from inventory_vms where vm_id = ${asked.id} limit ${limit})
      union
      (select cluster_id, vm_id from inventory_vms
       where search_words(name) @@ ${asQuery(asked.words)}::tsquery limit ${limit * 4}))
    select v.cluster_id, v.vm_id as server_id, v.name, v.state, v.node, v.retired_at is not null as is_retired,
      t.id as site_id, t.name as site_name, d.id as device_id
    from found join inventory_vms v using (cluster_id, vm_id)
    left join site_clusters c on c.cluster_id = v.cluster_id left join sites t on t.id = c.site_id
    left join lateral (select id from devices
      where matched_cluster_id = v.cluster_id and matched_vm_id = v.vm_id and site_id = t.id
      order by archived_at is not null, last_seen_at desc limit 1) d on true
    order by v.vm_id is distinct from ${asked.id}, v.retired_at is not null, lower(v.name), v.vm_id
    limit ${limit}`.execute(db);
  return rows;
}

/** The name itself or a parent domain first, then by the beginnings of words. */
export async function findApplications(
  db: Queryable,
  asked: { names: readonly string[]; words: readonly string[] },
  limit: number,
): Promise<ApplicationHit[]> {
  const names = [...asked.names];
  const { rows } = await sql<ApplicationHit>`
    with found as (
      (select site_id, name, last_seen_at from application_names where name = any(${names}::text[]) limit ${limit})
      union
      (select site_id, name, last_seen_at from application_names
       where search_words(name) @@ ${asQuery(asked.words)}::tsquery limit ${limit * 4}))
    select f.name, t.id as site_id, t.name as site_name from found f join sites t on t.id = f.site_id
    order by f.name <> all(${names}::text[]), length(f.name), f.name, lower(t.name)
    limit ${limit}`.execute(db);
  return rows;
}
