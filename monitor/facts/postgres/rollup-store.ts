/** What is made of judged minutes: ten minutes, hours and days. */
import { type RawBuilder, sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { ownedMinutes } from './detail-store.ts';
import { deviceMinutes } from './device-store.ts';
import { judgedFacts, judgedPairs } from './judge-store.ts';
import { nameColumns, packPairs, sumNames, totalOf } from './name-store.ts';
import { hourSeconds, inSpans, preferHashing, tenSeconds } from './span-store.ts';

export interface SiteHour {
  siteId: number;
  hour: number;
}

export interface SiteTen {
  siteId: number;
  start: number;
}

/** Ten minutes that have ended, all of which are judged, the newest first. */
export async function findDirtyTens(db: Queryable): Promise<SiteTen[]> {
  const { rows } = await sql<SiteTen>`
    select t.site_id as "siteId", extract(epoch from t.start)::float8 as start from rolled_tens t
    where t.is_dirty and t.start + interval '10 minutes' <= svc_now() and not exists (select from unjudged_minutes u
      where u.site_id = t.site_id and u.minute >= t.start and u.minute < t.start + interval '10 minutes')
    order by t.start desc, t.site_id limit 1000`.execute(db);
  return rows;
}

/** Makes ten minutes of their minutes; nothing if one has changed or another process was first. */
export async function recomputeTen(
  trx: Queryable,
  { siteId, start }: SiteTen,
  pairsFrom: number,
): Promise<void> {
  const span = { from: start, to: start + tenSeconds };
  const at = sql`to_timestamp(${start}::float8)`;
  const site = sql`${siteId}::bigint`;
  const { rows } = await sql`
    update rolled_tens set is_dirty = false, rolled_at = svc_now()
    where site_id = ${siteId} and start = ${at} and is_dirty
      and not exists (select from unjudged_minutes where site_id = ${siteId} and ${inSpans([span])}) returning 1`.execute(
    trx,
  );
  if (rows.length === 0) return;
  await preferHashing(trx);
  for (const table of ['name_tens', 'name_pair_tens'])
    await sql`delete from ${sql.table(table)} where site_id = ${siteId} and start = ${at}`.execute(trx);
  const ofSite = sql`site_id = ${siteId} and ${inSpans([span])}`;
  const key = sql`direction, name, protocol, server_port`;
  await sql`
    insert into name_tens (start, site_id, ${nameColumns}, locals)
    select ${at}, ${site}, ${key}, sum(inbound_bytes), sum(outbound_bytes), max(evidence), bool_or(is_attributed), min(owner),
      min(seen), max(last_sent_at), string_agg(locals, ''::bytea)
    from name_minutes where ${ofSite} group by ${key}`.execute(trx);
  // Of ten minutes that are partly too old for pairs none are kept; what is left of them is read by the minute.
  if (start < pairsFrom) return;
  await sql`
    insert into name_pair_tens (start, site_id, ${key}, pairs)
    select ${at}, ${site}, ${key}, string_agg(pairs, ''::bytea) from name_pair_minutes where ${ofSite} group by ${key}`.execute(
    trx,
  );
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

/** Notes the hour as made before it is made: marks that come from now on make it dirty again. False: another process did. */
export async function beginHour(trx: Queryable, { siteId, hour }: SiteHour): Promise<boolean> {
  const { rows } = await sql`
    update rolled_hours set is_dirty = false, rolled_at = svc_now()
    where site_id = ${siteId} and hour = to_timestamp(${hour}) and is_dirty returning 1`.execute(trx);
  return rows.length > 0;
}

/** Makes everything of one hour anew, of judged minutes. Pairs of hours that begin before `pairsFrom` are not kept. */
export async function recomputeHour(
  trx: Queryable,
  { siteId, hour }: SiteHour,
  hasPairs: boolean,
): Promise<void> {
  await preferHashing(trx);
  const spans = [{ from: hour, to: hour + hourSeconds }];
  const start = sql`to_timestamp(${hour}::float8)`;
  const site = sql`${siteId}::bigint`;
  const ofHour = sql`site_id = ${siteId} and hour = ${start}`;
  for (const table of ['address_hours', 'application_hours', 'pair_hours', 'name_pair_hours', 'site_hours'])
    await sql`delete from ${sql.table(table)} where ${ofHour}`.execute(trx);

  await sql`
    insert into site_hours (site_id, hour, rx_bytes, tx_bytes, packets, addresses, minutes)
    select ${site}, ${start}, sum(rx_bytes), sum(tx_bytes), sum(packets), max(addresses), count(*)
    from site_minutes where site_id = ${siteId} and ${inSpans(spans)} having count(*) > 0`.execute(trx);

  await sql`
    with ${deviceMinutes({ siteId, spans }, null)}
    insert into address_hours (hour, site_id, address, segment, device_key, rx_bytes, tx_bytes, packets, last_minute, lan_rx_bytes, lan_tx_bytes)
    select ${start}, ${site}, address, segment, device_key, sum(rx), sum(tx), sum(packets), max(minute) filter (where rx is not null),
      sum(lan_rx), sum(lan_tx)
    from device_minutes group by address, segment, device_key`.execute(trx);

  const judging = { siteId, judged: spans, unjudged: [], direction: null };
  await sql`
    with ${judgedFacts(judging)}, ${ownedMinutes(siteId, spans)},
    ${judgedPairs({ ...judging, judged: hasPairs ? spans : [] })},
    by_address as (
      insert into application_hours (hour, site_id, direction, name, protocol, server_port, local, segment, device_key, inbound_bytes,
        outbound_bytes, evidence, is_attributed, owner, seen, last_sent_at)
      select ${start}, ${site}, j.direction, j.name, j.protocol, j.server_port, j.local, j.segment, o.device_key,
        sum(j.inbound_bytes) filter (where j.owns), sum(j.outbound_bytes) filter (where j.owns), max(j.evidence),
        bool_or(j.is_attributed), min(j.vantage) filter (where j.owns), min(j.vantage), max(j.last_sent_at)
      from judged j left join owned o on o.address = j.local and o.minute = j.minute and o.segment = j.segment
      group by j.direction, j.name, j.protocol, j.server_port, j.local, j.segment, o.device_key
      order by j.local)
    insert into pair_hours (hour, site_id, direction, name, protocol, server_port, client, server, local, device_key, bytes)
    select ${start}, ${site}, p.direction, p.name, p.protocol, p.server_port, p.client, p.server, p.local, o.device_key,
      sum(p.client_bytes + p.server_bytes) filter (where p.owns)
    from judged_pairs p left join owned o on o.address = p.local and o.minute = p.minute and o.segment = p.segment
    group by p.direction, p.name, p.protocol, p.server_port, p.client, p.server, p.local, o.device_key`.execute(
    trx,
  );

  await insertNames(trx, 'hour', start, siteId, sql`hour = ${start}`);
  await sql`
    with each_pair as (select direction, name, protocol, server_port, client, server, sum(bytes) as bytes from pair_hours
      where ${ofHour} group by direction, name, protocol, server_port, client, server)
    insert into name_pair_hours (hour, site_id, direction, name, protocol, server_port, pairs)
    select ${start}, ${site}, packed.* from (${packPairs(sql`each_pair`, sql`direction`)}) packed`.execute(
    trx,
  );
}

/** Sums hours by name and address up to a unit of hours by name, and its addresses. */
async function insertNames(
  trx: Queryable,
  unit: 'hour' | 'day',
  start: RawBuilder<unknown>,
  siteId: number,
  hours: RawBuilder<unknown>,
): Promise<void> {
  const site = sql`${siteId}::bigint`;
  const at = sql.ref(unit);
  for (const table of [`name_${unit}s`, `name_${unit}_locals`])
    await sql`delete from ${sql.table(table)} where site_id = ${siteId} and ${at} = ${start}`.execute(trx);
  await sql`
    with by_local as (
      select direction, name, protocol, server_port, local, sum(inbound_bytes) as inbound_bytes,
        sum(outbound_bytes) as outbound_bytes, max(evidence) as evidence, bool_or(is_attributed) as is_attributed,
        min(owner) as owner, min(seen) as seen, max(last_sent_at) as last_sent_at
      from application_hours where site_id = ${siteId} and ${hours}
      group by direction, name, protocol, server_port, local),
    sums as materialized (${sumNames(sql`by_local`, sql`direction`)}),
    locals as (
      insert into ${sql.table(`name_${unit}_locals`)} (${at}, site_id, direction, name, protocol, server_port, locals)
      select ${start}, ${site}, direction, name, protocol, server_port, locals from sums)
    insert into ${sql.table(`name_${unit}s`)} (${at}, site_id, ${nameColumns})
    select ${start}, ${site}, ${nameColumns} from sums
    union all select ${start}, ${site}, ${nameColumns} from (${totalOf(sql`sums`, sql`direction`)}) totals`.execute(
    trx,
  );
}

export interface SiteDay {
  siteId: number;
  day: number;
}

/** Days that have to be made, all hours of which are. A settled one has ended and got no mark of late, or waits for an hour. */
export async function findDirtyDays(db: Queryable, which: 'settled' | 'all'): Promise<SiteDay[]> {
  const isSettled = sql`d.day + interval '1 day 10 minutes' <= svc_now() and (d.marked_at <= svc_now() - interval '5 minutes'
    or coalesce(d.rolled_at, d.day) <= svc_now() - interval '25 hours')`;
  const { rows } = await sql<SiteDay>`
    select d.site_id as "siteId", extract(epoch from d.day)::float8 as day from rolled_days d
    where d.is_dirty and ${which === 'all' ? sql`true` : isSettled} and not exists (select from rolled_hours h
      where h.site_id = d.site_id and h.is_dirty and h.hour >= d.day and h.hour < d.day + interval '1 day')
    order by d.day desc, d.site_id limit 100`.execute(db);
  return rows;
}

/** Makes a day of its hours by address; nothing if one of them is out of date or another process was first. */
export async function recomputeDay(trx: Queryable, { siteId, day }: SiteDay): Promise<void> {
  const start = sql`to_timestamp(${day}::float8)`;
  const inDay = sql`hour >= ${start} and hour < ${start} + interval '1 day'`;
  const { rows } = await sql`
    update rolled_days set is_dirty = false, rolled_at = svc_now()
    where site_id = ${siteId} and day = ${start} and is_dirty
      and not exists (select from rolled_hours where site_id = ${siteId} and is_dirty and ${inDay}) returning 1`.execute(
    trx,
  );
  if (rows.length === 0) return;
  await preferHashing(trx);
  await insertNames(trx, 'day', start, siteId, inDay);
}
