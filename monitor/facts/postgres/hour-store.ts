/** Hours of a site, of its addresses and of its applications, made of judged minutes; and days by name, made of hours. */
import { type RawBuilder, sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { ownedMinutes } from './detail-store.ts';
import { deviceMinutes } from './device-store.ts';
import { judgedFacts, judgedPairs } from './judge-store.ts';
import { dropUsage } from './minute-store.ts';
import { packPairs, sumHoursByName } from './name-store.ts';
import { recomputePeers } from './peer-store.ts';
import { hourSeconds, inSpans, preferHashing, type Span } from './span-store.ts';

export interface SiteHour {
  siteId: number;
  hour: number;
}

/**
 * Hours that have to be made. A settled one has ended two minutes ago and got no mark for one, or has waited for a
 * quarter of an hour; an hour that facts still arrive for is cheaper to read than to make again and again.
 */
export async function findDirtyHours(db: Queryable, which: 'settled' | 'all'): Promise<SiteHour[]> {
  const isSettled = sql`hour + interval '1 hour 2 minutes' <= svc_now() and (marked_at <= svc_now() - interval '1 minute'
    or coalesce(rolled_at, hour) <= svc_now() - interval '1 hour 15 minutes')`;
  const { rows } = await sql<SiteHour>`
    select site_id, extract(epoch from hour)::float8 as hour from rolled_hours
    where is_dirty and ${which === 'all' ? sql`true` : isSettled}
    order by hour desc, site_id limit 1000`.execute(db);
  return rows;
}

/** Notes the hour as made before it is made: marks that come from now on make it dirty again. False: another process did. */
export async function beginHour(trx: Queryable, { siteId, hour }: SiteHour): Promise<boolean> {
  const { rows } = await sql`
    update rolled_hours set is_dirty = false, has_detail = true, rolled_at = svc_now()
    where site_id = ${siteId} and hour = to_timestamp(${hour}) and is_dirty returning 1`.execute(trx);
  return rows.length > 0;
}

/** Makes everything of one hour anew, of judged minutes; pairs only where they are kept (`hasPairs`). */
export async function recomputeHour(trx: Queryable, { siteId, hour }: SiteHour, hasPairs: boolean) {
  await preferHashing(trx);
  const made: MadeHour = {
    siteId,
    spans: [{ from: hour, to: hour + hourSeconds }],
    start: sql`to_timestamp(${hour}::float8)`,
    site: sql`${siteId}::bigint`,
  };
  const ofHour = sql`site_id = ${siteId} and hour = ${made.start}`;
  for (const table of [
    ...[
      'address_hours',
      'application_hours',
      'pair_hours',
      'pair_name_hours',
      'name_pair_hours',
      'site_hours',
    ],
  ])
    await sql`delete from ${sql.table(table)} where ${ofHour}`.execute(trx);
  await sumSite(trx, made);
  await sumAddresses(trx, made);
  await sumApplications(trx, made, hasPairs);
  await sumHoursByName(trx, 'hour', made.start, siteId, sql`hour = ${made.start}`);
  await packNamePairs(trx, made, ofHour);
  await sumPeers(trx, made, ofHour);
  await recomputePeers(trx, siteId, hour);
  await dropUsage(trx, siteId, made.spans[0]!);
}

/** An hour as statements need it. */
interface MadeHour {
  siteId: number;
  spans: Span[];
  start: RawBuilder<unknown>;
  site: RawBuilder<unknown>;
}

async function sumSite(trx: Queryable, { siteId, spans, start, site }: MadeHour): Promise<void> {
  await sql`
    insert into site_hours (site_id, hour, rx_bytes, tx_bytes, packets, addresses, minutes, own_scan_bytes, own_scan_packets)
    select ${site}, ${start}, sum(rx_bytes), sum(tx_bytes), sum(packets), max(addresses), count(*), sum(own_scan_bytes),
      sum(own_scan_packets)
    from site_minutes where site_id = ${siteId} and ${inSpans(spans)} having count(*) > 0`.execute(trx);
}

/** Traffic of each address and the device that owned it. */
async function sumAddresses(trx: Queryable, { siteId, spans, start, site }: MadeHour): Promise<void> {
  await sql`
    with ${deviceMinutes({ siteId, spans }, null)}
    insert into address_hours (hour, site_id, address, segment, device_key, rx_bytes, tx_bytes, packets, last_minute, lan_rx_bytes,
      lan_tx_bytes, own_scan_bytes, own_scan_packets)
    select ${start}, ${site}, address, segment, device_key, sum(rx), sum(tx), sum(packets), max(minute) filter (where rx is not null),
      sum(lan_rx), sum(lan_tx), coalesce(sum(own_scan_bytes), 0), coalesce(sum(own_scan_packets), 0)
    from device_minutes group by address, segment, device_key`.execute(trx);
}

/** Applications of each address, and the pairs of addresses behind them. */
async function sumApplications(trx: Queryable, { siteId, spans, start, site }: MadeHour, hasPairs: boolean) {
  const judging = { siteId, judged: spans, unjudged: [], direction: null };
  await sql`
    with ${judgedFacts(judging)}, ${ownedMinutes(siteId, spans)},
    ${judgedPairs({ ...judging, judged: hasPairs ? spans : [] })},
    by_address as (
      insert into application_hours (hour, site_id, direction, name, protocol, server_port, local, segment, device_key, inbound_bytes,
        outbound_bytes, packets, evidence, is_attributed, owner, seen, last_sent_at)
      select ${start}, ${site}, j.direction, j.name, j.protocol, j.server_port, j.local, j.segment, o.device_key,
        sum(j.inbound_bytes) filter (where j.owns), sum(j.outbound_bytes) filter (where j.owns),
        sum(j.packets) filter (where j.owns), max(j.evidence),
        bool_or(j.is_attributed), min(j.vantage) filter (where j.owns), min(j.vantage), max(j.last_sent_at)
      from judged j left join owned o on o.address = j.local and o.minute = j.minute and o.segment = j.segment
      group by j.direction, j.name, j.protocol, j.server_port, j.local, j.segment, o.device_key
      order by j.local)
    insert into pair_hours (hour, site_id, direction, name, protocol, server_port, client, server, local, segment, device_key, bytes,
      inbound_bytes, outbound_bytes, packets)
    select ${start}, ${site}, p.direction, p.name, p.protocol, p.server_port, p.client, p.server, p.local, p.segment, o.device_key,
      sum(p.client_bytes + p.server_bytes) filter (where p.owns),
      sum(case p.direction when 2 then p.client_bytes else p.server_bytes end) filter (where p.owns),
      sum(case p.direction when 2 then p.server_bytes else p.client_bytes end) filter (where p.owns),
      sum(p.packets) filter (where p.owns)
    from judged_pairs p left join owned o on o.address = p.local and o.minute = p.minute and o.segment = p.segment
    group by p.direction, p.name, p.protocol, p.server_port, p.client, p.server, p.local, p.segment, o.device_key`.execute(
    trx,
  );
}

/** Pairs by application and remote address. */
async function sumPeers(trx: Queryable, { start, site }: MadeHour, ofHour: RawBuilder<unknown>) {
  await sql`
    insert into pair_name_hours (hour, site_id, direction, name, protocol, server_port, peer, inbound_bytes, outbound_bytes, packets)
    select ${start}, ${site}, direction, name, protocol, server_port, case direction when 2 then client else server end,
      sum(inbound_bytes), sum(outbound_bytes), sum(packets)
    from pair_hours where ${ofHour} and inbound_bytes is not null
    group by direction, name, protocol, server_port, 7`.execute(trx);
}

/** Pairs of each name, in one value. */
async function packNamePairs(trx: Queryable, { start, site }: MadeHour, ofHour: RawBuilder<unknown>) {
  await sql`
    with each_pair as (select direction, name, protocol, server_port, client, server, sum(bytes) as bytes from pair_hours
      where ${ofHour} group by direction, name, protocol, server_port, client, server)
    insert into name_pair_hours (hour, site_id, direction, name, protocol, server_port, pairs)
    select ${start}, ${site}, packed.*
    from (${packPairs(sql`each_pair`, sql`direction`)}) packed`.execute(trx);
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
    select d.site_id, extract(epoch from d.day)::float8 as day from rolled_days d
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
      and not exists (select from rolled_hours where site_id = ${siteId} and is_dirty
        and ${inDay}) returning 1`.execute(trx);
  if (rows.length === 0) return;
  await preferHashing(trx);
  await sumHoursByName(trx, 'day', start, siteId, inDay);
}
