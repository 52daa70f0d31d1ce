/** Statements that store sightings as devices, bindings and conflicts. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { Binding, EndedBy } from './binding.ts';
import {
  conflictSettledSeconds,
  foreignKeptSeconds,
  foreignNotedSeconds,
  lagSeconds,
  lastMinuteSeconds,
  overlapSeconds,
  silenceSeconds,
  supersededSeconds,
} from './binding.ts';
import type { ForeignMac, Observation } from './sighting.ts';
import type { ReleasedClaim } from './store.ts';

const seconds = (count: number) => sql`make_interval(secs => ${count}::int)`;

/** The change that an observation needs. Observations without a change are left out. */
export interface Need {
  /** Index of the observation in the input list. */
  index: number;
  deviceId: number | null;
  bindingId: number | null;
  /** More changes than the time of the newest sighting. */
  isNews: boolean;
  /** The MAC may own addresses. */
  mayOwn: boolean;
}

/**
 * Finds the observations that change something. In steady state a batch costs only this one read, without locks, so
 * that workers do not wait for each other.
 */
export async function findNeeds(db: Queryable, observations: readonly Observation[]): Promise<Need[]> {
  const { rows } = await sql<Need>`
    with seen as (
      select o.n, o.site_id, o.segment, o.mac, to_timestamp(o.first) as first, to_timestamp(o.last) as last,
        f.mac is null or (o.is_neighbour and f.reason <> 'many_addresses') as may_own, o.address, o.address_segment
      from unnest(${observations.map((one) => one.siteId)}::bigint[], ${observations.map((one) => one.segment)}::text[],
          ${observations.map((one) => one.mac)}::text[], ${observations.map((one) => one.address)}::inet[],
          ${observations.map((one) => one.minutes[0]!)}::float8[], ${observations.map((one) => one.minutes.at(-1)!)}::float8[],
          ${observations.map((one) => one.isNeighbour)}::bool[], ${observations.map((one) => one.addressSegment)}::text[])
        with ordinality as o(site_id, segment, mac, address, first, last, is_neighbour, address_segment, n)
      left join foreign_macs f on f.site_id = o.site_id and f.mac = o.mac and f.seen_at > svc_now() - ${seconds(foreignKeptSeconds)}),
    judged as (
      select s.n, d.id as device_id, b.id as binding_id, s.may_own,
        d.id is null or s.first < d.first_seen_at or d.archived_at <= s.last
          or (s.may_own and s.address is not null and (
            b.id is null or s.first < b.first_seen_at or s.last > b.last_seen_at + ${seconds(silenceSeconds)}
            or exists (select 1 from ip_bindings r where r.site_id = s.site_id and r.address = s.address
              and r.segment = s.address_segment and r.ended_at is null and r.mac <> s.mac))) as is_news,
        s.last >= least(d.last_seen_at, case when s.may_own then b.last_seen_at end)
          + ${seconds(lagSeconds)} as is_later
      from seen s
      -- By its key, one each: a plan that reads all devices costs more, the more there are.
      left join lateral (select * from devices d where d.site_id = s.site_id and d.segment = s.segment and d.mac = s.mac
        limit 1) d on true
      left join lateral (select * from ip_bindings b where b.device_id = d.id and b.address = s.address and b.ended_at is null
        limit 1) b on true)
    select (n - 1)::int as index, device_id, binding_id, is_news, may_own
    from judged where is_news or is_later`.execute(db);
  return rows;
}

/**
 * MACs that are not known as foreign, or were last reported more than `foreignNotedSeconds` ago, each once. A MAC with many addresses only
 * stays foreign this way: becoming foreign requires a check against the inventory first. What a host reports outranks it.
 */
export async function findNewForeign(db: Queryable, macs: readonly ForeignMac[]): Promise<ForeignMac[]> {
  if (macs.length === 0) return [];
  const { rows } = await sql<ForeignMac>`
    select distinct on (o.site_id, o.mac) o.site_id, o.mac, o.reason
    from unnest(${macs.map((one) => one.siteId)}::bigint[], ${macs.map((one) => one.mac)}::text[],
        ${macs.map((one) => one.reason)}::text[]) as o(site_id, mac, reason)
    where not exists (select 1 from foreign_macs f where f.site_id = o.site_id and f.mac = o.mac
      and f.seen_at > svc_now() - ${seconds(foreignNotedSeconds)} and (f.reason = o.reason or f.reason = 'sensor'))
      and (o.reason <> 'many_addresses' or exists (select 1 from foreign_macs f
        where f.site_id = o.site_id and f.mac = o.mac and f.reason = 'many_addresses'))
    order by o.site_id, o.mac, o.reason = 'many_addresses'`.execute(db);
  return rows;
}

/** Stores foreign MACs and ends the claims of new ones. Returns the addresses that lost a claim. */
export async function upsertForeign(db: Queryable, macs: readonly ForeignMac[]): Promise<SiteAddress[]> {
  const { rows } = await sql<SiteAddress>`
    with noted as (
    insert into foreign_macs (site_id, mac, reason)
    select o.site_id, o.mac, o.reason
    from unnest(${macs.map((one) => one.siteId)}::bigint[], ${macs.map((one) => one.mac)}::text[],
        ${macs.map((one) => one.reason)}::text[]) as o(site_id, mac, reason)
    order by o.site_id, o.mac
    on conflict (site_id, mac) do update set seen_at = svc_now(), reason = excluded.reason
    returning site_id, mac, xmax = 0 as is_new)
    update ip_bindings b set ended_at = b.last_seen_at + ${seconds(lastMinuteSeconds)}, ended_by = 'owner'
    from noted n join devices d on d.site_id = n.site_id and d.mac = n.mac
    where n.is_new and b.device_id = d.id and b.ended_at is null
    returning b.site_id, host(b.address) as address, b.segment`.execute(db);
  return rows;
}

/**
 * Serializes changes other than times per site until the end of the transaction: two workers that each add an owner of
 * one address would not see each other's row, and the conflict would stay undetected. Sites are locked in order.
 * Archives and matches span sites and lock all of them, through the lock that others hold as shared.
 */
export async function lockSites(db: Queryable, siteIds: readonly number[]): Promise<void> {
  await sql`select pg_advisory_xact_lock_shared(7318203)`.execute(db);
  for (const siteId of [...siteIds].sort((a, b) => a - b)) {
    await sql`select pg_advisory_xact_lock(7318204, ${siteId}::int)`.execute(db);
  }
}

/** Waits until no sighting is being written, and blocks new ones until the end of the transaction. */
export async function lockAllSites(db: Queryable): Promise<void> {
  await sql`select pg_advisory_xact_lock(7318203)`.execute(db);
}

/** Sightings of one device of a site in one or more minutes. */
export interface DeviceSighting {
  siteId: number;
  segment: string;
  mac: string;
  manufacturer: string | null;
  /** Seconds since 1970. */
  firstMinute: number;
  lastMinute: number;
}

export interface SeenDevice {
  id: number;
  siteId: number;
  segment: string;
  mac: string;
  /** When its last machine ended, unix milliseconds. */
  releasedMs: number | null;
}

/**
 * Adds devices or updates their times. Times only widen, so uploads may come in any order. A minute that began after
 * the archive restores the device; an older one leaves it archived. A device whose first minute arrives after its
 * machine was destroyed is archived from the start.
 */
export async function upsertDevices(
  db: Queryable,
  sightings: readonly DeviceSighting[],
): Promise<SeenDevice[]> {
  const { rows } = await sql<SeenDevice>`
    insert into devices as held (site_id, segment, mac, manufacturer, first_seen_at, last_seen_at, released_at, archived_at)
    select s.site_id, s.segment, s.mac, s.manufacturer, to_timestamp(s.first), to_timestamp(s.last), r.retired_at,
      case when to_timestamp(s.last) < r.retired_at then r.retired_at end
    from unnest(${sightings.map((one) => one.siteId)}::bigint[], ${sightings.map((one) => one.segment)}::text[],
        ${sightings.map((one) => one.mac)}::text[], ${sightings.map((one) => one.manufacturer)}::text[],
        ${sightings.map((one) => one.firstMinute)}::float8[], ${sightings.map((one) => one.lastMinute)}::float8[])
      as s(site_id, segment, mac, manufacturer, first, last)
    left join retired_macs r on r.site_id = s.site_id and r.mac = s.mac
    order by s.site_id, s.segment, s.mac
    on conflict (site_id, segment, mac) do update set
      first_seen_at = least(held.first_seen_at, excluded.first_seen_at),
      last_seen_at = greatest(held.last_seen_at, excluded.last_seen_at),
      manufacturer = coalesce(held.manufacturer, excluded.manufacturer),
      archived_at = case when excluded.last_seen_at >= held.archived_at then null else held.archived_at end
    returning id, site_id, segment, mac,
    (extract(epoch from released_at) * 1000)::float8 as released_ms`.execute(db);
  return rows;
}

export interface StoredBinding extends Binding {
  deviceId: number;
  address: string;
}

/** Every binding of these pairs of device and address. */
export async function listBindingsOf(
  db: Queryable,
  pairs: readonly { deviceId: number; address: string }[],
): Promise<StoredBinding[]> {
  const { rows } = await sql<StoredBinding>`
    select b.id, b.device_id, host(b.address) as address, b.ended_by,
      extract(epoch from b.first_seen_at)::float8 as first_minute,
      extract(epoch from b.last_seen_at)::float8 as last_minute,
      (extract(epoch from b.ended_at) * 1000)::float8 as ended_ms
    from unnest(${pairs.map((pair) => pair.deviceId)}::bigint[], ${pairs.map((pair) => pair.address)}::inet[])
      as p(device_id, address)
    join ip_bindings b on b.device_id = p.device_id and b.address = p.address`.execute(db);
  return rows;
}

/** Ends bindings before others begin: a pair has at most one without an end. */
export async function updateBindings(db: Queryable, bindings: readonly Binding[]): Promise<void> {
  if (bindings.length === 0) return;
  await sql`
    update ip_bindings held set first_seen_at = to_timestamp(b.first), last_seen_at = to_timestamp(b.last),
      ended_at = to_timestamp(b.ended / 1000), ended_by = b.ended_by
    from unnest(${bindings.map((one) => one.id)}::bigint[], ${bindings.map((one) => one.firstMinute)}::float8[],
        ${bindings.map((one) => one.lastMinute)}::float8[], ${bindings.map((one) => one.endedMs)}::float8[],
        ${bindings.map((one) => one.endedBy)}::text[]) as b(id, first, last, ended, ended_by)
    where held.id = b.id`.execute(db);
}

export interface NewBinding extends Binding, Omit<ReleasedClaim, 'laterMinute'> {}

export async function insertBindings(db: Queryable, bindings: readonly NewBinding[]): Promise<void> {
  if (bindings.length === 0) return;
  await sql`
    insert into ip_bindings (site_id, device_id, mac, address, segment, first_seen_at, last_seen_at, ended_at, ended_by)
    select b.site_id, b.device_id, b.mac, b.address, b.segment, to_timestamp(b.first), to_timestamp(b.last),
      to_timestamp(b.ended / 1000), b.ended_by
    from unnest(${bindings.map((one) => one.siteId)}::bigint[], ${bindings.map((one) => one.deviceId)}::bigint[],
        ${bindings.map((one) => one.mac)}::text[], ${bindings.map((one) => one.address)}::inet[],
        ${bindings.map((one) => one.firstMinute)}::float8[], ${bindings.map((one) => one.lastMinute)}::float8[],
        ${bindings.map((one) => one.endedMs)}::float8[], ${bindings.map((one) => one.endedBy as EndedBy | null)}::text[],
        ${bindings.map((one) => one.segment)}::text[])
      as b(site_id, device_id, mac, address, first, last, ended, ended_by, segment)`.execute(db);
}

export async function deleteBindings(db: Queryable, ids: readonly number[]): Promise<void> {
  if (ids.length === 0) return;
  await sql`delete from ip_bindings where id = any(${[...ids]}::bigint[])`.execute(db);
}

/**
 * Updates the times of the newest sightings. Rows that another transaction is writing are skipped until the next
 * minute, so that this never waits and can not deadlock. Call it last.
 */
export async function refreshTimes(
  db: Queryable,
  table: 'devices' | 'ip_bindings',
  times: ReadonlyMap<number, number>,
): Promise<void> {
  if (times.size === 0) return;
  const name = sql.table(table);
  await sql`
    with due as (
      select held.id, n.last from unnest(${[...times.keys()]}::bigint[], ${[...times.values()]}::float8[]) as n(id, last)
      join ${name} held on held.id = n.id for update of held skip locked)
    update ${name} held set last_seen_at = greatest(held.last_seen_at, to_timestamp(due.last))
    from due where held.id = due.id`.execute(db);
}

/** An address of a site, with its segment unless it is globally unique. */
export interface SiteAddress {
  siteId: number;
  address: string;
  segment: string;
}

const ofAddresses = (addresses: readonly SiteAddress[]) => sql`
  unnest(${addresses.map((one) => one.siteId)}::bigint[], ${addresses.map((one) => one.address)}::inet[],
    ${addresses.map((one) => one.segment)}::text[]) as a(site_id, address, segment)`;

/**
 * Ends live claims of owners without sightings while another owner was seen for `supersededSeconds`, or for
 * `conflictSettledSeconds` if they were in conflict.
 */
export async function endSuperseded(db: Queryable, addresses: readonly SiteAddress[]): Promise<void> {
  await sql`
    update ip_bindings old set ended_at = old.last_seen_at + ${seconds(lastMinuteSeconds)}, ended_by = 'owner'
    from ${ofAddresses(addresses)}
    where old.site_id = a.site_id and old.address = a.address and old.segment = a.segment and old.ended_at is null
      and exists (select 1 from ip_bindings b
        where b.site_id = a.site_id and b.address = a.address and b.segment = a.segment and b.ended_at is null
          and b.mac <> old.mac
          and b.last_seen_at > old.last_seen_at + case when exists (
            select 1 from ip_conflicts p where p.site_id = a.site_id and p.address = a.address and p.segment = a.segment
              and p.resolved_at is null)
            then ${seconds(conflictSettledSeconds)} else ${seconds(supersededSeconds)} end)`.execute(db);
}

export interface OpenedConflict extends SiteAddress {
  macs: string[];
}

/**
 * Opens conflicts for addresses that different MACs claim at the same time: both within `overlapSeconds` of the
 * newest sighting, and interleaved. One MAC after another is a hand-over, and one MAC on two segments is one owner.
 */
export async function openConflicts(
  db: Queryable,
  addresses: readonly SiteAddress[],
): Promise<OpenedConflict[]> {
  const { rows } = await sql<OpenedConflict & { isNew: boolean }>`
    with owners as (
      select b.site_id, b.address, b.segment, b.mac, min(b.first_seen_at) as first_seen, max(b.last_seen_at) as last_seen
      from ${ofAddresses(addresses)} join ip_bindings b on b.site_id = a.site_id and b.address = a.address
        and b.segment = a.segment
      where b.ended_at is null
      group by b.site_id, b.address, b.segment, b.mac),
    -- Joined with itself, a batch of new addresses would take the square of its size.
    contested as (
      select site_id, address, segment, array_agg(mac) as macs, array_agg(first_seen) as firsts, array_agg(last_seen) as lasts
      from owners group by site_id, address, segment having count(*) > 1),
    clashes as (
      select c.site_id, c.address, c.segment, array_agg(distinct a.mac order by a.mac) as macs
      from contested c
      cross join lateral unnest(c.macs, c.firsts, c.lasts) as a (mac, first_seen, last_seen)
      cross join lateral unnest(c.macs, c.firsts, c.lasts) as b (mac, first_seen, last_seen)
      where b.mac <> a.mac and a.first_seen < b.last_seen and b.first_seen < a.last_seen
        and a.last_seen > b.last_seen - ${seconds(overlapSeconds)} and b.last_seen > a.last_seen - ${seconds(overlapSeconds)}
      group by c.site_id, c.address, c.segment)
    insert into ip_conflicts as held (site_id, address, segment, macs)
    select site_id, address, segment, macs from clashes c
    where not exists (select 1 from ip_conflicts p where p.site_id = c.site_id and p.address = c.address
      and p.segment = c.segment
      and p.resolved_at is null and p.macs @> c.macs)
    order by site_id, segment, address
    on conflict (site_id, segment, address) where resolved_at is null
      do update set macs = array(select distinct unnest(held.macs || excluded.macs) order by 1)
    returning site_id, host(address) as address, segment, macs, xmax = 0 as is_new`.execute(db);
  return rows.filter((row) => row.isNew).map(({ isNew: _, ...conflict }) => conflict);
}

/** Resolves open conflicts of these addresses with fewer than two live owners. */
export async function resolveConflicts(
  db: Queryable,
  addresses: readonly SiteAddress[],
): Promise<OpenedConflict[]> {
  if (addresses.length === 0) return [];
  const { rows } = await sql<OpenedConflict>`
    update ip_conflicts p set resolved_at = svc_now()
    from ${ofAddresses(addresses)}
    where p.site_id = a.site_id and p.address = a.address and p.segment = a.segment and p.resolved_at is null
      and (select count(distinct b.mac) from ip_bindings b
           where b.site_id = p.site_id and b.address = p.address and b.segment = p.segment and b.ended_at is null) < 2
    returning p.site_id, host(p.address) as address, p.segment, p.macs`.execute(db);
  return rows;
}

/**
 * Finds those of the MACs that claim more addresses than a host has and are not in any inventory, ends their claims and
 * marks them as foreign. Returns the addresses that lost a claim.
 */
export async function excludeCrowded(
  db: Queryable,
  macs: readonly { siteId: number; mac: string }[],
  addressesMax: number,
): Promise<SiteAddress[]> {
  const { rows } = await sql<SiteAddress>`
    with crowded as (
      select b.site_id, b.mac
      from (select distinct site_id, mac from unnest(${macs.map((one) => one.siteId)}::bigint[],
          ${macs.map((one) => one.mac)}::text[]) as m(site_id, mac)) m
      join devices d on d.site_id = m.site_id and d.mac = m.mac
      join ip_bindings b on b.device_id = d.id and b.ended_at is null
      group by b.site_id, b.mac
      having count(distinct b.address) > ${addressesMax}
        and not bool_or(d.matched_vm_id is not null and d.match_ended_at is null)),
    noted as (
      insert into foreign_macs (site_id, mac, reason) select site_id, mac, 'many_addresses' from crowded
      order by site_id, mac
      on conflict (site_id, mac) do update set seen_at = svc_now(), reason = excluded.reason)
    update ip_bindings b set ended_at = b.last_seen_at + ${seconds(lastMinuteSeconds)}, ended_by = 'owner'
    from crowded c join devices d on d.site_id = c.site_id and d.mac = c.mac
    where b.device_id = d.id and b.ended_at is null
    returning b.site_id, host(b.address) as address, b.segment`.execute(db);
  return rows;
}
