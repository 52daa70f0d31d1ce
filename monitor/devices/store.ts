import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { type Device, type DeviceMatch, isRandomizedMac } from './device.ts';

/** What a site showed of one device in one or more minutes. */
export interface DeviceSighting {
  segment: string;
  mac: string;
  manufacturer: string | null;
  /** Seconds since 1970. */
  firstMinute: number;
  lastMinute: number;
}

/**
 * Adds devices or moves their times. Times only widen, so uploads may come in any order. A minute that began after
 * the archive brings the device back; an older one leaves it archived. Rows are taken in key order, so two workers
 * can't wait for each other in a circle.
 */
export async function upsertDevices(
  db: Queryable,
  siteId: number,
  sightings: readonly DeviceSighting[],
): Promise<Map<string, number>> {
  const { rows } = await sql<{ id: number; segment: string; mac: string }>`
    insert into devices as held (site_id, segment, mac, manufacturer, first_seen_at, last_seen_at)
    select ${siteId}, s.segment, s.mac, s.manufacturer, to_timestamp(s."firstMinute"), to_timestamp(s."lastMinute")
    from jsonb_to_recordset(${JSON.stringify(sightings)}::jsonb)
      as s(segment text, mac text, manufacturer text, "firstMinute" bigint, "lastMinute" bigint)
    order by s.segment, s.mac
    on conflict (site_id, segment, mac) do update set
      first_seen_at = least(held.first_seen_at, excluded.first_seen_at),
      last_seen_at = greatest(held.last_seen_at, excluded.last_seen_at),
      manufacturer = coalesce(held.manufacturer, excluded.manufacturer),
      archived_at = case when excluded.last_seen_at >= held.archived_at then null else held.archived_at end
    returning id, segment, mac`.execute(db);
  return new Map(rows.map((row) => [`${row.segment}|${row.mac}`, row.id]));
}

export interface ClaimSighting {
  deviceId: number;
  address: string;
  firstMinute: number;
  lastMinute: number;
}

/** Adds or renews claims; what an archived device showed before its archive makes no live claim. */
export async function upsertClaims(
  db: Queryable,
  siteId: number,
  claims: readonly ClaimSighting[],
): Promise<void> {
  await sql`
    insert into address_claims as held (device_id, address, site_id, first_seen_at, last_seen_at, released_at)
    select c."deviceId", c.address, ${siteId}, to_timestamp(c."firstMinute"), to_timestamp(c."lastMinute"), d.archived_at
    from jsonb_to_recordset(${JSON.stringify(claims)}::jsonb)
      as c("deviceId" bigint, address inet, "firstMinute" bigint, "lastMinute" bigint)
    join devices d on d.id = c."deviceId"
    order by c."deviceId", c.address
    on conflict (device_id, address) do update set
      first_seen_at = least(held.first_seen_at, excluded.first_seen_at),
      last_seen_at = greatest(held.last_seen_at, excluded.last_seen_at),
      released_at = case when excluded.last_seen_at >= held.released_at then null else held.released_at end`.execute(
    db,
  );
}

/**
 * Opens conflicts for addresses that different MACs claim at the same time: both within five minutes of the newest
 * sighting, and interleaved. One MAC that follows another is a hand-over, and one MAC on two segments is one owner.
 */
export async function openConflicts(
  db: Queryable,
  siteId: number,
  addresses: readonly string[],
): Promise<{ address: string; macs: string[] }[]> {
  const { rows } = await sql<{ address: string; macs: string[] }>`
    with owners as (
      select c.address, d.mac, min(c.first_seen_at) as first_seen, max(c.last_seen_at) as last_seen
      from address_claims c join devices d on d.id = c.device_id
      where c.site_id = ${siteId} and c.address = any(${[...addresses]}::inet[]) and c.released_at is null
      group by c.address, d.mac),
    clashes as (
      select a.address, array_agg(distinct a.mac order by a.mac) as macs
      from owners a join owners b on b.address = a.address and b.mac <> a.mac
      where a.first_seen < b.last_seen and b.first_seen < a.last_seen
        and a.last_seen > b.last_seen - interval '5 minutes' and b.last_seen > a.last_seen - interval '5 minutes'
      group by a.address),
    opened as (
      insert into ip_conflicts (site_id, address) select ${siteId}, address from clashes
      on conflict (site_id, address) where resolved_at is null do nothing
      returning address)
    select host(opened.address) as address, clashes.macs from opened join clashes using (address)`.execute(
    db,
  );
  return rows;
}

/** Archives the devices of a destroyed machine that are not archived yet, and releases their claims. */
export async function archiveDevices(
  db: Queryable,
  gone: {
    siteId: number | null;
    clusterId: number;
    vmId: number;
    macs: readonly string[];
    keptMacs: readonly string[];
  },
): Promise<{ archived: number; addresses: { siteId: number; address: string }[] }> {
  const { rows } = await sql<{ id: number; isNew: boolean }>`
    with carrying as (
      select id, archived_at is null as "isNew" from devices
      where ((matched_cluster_id = ${gone.clusterId} and matched_vm_id = ${gone.vmId})
             or (site_id = ${gone.siteId} and mac = any(${[...gone.macs]})))
        and mac <> all(${[...gone.keptMacs]})
      order by id for update)
    update devices d set archived_at = coalesce(d.archived_at, svc_now()),
      match_ended_at = case when d.matched_vm_id is null then null else coalesce(d.match_ended_at, svc_now()) end
    from carrying c where c.id = d.id
    returning d.id, c."isNew"`.execute(db);
  const released = await sql<{ siteId: number; address: string }>`
    update address_claims set released_at = svc_now()
    where device_id = any(${rows.map((row) => row.id)}::bigint[]) and released_at is null
    returning site_id as "siteId", host(address) as address`.execute(db);
  return { archived: rows.filter((row) => row.isNew).length, addresses: released.rows };
}

/** Ends the match of a machine's devices that stay, because another machine carries their MAC now. */
export async function endMatches(db: Queryable, clusterId: number, vmId: number): Promise<void> {
  await sql`update devices set match_ended_at = svc_now()
    where matched_cluster_id = ${clusterId} and matched_vm_id = ${vmId} and match_ended_at is null`.execute(
    db,
  );
}

/** Resolves open conflicts of these addresses that fewer than two live owners are left of. */
export async function resolveConflicts(
  db: Queryable,
  siteId: number,
  addresses: readonly string[],
): Promise<string[]> {
  const { rows } = await sql<{ address: string }>`
    update ip_conflicts p set resolved_at = svc_now()
    where p.site_id = ${siteId} and p.address = any(${[...addresses]}::inet[]) and p.resolved_at is null
      and (select count(distinct d.mac) from address_claims c join devices d on d.id = c.device_id
           where c.site_id = p.site_id and c.address = p.address and c.released_at is null) < 2
    returning host(p.address) as address`.execute(db);
  return rows.map((row) => row.address);
}

/** A machine's interface as an import confirmed it, for matching. */
export interface MatchInput {
  siteId: number;
  mac: string;
  clusterId: number;
  vmId: number;
  vmName: string;
}

/** Stores confirmed matches; rows that say the same already are left alone. */
export async function writeMatches(db: Queryable, matches: readonly MatchInput[]): Promise<number> {
  const { rows } = await sql`
    update devices d set matched_cluster_id = m."clusterId", matched_vm_id = m."vmId", matched_vm_name = m."vmName",
      matched_at = svc_now(), match_ended_at = null
    from jsonb_to_recordset(${JSON.stringify(matches)}::jsonb)
      as m("siteId" bigint, mac text, "clusterId" bigint, "vmId" bigint, "vmName" text)
    where d.site_id = m."siteId" and d.mac = m.mac
      and (d.matched_cluster_id, d.matched_vm_id, d.matched_vm_name, d.match_ended_at)
        is distinct from (m."clusterId", m."vmId", m."vmName", null::timestamptz)
    returning d.id`.execute(db);
  return rows.length;
}

export async function upsertName(
  db: Queryable,
  mac: string,
  name: string,
  namedBy: number | null,
): Promise<void> {
  await sql`insert into device_names (mac, name, named_by) values (${mac}, ${name}, ${namedBy})
    on conflict (mac) do update set name = excluded.name, named_by = excluded.named_by, named_at = svc_now()`.execute(
    db,
  );
}

export async function deleteName(db: Queryable, mac: string): Promise<void> {
  await sql`delete from device_names where mac = ${mac}`.execute(db);
}

interface DeviceRow extends Omit<Device, 'match' | 'isRandomized'> {
  clusterId: number | null;
  vmId: number | null;
  vmName: string | null;
  matchedAtMs: number | null;
  matchEndedAtMs: number | null;
}

const ms = (column: string) => sql.raw(`(extract(epoch from ${column}) * 1000)::float8`);
const deviceColumns = sql`
  d.id, d.site_id as "siteId", d.segment, d.mac, d.manufacturer, n.name as "operatorName",
  ${ms('d.first_seen_at')} as "firstSeenMs", ${ms('d.last_seen_at')} as "lastSeenMs",
  ${ms('d.archived_at')} as "archivedAtMs", d.matched_cluster_id as "clusterId", d.matched_vm_id as "vmId",
  d.matched_vm_name as "vmName", ${ms('d.matched_at')} as "matchedAtMs", ${ms('d.match_ended_at')} as "matchEndedAtMs"`;

/** A site's devices, live ones first, newest first. */
export async function listDevices(db: Queryable, siteId: number, limit: number): Promise<Device[]> {
  const { rows } = await sql<DeviceRow>`
    select ${deviceColumns} from devices d left join device_names n on n.mac = d.mac
    where d.site_id = ${siteId}
    order by d.archived_at is not null, d.last_seen_at desc, d.id limit ${limit}`.execute(db);
  return rows.map(fromRow);
}

export async function findDevice(db: Queryable, siteId: number, id: number): Promise<Device | null> {
  const { rows } = await sql<DeviceRow>`
    select ${deviceColumns} from devices d left join device_names n on n.mac = d.mac
    where d.site_id = ${siteId} and d.id = ${id}`.execute(db);
  return rows[0] ? fromRow(rows[0]) : null;
}

/** An address that a device was seen to own. */
export interface Claim {
  deviceId: number;
  address: string;
  firstSeenMs: number;
  lastSeenMs: number;
  releasedAtMs: number | null;
  isInConflict: boolean;
}

export async function listClaims(db: Queryable, deviceIds: readonly number[]): Promise<Claim[]> {
  const { rows } = await sql<Claim>`
    select c.device_id as "deviceId", host(c.address) as address, ${ms('c.first_seen_at')} as "firstSeenMs",
           ${ms('c.last_seen_at')} as "lastSeenMs", ${ms('c.released_at')} as "releasedAtMs",
           p.id is not null and c.released_at is null as "isInConflict"
    from address_claims c
    left join ip_conflicts p on p.site_id = c.site_id and p.address = c.address and p.resolved_at is null
    where c.device_id = any(${[...deviceIds]}::bigint[])
    order by c.device_id, c.released_at is not null, c.address`.execute(db);
  return rows;
}

function fromRow(row: DeviceRow): Device {
  const { clusterId, vmId, vmName, matchedAtMs, matchEndedAtMs, ...device } = row;
  const match: DeviceMatch | null =
    clusterId !== null && vmId !== null && vmName !== null && matchedAtMs !== null
      ? { clusterId, vmId, vmName, matchedAtMs, endedAtMs: matchEndedAtMs }
      : null;
  return { ...device, isRandomized: isRandomizedMac(device.mac), match };
}
