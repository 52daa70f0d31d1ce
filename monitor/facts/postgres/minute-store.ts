/** Marks of what changed, and what is made of a site's minute because of them: its sums, who counts in it, and ten minutes. */
import { type RawBuilder, sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { judgedFacts, judgedPairs } from './judge-store.ts';
import { judgedNames, judgedPairSums, nameColumns, totalOf } from './name-store.ts';
import { inSpans, preferHashing, type Span, spansOf, tenSeconds } from './span-store.ts';

const counterMax = sql.lit(Number.MAX_SAFE_INTEGER);

/** Sites with marks. */
export async function findMarkedSites(db: Queryable): Promise<number[]> {
  const { rows } = await sql<{ siteId: number }>`
    select distinct site_id from site_minute_marks order by 1`.execute(db);
  return rows.map((row) => row.siteId);
}

/** Lets one process at a time roll up a site, until the transaction ends: an older sum must not follow a newer one. */
export async function lockSite(trx: Queryable, siteId: number): Promise<void> {
  // The server ends a frozen holder of the lock, otherwise the site could never be rolled up again.
  await sql`select set_config('idle_in_transaction_session_timeout', '15s', true),
    pg_advisory_xact_lock(7318102, ${siteId}::int)`.execute(trx);
}

/** Takes up to `limit` of a site's committed marks away and notes what is made of those minutes as out of date. */
export async function takeMarks(trx: Queryable, siteId: number, limit: number): Promise<number[]> {
  const noted = (table: string, column: string, start: RawBuilder<unknown>) => sql`
      insert into ${sql.table(table)} (site_id, ${sql.ref(column)}, is_dirty)
      select distinct ${siteId}::bigint, ${start}, true from taken
      on conflict (site_id, ${sql.ref(column)}) do update set is_dirty = true, marked_at = svc_now()`;
  const { rows } = await sql<{ minute: number }>`
    with taken as (
      delete from site_minute_marks where id in (
        select id from site_minute_marks where site_id = ${siteId} order by id limit ${limit}) returning minute),
    unjudged as (
      insert into unjudged_minutes (site_id, minute) select distinct ${siteId}::bigint, minute from taken
      on conflict (site_id, minute) do update set marked_at = svc_now()),
    tens as (${noted('rolled_tens', 'start', sql`date_bin('10 minutes', minute, timestamptz 'epoch')`)}),
    hours as (${noted('rolled_hours', 'hour', sql`date_trunc('hour', minute, 'UTC')`)}),
    days as (${noted('rolled_days', 'day', sql`date_trunc('day', minute, 'UTC')`)})
    select distinct extract(epoch from minute)::float8 as minute from taken`.execute(trx);
  return rows.map((row) => row.minute);
}

/** A minute in which captures listened and saw no address is a row of zeros: observed, and quiet. */
export async function recomputeSiteMinutes(trx: Queryable, siteId: number, minutes: readonly number[]) {
  await sql`
    insert into site_minutes (site_id, minute, rx_bytes, tx_bytes, packets, addresses, own_scan_bytes, own_scan_packets)
    select ${siteId}::bigint, marked.minute, least(coalesce(sum(seen.rx_bytes), 0), ${counterMax}),
      least(coalesce(sum(seen.tx_bytes), 0), ${counterMax}), least(coalesce(sum(seen.packets), 0), ${counterMax}), count(seen.address),
      least(coalesce(sum(seen.own_scan_rx_bytes + seen.own_scan_tx_bytes), 0), ${counterMax}),
      least(coalesce(sum(seen.own_scan_packets), 0), ${counterMax})
    from (select to_timestamp(minute) as minute from unnest(${[...minutes]}::float8[]) minute) marked
    left join lateral strongest_host_minutes(${siteId}, marked.minute, marked.minute + interval '1 minute') seen on true
    group by marked.minute
    on conflict (site_id, minute) do update set rx_bytes = excluded.rx_bytes, tx_bytes = excluded.tx_bytes,
      packets = excluded.packets, addresses = excluded.addresses, own_scan_bytes = excluded.own_scan_bytes,
      own_scan_packets = excluded.own_scan_packets`.execute(trx);
}

/**
 * Some of the minutes that have to be judged, of one site each. A settled one got no mark for a while or has waited for
 * long: sensors of a site upload one after the other, and until then reading the facts is cheaper than judging again.
 */
export async function findUnjudged(
  db: Queryable,
  which: 'settled' | 'all',
  limit: number,
): Promise<{ siteId: number; minutes: number[] } | null> {
  const isSettled = sql`minute + interval '1 minute' <= svc_now() and (marked_at <= svc_now() - interval '15 seconds'
    or since <= svc_now() - interval '75 seconds')`;
  const isDue = which === 'all' ? sql`true` : isSettled;
  const { rows } = await sql<{ siteId: number; minutes: number[] }>`
    with site as (select site_id from unjudged_minutes where ${isDue} order by minute desc limit 1)
    select site_id, array(select extract(epoch from minute)::float8 from unjudged_minutes u
      where u.site_id = site.site_id and ${isDue} order by minute desc
      limit ${limit}) as minutes from site`.execute(db);
  return rows[0] ?? null;
}

/** Notes minutes as judged before they are: marks that come from now on make them unjudged again. Returns those that were left. */
export async function beginMinutes(
  trx: Queryable,
  siteId: number,
  span: Span | { minutes: readonly number[] },
): Promise<number[]> {
  const wanted =
    'minutes' in span
      ? sql`minute in (select to_timestamp(m) from unnest(${[...span.minutes]}::float8[]) m)`
      : inSpans([span]);
  const { rows } = await sql<{ minute: number }>`
    delete from unjudged_minutes where site_id = ${siteId} and ${wanted}
    returning extract(epoch from minute)::float8 as minute`.execute(trx);
  return rows.map((row) => row.minute).sort((a, b) => a - b);
}

/** Judges minutes anew and keeps what each name exchanged in them. Pairs of minutes before `pairsFrom` are not kept. */
export async function judgeMinutes(
  trx: Queryable,
  siteId: number,
  minutes: readonly number[],
  pairsFrom: number,
): Promise<void> {
  if (minutes.length === 0) return;
  await preferHashing(trx);
  const unjudged = spansOf(minutes, 60);
  const young = spansOf(
    minutes.filter((minute) => minute >= pairsFrom),
    60,
  );
  const site = sql`${siteId}::bigint`;
  const judging = { siteId, judged: [], unjudged, direction: null };
  for (const table of ['minute_owners', 'name_minutes', 'name_pair_minutes'])
    await sql`delete from ${sql.table(table)} where site_id = ${siteId}
      and ${inSpans(unjudged)}`.execute(trx);
  await sql`
    with ${judgedFacts(judging)}, ${judgedNames}, ${judgedPairs({ ...judging, unjudged: young })}, ${judgedPairSums},
    kept_owners as (
      insert into minute_owners (site_id, minute, direction, local, capture_id, vantage, segment)
      select ${site}, minute, direction, local, capture_id, vantage, segment from fresh_owners),
    kept_names as (
      insert into name_minutes (site_id, minute, ${nameColumns}, locals)
      select ${site}, minute, ${nameColumns}, locals from name_sums
      union all select ${site}, minute, ${nameColumns}, ''::bytea from (${totalOf(sql`name_sums`, sql`minute, direction`)}) totals)
    insert into name_pair_minutes (site_id, minute, direction, name, protocol, server_port, pairs)
    select ${site}, minute, direction, name, protocol, server_port, pairs from pair_sums`.execute(trx);
}

// What is made of judged minutes: ten minutes by name and by address; usage and connections until their hour is summed.

/** Ten minutes of a site. */
export interface TenMinuteBucket {
  siteId: number;
  start: number;
}

/** Ten minutes that have ended, all of which are judged, the newest first. */
export async function findDirtyBuckets(db: Queryable): Promise<TenMinuteBucket[]> {
  const { rows } = await sql<TenMinuteBucket>`
    select t.site_id, extract(epoch from t.start)::float8 as start from rolled_tens t
    where t.is_dirty and t.start + interval '10 minutes' <= svc_now() and not exists (select from unjudged_minutes u
      where u.site_id = t.site_id and u.minute >= t.start and u.minute < t.start + interval '10 minutes')
    order by t.start desc, t.site_id limit 1000`.execute(db);
  return rows;
}

/** Makes ten minutes of their minutes; nothing if one has changed or another process was first. */
export async function recomputeBucket(trx: Queryable, { siteId, start }: TenMinuteBucket, pairsFrom: number) {
  const span = { from: start, to: start + tenSeconds };
  const at = sql`to_timestamp(${start}::float8)`;
  const site = sql`${siteId}::bigint`;
  const { rows } = await sql`
    update rolled_tens set is_dirty = false, has_addresses = true, has_usage = ${start >= pairsFrom}, rolled_at = svc_now()
    where site_id = ${siteId} and start = ${at} and is_dirty
      and not exists (select from unjudged_minutes where site_id = ${siteId}
        and ${inSpans([span])}) returning 1`.execute(trx);
  if (rows.length === 0) return;
  await preferHashing(trx);
  for (const table of ['name_tens', 'name_pair_tens', 'address_tens', 'usage_tens', 'pair_tens'])
    await sql`delete from ${sql.table(table)} where site_id = ${siteId} and start = ${at}`.execute(trx);
  const ofSite = sql`site_id = ${siteId} and ${inSpans([span])}`;
  const key = sql`direction, name, protocol, server_port`;
  await sql`
    insert into name_tens (start, site_id, ${nameColumns}, locals)
    select ${at}, ${site}, ${key}, sum(inbound_bytes), sum(outbound_bytes), max(evidence), bool_or(is_attributed), min(owner),
      min(seen), max(last_sent_at), string_agg(locals, ''::bytea)
    from name_minutes where ${ofSite} group by ${key}`.execute(trx);
  await sql`
    insert into address_tens (start, site_id, address, segment, device_key, capture_id, vantage, rx_bytes, tx_bytes, packets,
      own_scan_bytes, own_scan_packets)
    select ${at}, ${site}, s.address, s.segment, s.device_key, s.capture_id, m.vantage, sum(s.rx_bytes), sum(s.tx_bytes), sum(s.packets),
      sum(s.own_scan_rx_bytes + s.own_scan_tx_bytes), sum(s.own_scan_packets)
    from strongest_host_minutes(${siteId}, to_timestamp(${span.from}), to_timestamp(${span.to})) s
    join capture_minutes m on m.site_id = ${siteId} and m.minute = s.minute and m.capture_id = s.capture_id
      and ${inSpans([span], 'm.minute')}
    group by s.address, s.segment, s.device_key, s.capture_id, m.vantage order by s.address`.execute(trx);
  // Of ten minutes that are partly too old for pairs none are kept; what is left of them is read by the minute.
  if (start < pairsFrom) return;
  await sql`
    insert into name_pair_tens (start, site_id, ${key}, pairs)
    select ${at}, ${site}, ${key}, string_agg(pairs, ''::bytea) from name_pair_minutes
    where ${ofSite} group by ${key}`.execute(trx);
  await sumUsage(trx, siteId, span);
}

/** What captures count of ten minutes, by local address; connections, which add up to it, also by remote address. */
async function sumUsage(trx: Queryable, siteId: number, span: Span): Promise<void> {
  const judging = { siteId, judged: [span], unjudged: [], direction: null };
  const start = sql`to_timestamp(${span.from}::float8), ${siteId}::bigint`;
  const key = sql`direction, name, protocol, server_port, local, segment`;
  const counted = sql`inbound_bytes, outbound_bytes, packets`;
  await sql`
    with ${judgedFacts(judging)}, ${judgedPairs(judging)},
    by_peer as materialized (
      select ${key}, case direction when 2 then client else server end as peer,
        sum(case direction when 2 then client_bytes else server_bytes end)::bigint as inbound_bytes,
        sum(case direction when 2 then server_bytes else client_bytes end)::bigint as outbound_bytes, sum(packets)::bigint as packets
      from judged_pairs where owns group by ${key}, case direction when 2 then client else server end),
    kept_pairs as (
      insert into pair_tens (start, site_id, ${key}, peer, ${counted})
      select ${start}, ${key}, peer, ${counted} from by_peer)
    insert into usage_tens (start, site_id, ${key}, ${counted})
    select ${start}, ${key}, sum(inbound_bytes), sum(outbound_bytes), sum(packets)
    from by_peer group by ${key}`.execute(trx);
}

/** Deletes usage of the ten minutes of an hour that has been summed. */
export async function dropUsage(trx: Queryable, siteId: number, { from, to }: Span): Promise<void> {
  const within = sql`site_id = ${siteId} and start >= to_timestamp(${from}) and start < to_timestamp(${to})`;
  await sql`update rolled_tens set has_usage = false where ${within} and has_usage`.execute(trx);
  for (const table of ['usage_tens', 'pair_tens'])
    await sql`delete from ${sql.table(table)} where ${within}`.execute(trx);
}
