/**
 * What is known of addresses in ranges of minutes, many at once.
 *
 * Every statement takes all ranges together: planning one of them over the days' partitions costs more than its rows do, and
 * delivery asks for a hundred ranges a tick.
 */
import { type RawBuilder, sql } from 'kysely';
import { readCertainUntil } from '#monitor/views/server-history-store.ts';
import { inTransaction, type Queryable } from '#service-kit/postgres/index.ts';
import { directionOf, evidenceOf } from '../contract/codes.ts';
import * as facts from '../contract/facts.ts';
import { byRange, capturesOf, findCaptureGaps } from '../control/gap-store.ts';
import { preferHashing } from './span-store.ts';

/** An inventory that is older than this is taken as it is. */
const inventoryStaleSeconds = 900;

const seconds = (column: string) => sql`extract(epoch from ${sql.ref(column)})::float8`;

/** The ranges as rows `q` of a statement; `n` is the place in the list, from 0. */
function rowsOf(ranges: readonly facts.AddressRange[]): RawBuilder<unknown> {
  return sql`(
    select (n - 1)::int as n, site_id, address, to_timestamp(from_second) as from_minute, to_timestamp(to_second) as to_minute, segment
    from unnest(${ranges.map((one) => one.siteId)}::bigint[], ${ranges.map((one) => one.address)}::inet[],
      ${ranges.map((one) => one.fromMinute)}::float8[], ${ranges.map((one) => one.toMinute)}::float8[],
      ${ranges.map((one) => one.segment ?? null)}::text[]) with ordinality as r(site_id, address, from_second, to_second, segment, n)) q`;
}

/** Of a capture's rows of a minute: they are of the segment that is asked for, or of none that is known. */
const ofSegment = sql`(q.segment is null or max(h.segment collate "C") in ('', q.segment))`;

/** In the order of the ranges. */
export async function readAddresses(
  db: Queryable,
  ranges: readonly facts.AddressRange[],
): Promise<facts.AddressFacts[]> {
  if (ranges.length === 0) return [];
  const [sightings, seen, known] = await Promise.all([
    findSightings(db, ranges),
    findSeen(db, ranges),
    findLastCaptures(db, ranges),
  ]);
  const captures = ranges.map((_, n) => [
    ...new Set([...(known.get(n) ?? []), ...(seen.get(n) ?? [])].map((row) => row.captureId)),
  ]);
  const [listening, gaps] = await Promise.all([
    findListening(db, ranges, captures),
    findCaptureGaps(db, ranges, captures),
  ]);
  return ranges.map((_, n) => ({
    sightings: sightings.get(n) ?? [],
    seen: seen.get(n) ?? [],
    knownCaptures: (known.get(n) ?? []).map((row) => row.captureId),
    listening: listening.get(n) ?? [],
    gaps: gaps.get(n) ?? [],
  }));
}

/** A longer range is read by itself. */
const togetherSeconds = 6 * 3600;

async function findSightings(db: Queryable, ranges: readonly facts.AddressRange[]) {
  const isLong = ({ fromMinute, toMinute }: facts.AddressRange) => toMinute - fromMinute > togetherSeconds;
  const short = [...ranges.entries()].filter(([, one]) => !isLong(one));
  const found = new Map<number, facts.Sighting[]>();
  if (short.length > 0) {
    const { rows } = await sql<SightingRow & { n: number }>`
      select q.n, s.* from ${rowsOf(short.map(([, one]) => one))} cross join lateral (${sightingsOf({
        ...{ siteId: sql`q.site_id`, address: sql`q.address`, segment: sql`q.segment` },
        ...{ from: sql`q.from_minute`, to: sql`q.to_minute` },
      })}) s order by q.n, s.minute`.execute(db);
    for (const [n, seen] of byRange(rows)) found.set(short[n]![0], seen.map(toSighting));
  }
  for (const [n, range] of ranges.entries())
    if (isLong(range)) found.set(n, await findLongSightings(db, range));
  return found;
}

/** Where it is not known that there are many minutes, PostgreSQL would compare each with every other. */
function findLongSightings(db: Queryable, range: facts.AddressRange): Promise<facts.Sighting[]> {
  const { siteId, address, segment, fromMinute, toMinute } = range;
  return inTransaction(db, async (trx) => {
    await preferHashing(trx);
    const { rows } = await sightingsOf({
      ...{
        siteId: sql`${siteId}::bigint`,
        address: sql`${address}::inet`,
        segment: sql`${segment ?? null}::text`,
      },
      ...{ from: sql`to_timestamp(${fromMinute}::float8)`, to: sql`to_timestamp(${toMinute}::float8)` },
    }).execute(trx);
    return rows.map(toSighting);
  });
}

interface SightingRow extends Omit<facts.Sighting, 'ownScan' | 'dropped'> {
  ownScanRxBytes: number;
  ownScanTxBytes: number;
  ownScanPackets: number;
  dropped: facts.FilteredTraffic | null;
}

const toSighting = ({
  ownScanRxBytes,
  ownScanTxBytes,
  ownScanPackets,
  dropped,
  ...sighting
}: SightingRow): facts.Sighting => ({
  ...sighting,
  ...facts.ownScanOf(ownScanRxBytes, ownScanTxBytes, ownScanPackets),
  ...(dropped && { dropped }),
});

/** What counts of an address, by minute. */
function sightingsOf(of: Record<'siteId' | 'address' | 'segment' | 'from' | 'to', RawBuilder<unknown>>) {
  return sql<SightingRow>`
    select distinct on (s.minute) ${seconds('s.minute')} as minute, capture_id, rx_bytes, tx_bytes,
      case when merged_frames = 0 then packets end as packets, observed_ms, coverage, own_scan_rx_bytes,
      own_scan_tx_bytes, own_scan_packets,
      case when dropped_rx_packets + dropped_tx_packets > 0 then json_build_object('rxBytes', dropped_rx_bytes,
        'txBytes', dropped_tx_bytes, 'rxPackets', dropped_rx_packets, 'txPackets', dropped_tx_packets,
        'countedBytes', dropped_counted_bytes, 'countedPackets', dropped_counted_packets) end as dropped
    from strongest_host_minutes(${of.siteId}, ${of.from}, ${of.to}) s
    where s.address = ${of.address} and (${of.segment} is null or s.segment = ${of.segment})
    order by s.minute, rx_bytes + tx_bytes desc, s.segment collate "C"`;
}

async function findSeen(db: Queryable, ranges: readonly facts.AddressRange[]) {
  const { rows } = await sql<{ n: number; minute: number; captureId: number }>`
    select q.n, s.* from ${rowsOf(ranges)} cross join lateral (
      select ${seconds('h.minute')} as minute, capture_id from host_minutes h
      where h.site_id = q.site_id and h.address = q.address and not h.is_foreign
        and h.minute >= q.from_minute and h.minute < q.to_minute
      group by h.minute, capture_id having ${ofSegment}) s
    order by 1, 2, 3`.execute(db);
  return byRange(rows);
}

async function findLastCaptures(db: Queryable, ranges: readonly facts.AddressRange[]) {
  const { rows } = await sql<{ n: number; captureId: number }>`
    select q.n, c.capture_id from ${rowsOf(ranges)}
    cross join lateral (
      select h.minute from host_minutes h
      where h.site_id = q.site_id and h.address = q.address and not h.is_foreign
        and h.minute < q.from_minute and h.minute >= q.from_minute - interval '1 day'
      group by h.minute, capture_id having ${ofSegment} order by h.minute desc limit 1) last
    cross join lateral (
      select capture_id from host_minutes h
      where h.site_id = q.site_id and h.address = q.address and not h.is_foreign and h.minute = last.minute
      group by capture_id having ${ofSegment}) c
    order by 1, 2`.execute(db);
  return byRange(rows);
}

/**
 * Minutes in which these captures listened and may say that the address was silent: those in which its server was on
 * their node and on no other. Where it is now is certain up to the listing that was imported last; after that one the
 * next is waited for, unless the inventory is old.
 */
async function findListening(
  db: Queryable,
  ranges: readonly facts.AddressRange[],
  captures: readonly (readonly number[])[],
) {
  // Read before: an import in between makes places newer than this time, which is then too early and never too late.
  const certainUntil = await readCertainUntil(db, inventoryStaleSeconds);
  const { rows } = await sql<facts.Listening & { n: number }>`
    with placements as materialized (
      select k.n, k.capture_id, p.began_at, p.ended_at, p.is_open, p.speaks
      from ${capturesOf(ranges, captures)} join captures c on c.id = k.capture_id
      cross join lateral address_placements(c.sensor_id, k.address) p
      where p.is_unique or p.segment = '' or k.segment in ('', p.segment))
    select k.n, m.*
    from ${capturesOf(ranges, captures)} cross join lateral (
      select ${seconds('m.minute')} as minute, m.capture_id, m.observed_ms,
        case when m.parser_dropped > 0 then null
          else m.observed_ms / 60000.0::float8 * coalesce(m.packets::float8 / nullif(m.packets + m.kernel_dropped, 0), 1) end as coverage
      from capture_minutes m
      where m.site_id = k.site_id and m.capture_id = k.capture_id and m.minute >= k.from_minute and m.minute < k.to_minute
        and not exists (select 1 from placements p where p.n = k.n and p.capture_id = k.capture_id
          and p.began_at < m.minute + interval '1 minute' and p.ended_at > m.minute
          and (not p.speaks or p.is_open and m.minute + interval '1 minute' > ${certainUntil}::timestamptz))) m
    order by k.n, minute, capture_id`.execute(db);
  return byRange(rows);
}

/**
 * What each address used and hosted over the Internet, in the order of the ranges: of each minute and direction one capture
 * counts, the uplink where it saw bytes, else the strongest. Null where there are more rows than `rowsMax`.
 */
export async function readAddressesApplications(
  db: Queryable,
  ranges: readonly facts.AddressRange[],
  rowsMax: number | null,
): Promise<facts.AddressApplication[][] | null> {
  if (ranges.length === 0) return [];
  const { rows } = await sql<
    Omit<facts.AddressApplication, 'direction' | 'evidence'> & {
      n: number;
      direction: number;
      evidence: number;
    }
  >`
    with f as materialized (
      select q.n, f.* from ${rowsOf(ranges)} join application_facts f
        on f.site_id = q.site_id and f.local_address = q.address and f.direction in (1, 2) and not f.is_foreign
        and (q.segment is null or f.segment in ('', q.segment)) and f.minute >= q.from_minute and f.minute < q.to_minute),
    owners as (
      select distinct on (n, minute, direction) n, minute, direction, capture_id
      from (select n, minute, direction, capture_id, vantage, sum(inbound_bytes + outbound_bytes) as bytes
        from f group by n, minute, direction, capture_id, vantage) seen join captures c on c.id = capture_id
      order by n, minute, direction, (vantage = 1 and bytes > 0) desc, bytes desc, c.sensor_id, c.name collate "C")
    select f.n, ${seconds('f.minute')} as minute, f.direction, f.name, f.protocol, f.server_port,
      max(f.evidence) as evidence, bool_or(f.is_attributed) as is_attributed,
      sum(f.inbound_bytes)::float8 as inbound_bytes, sum(f.outbound_bytes)::float8 as outbound_bytes,
      (extract(epoch from max(f.last_sent_at)) * 1000)::float8 as last_sent_ms
    from f join owners using (n, minute, direction, capture_id)
    group by f.n, f.minute, f.direction, f.name, f.protocol, f.server_port
    order by f.n, f.minute, f.direction = 1, f.name collate "C", f.protocol, f.server_port
    limit ${rowsMax === null ? null : rowsMax + 1}`.execute(db);
  if (rowsMax !== null && rows.length > rowsMax) return null;
  const found = byRange(rows);
  return ranges.map((_, n) =>
    (found.get(n) ?? []).map((row) => ({
      ...row,
      direction: directionOf(row.direction) as 'outbound' | 'inbound',
      evidence: evidenceOf(row.evidence),
    })),
  );
}
