/** Reads devices for pages: one device, a page of a site's devices, their addresses and conflicts. */
import { type RawBuilder, sql } from 'kysely';
import { canonicalAddress } from '#common/ip/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { EndedBy } from './binding.ts';
import { foreignKeptSeconds } from './binding.ts';
import { type Device, type DeviceMatch, isRandomizedMac } from './device.ts';

interface DeviceRow extends Omit<Device, 'match' | 'isRandomized'> {
  clusterId: number | null;
  serverId: number | null;
  serverName: string | null;
  matchedAtMs: number | null;
  matchEndedAtMs: number | null;
}

const ms = (column: string) => sql.raw(`(extract(epoch from ${column}) * 1000)::float8`);
const deviceColumns = sql`
  d.id, d.site_id, d.segment, d.mac, d.manufacturer, n.name as operator_name,
  ${ms('d.first_seen_at')} as first_seen_ms, ${ms('d.last_seen_at')} as last_seen_ms,
  ${ms('d.archived_at')} as archived_at_ms, d.matched_cluster_id as cluster_id, d.matched_vm_id as server_id,
  d.matched_vm_name as server_name, ${ms('d.matched_at')} as matched_at_ms, ${ms('d.match_ended_at')} as match_ended_at_ms,
  f.reason as foreign_reason`;
const joins = sql`left join device_names n on n.mac = d.mac
    left join foreign_macs f on f.site_id = d.site_id and f.mac = d.mac and f.seen_at > svc_now() - make_interval(secs => ${foreignKeptSeconds}::int)`;

const joined = sql`devices d ${joins}`;

export const deviceFilters = ['all', 'live', 'archived', 'conflict', 'randomized'] as const;
export type DeviceFilter = (typeof deviceFilters)[number];
export const deviceSorts = ['label', 'mac', 'segment', 'first', 'seen'] as const;
export type DeviceSort = (typeof deviceSorts)[number];

/** Filter and order of a site's devices. */
export interface DeviceQuery {
  filter: DeviceFilter;
  /** Part of a name, a manufacturer, a MAC, a segment or an address; blank for all. */
  search: string;
  sort: DeviceSort;
  direction: 'asc' | 'desc';
  offset: number;
  limit: number;
}

const randomized = sql`(get_byte(decode(left(d.mac, 2), 'hex'), 0) & 2) <> 0`;
/** Like `labelDevice`. */
const label = sql`coalesce(n.name, case when d.match_ended_at is null or d.archived_at is not null then d.matched_vm_name end,
  case when ${randomized} then 'Randomized device' end, d.manufacturer, d.mac)`;
const inConflict = sql`exists (select 1 from ip_conflicts p join ip_bindings b
  on b.site_id = p.site_id and b.address = p.address and b.segment = p.segment and b.ended_at is null
  where p.site_id = d.site_id and p.resolved_at is null and b.device_id = d.id)`;
const conditions: Readonly<Record<DeviceFilter, RawBuilder<unknown>>> = {
  all: sql`true`,
  live: sql`d.archived_at is null`,
  archived: sql`d.archived_at is not null`,
  conflict: inConflict,
  randomized,
};
const orders: Readonly<Record<DeviceSort, RawBuilder<unknown>>> = {
  label: sql`lower(${label})`,
  mac: sql`d.mac`,
  segment: sql`d.segment`,
  first: sql`d.first_seen_at`,
  seen: sql`d.last_seen_at`,
};

/**
 * A page of a site's matching devices, and the number of all matching ones. Only the rows of the page are read
 * completely.
 */
export async function pageDevices(
  db: Queryable,
  siteId: number,
  query: DeviceQuery,
): Promise<{ devices: Device[]; total: number }> {
  const fits = sql`d.site_id = ${siteId} and ${conditions[query.filter]} and ${searched(siteId, query.search)}`;
  const direction = query.direction === 'asc' ? sql`asc` : sql`desc`;
  const found = sql<DeviceRow & { place: number }>`
    with fitting as (
      select d.id, row_number() over (order by ${orders[query.sort]} ${direction}, d.id) as place
      from devices d left join device_names n on n.mac = d.mac where ${fits}
      order by ${orders[query.sort]} ${direction}, d.id limit ${query.limit} offset ${query.offset})
    select ${deviceColumns}, fitting.place from fitting join devices d on d.id = fitting.id ${joins} order by fitting.place`;
  const counted = sql<{ total: number }>`
    select count(*)::int as total from devices d left join device_names n on n.mac = d.mac where ${fits}`;
  const [{ rows }, { rows: counts }] = await Promise.all([found.execute(db), counted.execute(db)]);
  return { devices: rows.map(({ place: _, ...row }) => fromRow(row)), total: counts[0]!.total };
}

/** Devices whose name, manufacturer, MAC, segment or an address contains the text. */
function searched(siteId: number, text: string): RawBuilder<unknown> {
  if (text === '') return sql`true`;
  const pattern = (part: string) => `%${part.toLowerCase().replace(/[\\%_]/g, (char) => `\\${char}`)}%`;
  const like = pattern(text);
  const address = canonicalAddress(text);
  const ofAddress =
    address !== null
      ? sql`b.address = ${address}::inet`
      : /^[0-9a-f.:]+$/i.test(text)
        ? sql`host(b.address) like ${like}`
        : null;
  return sql`(lower(n.name) like ${like} or lower(d.matched_vm_name) like ${like} or lower(d.manufacturer) like ${like}
    or d.mac like ${pattern(text.replaceAll('-', ':'))} or lower(d.segment) like ${like}
    ${ofAddress === null ? sql`` : sql`or d.id in (select b.device_id from ip_bindings b where b.site_id = ${siteId} and ${ofAddress})`})`;
}

/** Number of devices for each filter, and of addresses in conflict. */
export type DeviceCounts = Record<DeviceFilter, number> & { conflictAddresses: number };

export async function countDevices(db: Queryable, siteId: number): Promise<DeviceCounts> {
  const { rows } = await sql<DeviceCounts>`
    select count(*)::int as all, count(*) filter (where ${conditions.live})::int as live,
      count(*) filter (where ${conditions.archived})::int as archived,
      count(*) filter (where ${randomized})::int as randomized,
      (select count(distinct b.device_id)::int from ip_conflicts p join ip_bindings b
        on b.site_id = p.site_id and b.address = p.address and b.segment = p.segment and b.ended_at is null
        where p.site_id = ${siteId} and p.resolved_at is null) as conflict,
      (select count(*)::int from ip_conflicts where site_id = ${siteId} and resolved_at is null) as conflict_addresses
    from devices d where d.site_id = ${siteId}`.execute(db);
  return rows[0]!;
}

/** An address that more than one MAC claimed at the same time. */
export interface Conflict {
  address: string;
  /** Blank for a globally unique address. */
  segment: string;
  /** All MACs that claimed it. */
  macs: string[];
  openedAtMs: number;
  resolvedAtMs: number | null;
}

/** The conflicts of a site that involved this MAC, newest first. */
export async function listConflicts(db: Queryable, siteId: number, mac: string): Promise<Conflict[]> {
  const { rows } = await sql<Conflict>`
    select host(address) as address, segment, macs, ${ms('opened_at')} as opened_at_ms, ${ms('resolved_at')} as resolved_at_ms
    from ip_conflicts where site_id = ${siteId} and macs @> ${[mac]}::text[]
    order by resolved_at is not null, opened_at desc limit 100`.execute(db);
  return rows;
}

/** Devices of a site by their segment and MAC. */
export async function findByKeys(
  db: Queryable,
  siteId: number,
  keys: readonly { segment: string; mac: string }[],
): Promise<Device[]> {
  const { rows } = await sql<DeviceRow>`
    select ${deviceColumns} from ${joined}
    where d.site_id = ${siteId} and (d.segment, d.mac) in (
      select k.segment, k.mac from unnest(${keys.map((key) => key.segment)}::text[], ${keys.map((key) => key.mac)}::text[])
        as k(segment, mac))`.execute(db);
  return rows.map(fromRow);
}

/** A site's devices, live ones first, newest first. */
export async function listDevices(db: Queryable, siteId: number, limit: number): Promise<Device[]> {
  const { rows } = await sql<DeviceRow>`
    select ${deviceColumns} from ${joined}
    where d.site_id = ${siteId}
    order by d.archived_at is not null, d.last_seen_at desc, d.id limit ${limit}`.execute(db);
  return rows.map(fromRow);
}

export async function findDevice(db: Queryable, siteId: number, id: number): Promise<Device | null> {
  const { rows } = await sql<DeviceRow>`
    select ${deviceColumns} from ${joined}
    where d.site_id = ${siteId} and d.id = ${id}`.execute(db);
  return rows[0] ? fromRow(rows[0]) : null;
}

/** A period in which a device owned an address; without an end it is the live claim. */
export interface Claim {
  deviceId: number;
  address: string;
  /** Blank for a globally unique address. */
  segment: string;
  firstSeenMs: number;
  /** Start of the newest minute; updated every five minutes while there is no other claim. */
  lastSeenMs: number;
  endedAtMs: number | null;
  endedBy: EndedBy | null;
  isInConflict: boolean;
}

/** Bindings of these devices, live ones first, newest first. */
export async function listClaims(
  db: Queryable,
  deviceIds: readonly number[],
  isLiveOnly: boolean,
): Promise<Claim[]> {
  const { rows } = await sql<Claim>`
    select b.device_id, host(b.address) as address, b.segment, ${ms('b.first_seen_at')} as first_seen_ms,
           ${ms('b.last_seen_at')} as last_seen_ms, ${ms('b.ended_at')} as ended_at_ms, b.ended_by,
           p.id is not null and b.ended_at is null as is_in_conflict
    from ip_bindings b
    left join ip_conflicts p on p.site_id = b.site_id and p.address = b.address and p.segment = b.segment
      and p.resolved_at is null
    where b.device_id = any(${[...deviceIds]}::bigint[]) and (b.ended_at is null or not ${isLiveOnly}::bool)
    order by b.device_id, b.ended_at is not null, b.last_seen_at desc, b.address`.execute(db);
  return rows;
}

function fromRow(row: DeviceRow): Device {
  const { clusterId, serverId, serverName, matchedAtMs, matchEndedAtMs, ...device } = row;
  const match: DeviceMatch | null =
    clusterId !== null && serverId !== null && serverName !== null && matchedAtMs !== null
      ? { clusterId, serverId, serverName, matchedAtMs, endedAtMs: matchEndedAtMs }
      : null;
  return { ...device, isRandomized: isRandomizedMac(device.mac), match };
}
