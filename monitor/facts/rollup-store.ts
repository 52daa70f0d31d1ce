/** Marks of what changed, and what is made of the facts because of them. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { judgedFacts, judgedPairs } from './application-store.ts';
import { ownedMinutes } from './detail-store.ts';
import { deviceMinutes } from './device-store.ts';
import { hourSeconds, inSpans, preferHashing } from './span-store.ts';

const counterMax = sql.lit(Number.MAX_SAFE_INTEGER);

export interface SiteHour {
  siteId: number;
  hour: number;
}

/** Sites with marks. */
export async function findMarkedSites(db: Queryable): Promise<number[]> {
  const { rows } = await sql<{ siteId: number }>`
    select distinct site_id as "siteId" from site_minute_marks order by 1`.execute(db);
  return rows.map((row) => row.siteId);
}

/** Lets one process at a time roll up a site, until the transaction ends: an older sum must not follow a newer one. */
export async function lockSite(trx: Queryable, siteId: number): Promise<void> {
  // Who freezes while it holds the lock is cut off by the server, or nobody would ever roll the site up again.
  await sql`select set_config('idle_in_transaction_session_timeout', '15s', true),
    pg_advisory_xact_lock(7318102, ${siteId}::int)`.execute(trx);
}

/** Takes up to `limit` of a site's committed marks away and notes their hours as dirty. */
export async function takeMarks(trx: Queryable, siteId: number, limit: number): Promise<number[]> {
  const { rows } = await sql<{ minute: number }>`
    with taken as (
      delete from site_minute_marks where id in (
        select id from site_minute_marks where site_id = ${siteId} order by id limit ${limit}) returning minute),
    noted as (
      insert into rolled_hours (site_id, hour, is_dirty)
      select distinct ${siteId}::bigint, date_trunc('hour', minute, 'UTC'), true from taken
      on conflict (site_id, hour) do update set is_dirty = true, marked_at = svc_now())
    select distinct extract(epoch from minute)::float8 as minute from taken`.execute(trx);
  return rows.map((row) => row.minute);
}

/** A minute in which captures listened and saw no address is a row of zeros: observed, and quiet. */
export async function recomputeSiteMinutes(
  trx: Queryable,
  siteId: number,
  minutes: readonly number[],
): Promise<void> {
  await sql`
    insert into site_minutes (site_id, minute, rx_bytes, tx_bytes, packets, addresses)
    select ${siteId}::bigint, marked.minute, least(coalesce(sum(seen.rx_bytes), 0), ${counterMax}),
      least(coalesce(sum(seen.tx_bytes), 0), ${counterMax}), least(coalesce(sum(seen.packets), 0), ${counterMax}), count(seen.address)
    from (select to_timestamp(minute) as minute from unnest(${[...minutes]}::float8[]) minute) marked
    left join lateral strongest_host_minutes(${siteId}, marked.minute, marked.minute + interval '1 minute') seen on true
    group by marked.minute
    on conflict (site_id, minute) do update set rx_bytes = excluded.rx_bytes, tx_bytes = excluded.tx_bytes,
      packets = excluded.packets, addresses = excluded.addresses`.execute(trx);
}

/**
 * Hours that have to be made. A settled one has ended two minutes ago and got no mark for one, or has waited for a
 * quarter of an hour; an hour that facts still arrive for is cheaper to read than to make again and again.
 */
export async function findDirtyHours(db: Queryable, which: 'settled' | 'all'): Promise<SiteHour[]> {
  const isSettled = sql`hour + interval '1 hour 2 minutes' <= svc_now() and (marked_at <= svc_now() - interval '1 minute'
    or coalesce(rolled_at, hour) <= svc_now() - interval '1 hour 15 minutes')`;
  const { rows } = await sql<SiteHour>`
    select site_id as "siteId", extract(epoch from hour)::float8 as hour from rolled_hours
    where is_dirty and ${which === 'all' ? sql`true` : isSettled} order by hour desc, site_id limit 1000`.execute(
    db,
  );
  return rows;
}

/** Notes the hour as made before it is made: marks that come from now on make it dirty again. False: somebody else did. */
export async function beginHour(trx: Queryable, { siteId, hour }: SiteHour): Promise<boolean> {
  const { rows } = await sql`
    update rolled_hours set is_dirty = false, rolled_at = svc_now()
    where site_id = ${siteId} and hour = to_timestamp(${hour}) and is_dirty returning 1`.execute(trx);
  return rows.length > 0;
}

/** Makes everything of one hour anew. Pairs of hours that begin before `pairsFrom` are not kept. */
export async function recomputeHour(
  trx: Queryable,
  { siteId, hour }: SiteHour,
  hasPairs: boolean,
): Promise<void> {
  await preferHashing(trx);
  const spans = [{ from: hour, to: hour + hourSeconds }];
  const start = sql`to_timestamp(${hour}::float8)`;
  const ofHour = sql`site_id = ${siteId} and hour = ${start}`;
  for (const table of ['address_hours', 'application_hours', 'pair_hours', 'site_hours'])
    await sql`delete from ${sql.table(table)} where ${ofHour}`.execute(trx);
  await sql`delete from application_minutes where site_id = ${siteId} and ${inSpans(spans)}`.execute(trx);

  await sql`
    insert into site_hours (site_id, hour, rx_bytes, tx_bytes, packets, addresses, minutes)
    select ${siteId}::bigint, ${start}, sum(rx_bytes), sum(tx_bytes), sum(packets), max(addresses), count(*)
    from site_minutes where site_id = ${siteId} and ${inSpans(spans)} having count(*) > 0`.execute(trx);

  await sql`
    with ${deviceMinutes({ siteId, spans }, null)}
    insert into address_hours (hour, site_id, address, device_key, rx_bytes, tx_bytes, packets, last_minute, lan_rx_bytes, lan_tx_bytes)
    select ${start}, ${siteId}::bigint, address, device_key, sum(rx), sum(tx), sum(packets), max(minute) filter (where rx is not null),
      sum(lan_rx), sum(lan_tx)
    from device_minutes group by address, device_key`.execute(trx);

  await sql`
    with ${judgedFacts(siteId, spans, null)}, ${ownedMinutes(siteId, spans)}, ${judgedPairs(siteId, hasPairs ? spans : [], null)},
    by_address as (
      insert into application_hours (hour, site_id, direction, name, protocol, server_port, local, device_key, inbound_bytes,
        outbound_bytes, evidence, is_attributed, owner, seen, last_sent_at)
      select ${start}, ${siteId}::bigint, j.direction, j.name, j.protocol, j.server_port, j.local, o.device_key,
        sum(j.inbound_bytes) filter (where j.owns), sum(j.outbound_bytes) filter (where j.owns), max(j.evidence),
        bool_or(j.is_attributed), min(j.vantage) filter (where j.owns), min(j.vantage), max(j.last_sent_at)
      from judged j left join owned o on o.address = j.local and o.minute = j.minute
      group by j.direction, j.name, j.protocol, j.server_port, j.local, o.device_key),
    by_minute as (
      insert into application_minutes (minute, site_id, direction, name, bytes)
      select minute, ${siteId}::bigint, direction, name, sum(inbound_bytes + outbound_bytes)
      from judged where owns group by grouping sets ((minute, direction, name), (minute, direction)))
    insert into pair_hours (hour, site_id, direction, name, protocol, server_port, client, server, local, device_key, bytes)
    select ${start}, ${siteId}::bigint, p.direction, p.name, p.protocol, p.server_port, p.client, p.server, p.local, o.device_key,
      sum(p.client_bytes + p.server_bytes) filter (where p.owns)
    from judged_pairs p left join owned o on o.address = p.local and o.minute = p.minute
    group by p.direction, p.name, p.protocol, p.server_port, p.client, p.server, p.local, o.device_key`.execute(
    trx,
  );
}

/** The database's time, seconds since 1970. */
export async function readNow(db: Queryable): Promise<number> {
  const { rows } = await sql<{ now: number }>`select extract(epoch from svc_now())::float8 as now`.execute(
    db,
  );
  return rows[0]!.now;
}
