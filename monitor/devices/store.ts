import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

/** A claim that an archive ended. */
export interface ReleasedClaim {
  siteId: number;
  deviceId: number;
  mac: string;
  address: string;
  /** Blank for a globally unique address. */
  segment: string;
  /** Its newest minute if that began after the archive. */
  laterMinute: number | null;
}

/**
 * Archives the devices of a destroyed machine that are not archived yet, and releases their claims.
 *
 * A minute that began after this moment, from a host whose clock is ahead, restores its device as if it arrived now:
 * the time of observation decides, not the time of arrival.
 */
export async function archiveDevices(
  db: Queryable,
  gone: {
    siteId: number | null;
    clusterId: number;
    serverId: number;
    macs: readonly string[];
    keptMacs: readonly string[];
  },
): Promise<{ archived: number; released: ReleasedClaim[] }> {
  const { rows } = await sql<{ id: number; isNew: boolean }>`
    with carrying as (
      select id, archived_at is null as is_new from devices
      where ((matched_cluster_id = ${gone.clusterId} and matched_vm_id = ${gone.serverId})
             or (site_id = ${gone.siteId} and mac = any(${[...gone.macs]})))
        and mac <> all(${[...gone.keptMacs]})
      order by id for update)
    update devices d set
      archived_at = coalesce(d.archived_at, case when d.last_seen_at < svc_now() then svc_now() end),
      released_at = case when d.archived_at is null then svc_now() else d.released_at end,
      match_ended_at = case when d.matched_vm_id is null then null else coalesce(d.match_ended_at, svc_now()) end
    from carrying c where c.id = d.id
    returning d.id, c.is_new`.execute(db);
  const ids = rows.map((row) => row.id);
  const released = await sql<ReleasedClaim>`
    with ended as (
      update ip_bindings b set ended_at = svc_now(), ended_by = 'archive',
        last_seen_at = least(b.last_seen_at, date_trunc('minute', svc_now()))
      from ip_bindings before
      where b.device_id = any(${ids}::bigint[]) and b.ended_at is null and b.first_seen_at < svc_now() and before.id = b.id
      returning b.site_id, b.device_id, b.mac, b.address, b.segment, before.last_seen_at)
    select site_id, host(address) as address, segment, device_id, mac,
      case when last_seen_at >= svc_now() then extract(epoch from last_seen_at)::float8 end as later_minute
    from ended`.execute(db);
  if (gone.siteId !== null) {
    await sql`
      insert into retired_macs (site_id, mac, retired_at)
      select ${gone.siteId}, mac, svc_now() from unnest(${[...gone.macs]}::text[]) as mac
      where mac <> all(${[...gone.keptMacs]}) order by mac
      on conflict (site_id, mac) do update set retired_at = excluded.retired_at`.execute(db);
  }
  return { archived: rows.filter((row) => row.isNew).length, released: released.rows };
}

export async function listMatchedMacs(db: Queryable, clusterId: number, serverId: number): Promise<string[]> {
  const { rows } = await sql<{ mac: string }>`
    select distinct mac from devices where matched_cluster_id = ${clusterId}
      and matched_vm_id = ${serverId}`.execute(db);
  return rows.map((row) => row.mac);
}

/** Ends the match of a machine's devices that stay, because another machine uses their MAC now. */
export async function endMatches(db: Queryable, clusterId: number, serverId: number): Promise<void> {
  await sql`update devices set match_ended_at = svc_now()
    where matched_cluster_id = ${clusterId} and matched_vm_id = ${serverId}
      and match_ended_at is null`.execute(db);
}

/** A machine's interface as confirmed by an import, for matching. */
export interface MatchInput {
  siteId: number;
  mac: string;
  clusterId: number;
  serverId: number;
  serverName: string;
}

/** The matches that differ from their stored devices. */
const changedBy = (matches: readonly MatchInput[]) => sql`
    from jsonb_to_recordset(${JSON.stringify(matches)}::jsonb)
      as m("siteId" bigint, mac text, "clusterId" bigint, "serverId" bigint, "serverName" text)`;
const isChanged = sql`d.site_id = m."siteId" and d.mac = m.mac
      and (d.matched_cluster_id, d.matched_vm_id, d.matched_vm_name, d.match_ended_at)
        is distinct from (m."clusterId", m."serverId", m."serverName", null::timestamptz)`;

/** Number of devices that these matches would change. */
export async function countUnmatched(db: Queryable, matches: readonly MatchInput[]): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*)::int as count ${changedBy(matches)} join devices d on ${isChanged}`.execute(db);
  return rows[0]!.count;
}

/** Stores confirmed matches; unchanged rows are not written. */
export async function writeMatches(db: Queryable, matches: readonly MatchInput[]): Promise<number> {
  const { rows } = await sql`
    update devices d set matched_cluster_id = m."clusterId", matched_vm_id = m."serverId", matched_vm_name = m."serverName",
      matched_at = svc_now(), match_ended_at = null
    ${changedBy(matches)} where ${isChanged}
    returning d.id`.execute(db);
  return rows.length;
}

/** Devices without a manufacturer, by id. */
export async function listUnnamed(
  db: Queryable,
  afterId: number,
  limit: number,
): Promise<{ id: number; mac: string }[]> {
  const { rows } = await sql<{ id: number; mac: string }>`
    select id, mac from devices where manufacturer is null and id > ${afterId}
    order by id limit ${limit}`.execute(db);
  return rows;
}

export async function updateManufacturers(
  db: Queryable,
  names: readonly { id: number; manufacturer: string }[],
): Promise<void> {
  await sql`
    update devices d set manufacturer = n.manufacturer
    from unnest(${names.map((one) => one.id)}::bigint[], ${names.map((one) => one.manufacturer)}::text[])
      as n(id, manufacturer)
    where d.id = n.id and d.manufacturer is null`.execute(db);
}

export async function upsertName(db: Queryable, mac: string, name: string, namedBy: number | null) {
  await sql`insert into device_names (mac, name, named_by) values (${mac}, ${name}, ${namedBy})
    on conflict (mac) do update
    set name = excluded.name, named_by = excluded.named_by, named_at = svc_now()`.execute(db);
}

export async function deleteName(db: Queryable, mac: string): Promise<void> {
  await sql`delete from device_names where mac = ${mac}`.execute(db);
}
