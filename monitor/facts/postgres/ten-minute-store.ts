/** What is made of judged minutes: ten minutes by name and by address; usage and connections until their hour is summed. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { judgedFacts, judgedPairs } from './judge-store.ts';
import { nameColumns } from './name-store.ts';
import { inSpans, preferHashing, type Span, tenSeconds } from './span-store.ts';

/** Ten minutes of a site. */
export interface TenMinuteBucket {
  siteId: number;
  start: number;
}

/** Ten minutes that have ended, all of which are judged, the newest first. */
export async function findDirtyBuckets(db: Queryable): Promise<TenMinuteBucket[]> {
  const { rows } = await sql<TenMinuteBucket>`
    select t.site_id as "siteId", extract(epoch from t.start)::float8 as start from rolled_tens t
    where t.is_dirty and t.start + interval '10 minutes' <= svc_now() and not exists (select from unjudged_minutes u
      where u.site_id = t.site_id and u.minute >= t.start and u.minute < t.start + interval '10 minutes')
    order by t.start desc, t.site_id limit 1000`.execute(db);
  return rows;
}

/** Makes ten minutes of their minutes; nothing if one has changed or another process was first. */
export async function recomputeBucket(
  trx: Queryable,
  { siteId, start }: TenMinuteBucket,
  pairsFrom: number,
): Promise<void> {
  const span = { from: start, to: start + tenSeconds };
  const at = sql`to_timestamp(${start}::float8)`;
  const site = sql`${siteId}::bigint`;
  const { rows } = await sql`
    update rolled_tens set is_dirty = false, has_addresses = true, has_usage = ${start >= pairsFrom}, rolled_at = svc_now()
    where site_id = ${siteId} and start = ${at} and is_dirty
      and not exists (select from unjudged_minutes where site_id = ${siteId} and ${inSpans([span])}) returning 1`.execute(
    trx,
  );
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
    select ${at}, ${site}, ${key}, string_agg(pairs, ''::bytea) from name_pair_minutes where ${ofSite} group by ${key}`.execute(
    trx,
  );
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
    select ${start}, ${key}, sum(inbound_bytes), sum(outbound_bytes), sum(packets) from by_peer group by ${key}`.execute(
    trx,
  );
}

/** Deletes usage of the ten minutes of an hour that has been summed. */
export async function dropUsage(trx: Queryable, siteId: number, { from, to }: Span): Promise<void> {
  const within = sql`site_id = ${siteId} and start >= to_timestamp(${from}) and start < to_timestamp(${to})`;
  await sql`update rolled_tens set has_usage = false where ${within} and has_usage`.execute(trx);
  for (const table of ['usage_tens', 'pair_tens'])
    await sql`delete from ${sql.table(table)} where ${within}`.execute(trx);
}
