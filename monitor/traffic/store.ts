/** The traffic tables. Minutes cross this border as seconds since 1970, sums as doubles (exact to 2^53). */
import { sql } from 'kysely';
import type { TelemetryMinute } from '#contracts/sensor-api/telemetry-codec.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { CaptureGap, Listening, Sighting } from './address-minute.ts';
import type { GapInput, Origin } from './index.ts';

const seconds = (column: string) => sql`extract(epoch from ${sql.ref(column)})::float8`;
const milliseconds = (column: string) => sql`(extract(epoch from ${sql.ref(column)}) * 1000)::float8`;
/** Counters stay where a double holds them exactly, whatever a sensor claims. */
const counterMax = sql.lit(Number.MAX_SAFE_INTEGER);
const sum = (table: string, column: string) =>
  sql`least(${sql.ref(`${table}.${column}`)} + ${sql.ref(`excluded.${column}`)}, ${counterMax})`;

/** Makes day partitions and remembers which exist, so that a steady stream asks once a day. */
export function createPartitionMaker(): {
  ensureDays(db: Queryable, minutes: readonly number[]): Promise<void>;
} {
  const known = new Set<number>();
  return {
    async ensureDays(db, minutes) {
      const days = new Set(minutes.map((minute) => Math.floor(minute / 86_400)));
      for (const day of days) {
        if (known.has(day)) continue;
        await sql`select ensure_fact_partition(parent, to_timestamp(${day * 86_400}), interval '1 day')
          from unnest(array['capture_minutes', 'host_minutes']) as parent`.execute(db);
        // A month-old entry may have been dropped by retention; forgetting it costs one look.
        if (known.size > 8) known.clear();
        known.add(day);
      }
    },
  };
}

/** Ids of a sensor's captures, made where they are new. */
export async function ensureCaptures(
  trx: Queryable,
  origin: Origin,
  roles: ReadonlyMap<string, string>,
): Promise<Map<string, number>> {
  const names = [...roles.keys()];
  const { rows } = await sql<{ id: number; name: string; role: string }>`
    select id, name, role from captures where sensor_id = ${origin.sensorId} and name = any(${names})`.execute(
    trx,
  );
  const changed = names.filter(
    (name) => !rows.some((row) => row.name === name && row.role === roles.get(name)),
  );
  if (changed.length > 0) {
    const made = await sql<{ id: number; name: string; role: string }>`
      insert into captures (site_id, sensor_id, name, role)
      select ${origin.siteId}::bigint, ${origin.sensorId}::bigint, name, role
      from unnest(${changed}::text[], ${changed.map((name) => roles.get(name)!)}::text[]) as given (name, role)
      on conflict (sensor_id, name) do update set role = excluded.role
      returning id, name, role`.execute(trx);
    rows.push(...made.rows);
  }
  return new Map(rows.map((row) => [row.name, row.id]));
}

/** Adds captures' totals; a window that arrives in several uploads adds up (NET-2.2.9). */
export async function addCaptureMinutes(
  trx: Queryable,
  siteId: number,
  minutes: readonly TelemetryMinute[],
  captureOf: (minute: TelemetryMinute) => number,
): Promise<void> {
  const total = (read: (minute: TelemetryMinute) => number) => minutes.map(read);
  await sql`
    insert into capture_minutes (site_id, minute, capture_id, observed_ms, packets, ip_packets, ip_bytes, non_ip_packets,
      parser_dropped, kernel_dropped, detail_truncated, merged_frames)
    select ${siteId}::bigint, to_timestamp(minute), capture_id, observed_ms, packets, ip_packets, ip_bytes, non_ip_packets,
      parser_dropped, kernel_dropped, detail_truncated, merged_frames
    from unnest(${total((m) => m.minute)}::float8[], ${total(captureOf)}::bigint[], ${total((m) => m.observedMs)}::int[],
      ${total((m) => m.totals.packets)}::bigint[], ${total((m) => m.totals.ipPackets)}::bigint[],
      ${total((m) => m.totals.ipBytes)}::bigint[], ${total((m) => m.totals.nonIpPackets)}::bigint[],
      ${total((m) => m.totals.parserDropped)}::bigint[], ${total((m) => m.totals.kernelDropped)}::bigint[],
      ${total((m) => m.totals.detailTruncated)}::bigint[], ${total((m) => m.totals.mergedFrames ?? 0)}::bigint[])
      as given (minute, capture_id, observed_ms, packets, ip_packets, ip_bytes, non_ip_packets, parser_dropped,
        kernel_dropped, detail_truncated, merged_frames)
    on conflict (site_id, minute, capture_id) do update set
      observed_ms = least(capture_minutes.observed_ms + excluded.observed_ms, 60000),
      packets = ${sum('capture_minutes', 'packets')}, ip_packets = ${sum('capture_minutes', 'ip_packets')},
      ip_bytes = ${sum('capture_minutes', 'ip_bytes')}, non_ip_packets = ${sum('capture_minutes', 'non_ip_packets')},
      parser_dropped = ${sum('capture_minutes', 'parser_dropped')},
      kernel_dropped = ${sum('capture_minutes', 'kernel_dropped')},
      detail_truncated = ${sum('capture_minutes', 'detail_truncated')},
      merged_frames = ${sum('capture_minutes', 'merged_frames')}`.execute(trx);
}

/**
 * Adds one capture minute's host counters. Contributions that disagree about the owner, or do not know it, clear the
 * device key: usage is never attached to a guess (NET-2.2.9).
 */
export async function addHostMinutes(
  trx: Queryable,
  siteId: number,
  captureId: number,
  minute: TelemetryMinute,
): Promise<void> {
  const { hosts } = minute;
  await sql`
    insert into host_minutes (site_id, minute, capture_id, address, rx_bytes, tx_bytes, packets, device_key)
    select ${siteId}::bigint, to_timestamp(${minute.minute}::float8), ${captureId}::bigint, address, rx_bytes, tx_bytes, packets, device_key
    from unnest(${hosts.map((host) => host.address)}::inet[], ${hosts.map((host) => host.rxBytes)}::bigint[],
      ${hosts.map((host) => host.txBytes)}::bigint[], ${hosts.map((host) => host.packets)}::bigint[],
      ${hosts.map((host) => host.deviceKey)}::text[]) as given (address, rx_bytes, tx_bytes, packets, device_key)
    on conflict (site_id, address, minute, capture_id) do update set
      rx_bytes = ${sum('host_minutes', 'rx_bytes')}, tx_bytes = ${sum('host_minutes', 'tx_bytes')},
      packets = ${sum('host_minutes', 'packets')},
      device_key = case when host_minutes.device_key = excluded.device_key then excluded.device_key else '' end`.execute(
    trx,
  );
}

export async function insertGaps(trx: Queryable, origin: Origin, gaps: readonly GapInput[]): Promise<void> {
  if (gaps.length === 0) return;
  await sql`
    insert into telemetry_gaps (site_id, sensor_id, capture, from_minute, to_minute, reason)
    select ${origin.siteId}::bigint, ${origin.sensorId}::bigint, capture, to_timestamp(from_minute), to_timestamp(to_minute), reason
    from unnest(${gaps.map((gap) => gap.capture)}::text[], ${gaps.map((gap) => gap.fromMinute)}::float8[],
      ${gaps.map((gap) => gap.toMinute)}::float8[], ${gaps.map((gap) => gap.reason)}::text[])
      as given (capture, from_minute, to_minute, reason)`.execute(trx);
}

export async function markSiteMinutes(
  trx: Queryable,
  siteId: number,
  minutes: readonly number[],
): Promise<void> {
  await sql`insert into site_minute_marks (site_id, minute)
    select ${siteId}::bigint, to_timestamp(minute) from unnest(${[...minutes]}::float8[]) as minute`.execute(
    trx,
  );
}

export async function hasMarks(db: Queryable): Promise<boolean> {
  return (await sql`select 1 from site_minute_marks limit 1`.execute(db)).rows.length > 0;
}

/** Lets one roll-up run at a time, until the transaction ends. */
export async function lockRollUp(trx: Queryable): Promise<void> {
  await sql`select pg_advisory_xact_lock(7318102)`.execute(trx);
}

/** Takes up to `limit` committed marks away. */
export async function takeMarks(
  trx: Queryable,
  limit: number,
): Promise<{ siteId: number; minute: number }[]> {
  const { rows } = await sql<{ siteId: number; minute: number }>`
    delete from site_minute_marks where id in (select id from site_minute_marks order by id limit ${limit})
    returning site_id as "siteId", ${seconds('minute')} as minute`.execute(trx);
  return rows;
}

/** A minute in which captures listened and saw no address is a row of zeros: observed, and quiet. */
export async function recomputeSiteMinutes(
  trx: Queryable,
  marks: readonly { siteId: number; minute: number }[],
): Promise<void> {
  await sql`
    insert into site_minutes (site_id, minute, rx_bytes, tx_bytes, packets, addresses)
    select marked.site_id, marked.minute, least(coalesce(sum(seen.rx_bytes), 0), ${counterMax}),
      least(coalesce(sum(seen.tx_bytes), 0), ${counterMax}), least(coalesce(sum(seen.packets), 0), ${counterMax}), count(seen.address)
    from (select distinct site_id, to_timestamp(minute) as minute
      from unnest(${marks.map((mark) => mark.siteId)}::bigint[], ${marks.map((mark) => mark.minute)}::float8[])
        as given (site_id, minute)) marked
    left join lateral strongest_host_minutes(marked.site_id, marked.minute, marked.minute + interval '1 minute')
      seen on true
    group by marked.site_id, marked.minute
    on conflict (site_id, minute) do update set rx_bytes = excluded.rx_bytes, tx_bytes = excluded.tx_bytes,
      packets = excluded.packets, addresses = excluded.addresses`.execute(trx);
}

interface AddressRange {
  siteId: number;
  address: string;
  fromMinute: number;
  toMinute: number;
}

export async function findSightings(db: Queryable, range: AddressRange): Promise<Sighting[]> {
  const { rows } = await sql<Sighting>`
    select ${seconds('minute')} as minute, capture_id as "captureId", rx_bytes as "rxBytes", tx_bytes as "txBytes",
      case when exists (select 1 from capture_minutes merged where merged.site_id = ${range.siteId}
          and merged.minute = strongest.minute and merged.capture_id = strongest.capture_id and merged.merged_frames > 0)
        then null else packets end as packets,
      observed_ms as "observedMs", coverage
    from strongest_host_minutes(${range.siteId}, to_timestamp(${range.fromMinute}), to_timestamp(${range.toMinute})) strongest
    where address = ${range.address}::inet
    order by minute`.execute(db);
  return rows;
}

export async function findCapturesSeen(
  db: Queryable,
  range: AddressRange,
): Promise<{ minute: number; captureId: number }[]> {
  const { rows } = await sql<{ minute: number; captureId: number }>`
    select ${seconds('minute')} as minute, capture_id as "captureId" from host_minutes
    where site_id = ${range.siteId} and address = ${range.address}::inet
      and minute >= to_timestamp(${range.fromMinute}) and minute < to_timestamp(${range.toMinute})`.execute(
    db,
  );
  return rows;
}

/** The captures that saw the address in its last minute before the range, at most a day earlier. */
export async function findLastCaptures(db: Queryable, range: AddressRange): Promise<number[]> {
  const { rows } = await sql<{ captureId: number }>`
    select capture_id as "captureId" from host_minutes
    where site_id = ${range.siteId} and address = ${range.address}::inet and minute = (
      select minute from host_minutes
      where site_id = ${range.siteId} and address = ${range.address}::inet
        and minute < to_timestamp(${range.fromMinute}) and minute >= to_timestamp(${range.fromMinute}) - interval '1 day'
      order by minute desc limit 1)`.execute(db);
  return rows.map((row) => row.captureId);
}

interface CapturesRange {
  siteId: number;
  captureIds: readonly number[];
  fromMinute: number;
  toMinute: number;
}

export async function findListening(db: Queryable, range: CapturesRange): Promise<Listening[]> {
  const { rows } = await sql<Listening>`
    select ${seconds('minute')} as minute, capture_id as "captureId", observed_ms as "observedMs",
      case when parser_dropped > 0 then null
        else observed_ms / 60000.0::float8 * coalesce(packets::float8 / nullif(packets + kernel_dropped, 0), 1) end as coverage
    from capture_minutes
    where site_id = ${range.siteId} and capture_id = any(${[...range.captureIds]}::bigint[])
      and minute >= to_timestamp(${range.fromMinute}) and minute < to_timestamp(${range.toMinute})`.execute(
    db,
  );
  return rows;
}

/** Gap rows by the captures that they name; a blank name means every capture of the sensor. */
export async function findCaptureGaps(db: Queryable, range: CapturesRange): Promise<CaptureGap[]> {
  const { rows } = await sql<CaptureGap>`
    select c.id as "captureId", ${seconds('g.from_minute')} as "fromMinute", ${seconds('g.to_minute')} as "toMinute"
    from telemetry_gaps g join captures c on c.sensor_id = g.sensor_id and (g.capture = '' or g.capture = c.name)
    where g.site_id = ${range.siteId} and c.id = any(${[...range.captureIds]}::bigint[])
      and g.to_minute >= to_timestamp(${range.fromMinute}) and g.from_minute < to_timestamp(${range.toMinute})`.execute(
    db,
  );
  return rows;
}

export interface SiteStep {
  timeMs: number;
  rxBytes: number;
  txBytes: number;
  packets: number;
  addresses: number;
  minutes: number;
}

export async function sumSiteMinutes(
  db: Queryable,
  range: { siteId: number; fromMs: number; toMs: number; stepSeconds: number },
): Promise<SiteStep[]> {
  const step = range.stepSeconds;
  const { rows } = await sql<SiteStep>`
    select floor(extract(epoch from minute) / ${step}) * ${step * 1000}::float8 as "timeMs",
      sum(rx_bytes)::float8 as "rxBytes", sum(tx_bytes)::float8 as "txBytes", sum(packets)::float8 as packets,
      max(addresses) as addresses, count(*)::int as minutes
    from site_minutes
    where site_id = ${range.siteId} and minute >= to_timestamp(${range.fromMs / 1000}) and minute < to_timestamp(${range.toMs / 1000})
    group by 1 order by 1`.execute(db);
  return rows;
}

export interface TopAddress {
  address: string;
  rxBytes: number;
  txBytes: number;
  packets: number;
  lastSeenMinute: number;
}

export async function listTopAddresses(
  db: Queryable,
  siteId: number,
  fromMs: number,
  toMs: number,
  limit: number,
): Promise<TopAddress[]> {
  const { rows } = await sql<TopAddress>`
    select host(address) as address, sum(rx_bytes)::float8 as "rxBytes", sum(tx_bytes)::float8 as "txBytes",
      sum(packets)::float8 as packets, extract(epoch from max(minute))::float8 as "lastSeenMinute"
    from strongest_host_minutes(${siteId}, to_timestamp(${fromMs / 1000}), to_timestamp(${toMs / 1000}))
    group by address order by sum(rx_bytes) + sum(tx_bytes) desc, address limit ${limit}`.execute(db);
  return rows;
}

export interface GapRow {
  sensorId: number;
  hostName: string;
  /** Blank: every capture of the sensor. */
  capture: string;
  fromMinute: number;
  toMinute: number;
  reason: string;
}

export async function listGaps(
  db: Queryable,
  siteId: number,
  fromMs: number,
  toMs: number,
  limit: number,
): Promise<GapRow[]> {
  const { rows } = await sql<GapRow>`
    select g.sensor_id as "sensorId", s.host_name as "hostName", g.capture, g.reason,
      ${seconds('g.from_minute')} as "fromMinute", ${seconds('g.to_minute')} as "toMinute"
    from telemetry_gaps g join sensors s on s.id = g.sensor_id
    where g.site_id = ${siteId} and g.to_minute >= to_timestamp(${fromMs / 1000}) and g.from_minute < to_timestamp(${toMs / 1000})
    order by g.to_minute desc, g.id desc limit ${limit}`.execute(db);
  return rows;
}

export interface CaptureState {
  captureId: number;
  sensorId: number;
  hostName: string;
  name: string;
  role: 'uplink' | 'bridge';
  newestMinute: number | null;
  /** Of the last hour. */
  packets: number;
  kernelDropped: number;
  parserDropped: number;
  detailTruncated: number;
  observedMs: number;
}

export async function listCaptures(db: Queryable, siteId: number): Promise<CaptureState[]> {
  const { rows } = await sql<CaptureState>`
    select c.id as "captureId", c.sensor_id as "sensorId", s.host_name as "hostName", c.name, c.role,
      (select ${seconds('newest.minute')} from capture_minutes newest
        where newest.site_id = c.site_id and newest.capture_id = c.id
        order by newest.minute desc limit 1) as "newestMinute",
      coalesce(sum(m.packets), 0)::float8 as packets, coalesce(sum(m.kernel_dropped), 0)::float8 as "kernelDropped",
      coalesce(sum(m.parser_dropped), 0)::float8 as "parserDropped",
      coalesce(sum(m.detail_truncated), 0)::float8 as "detailTruncated", coalesce(sum(m.observed_ms), 0)::float8 as "observedMs"
    from captures c join sensors s on s.id = c.sensor_id
    left join capture_minutes m on m.site_id = c.site_id and m.capture_id = c.id
      and m.minute >= date_trunc('minute', svc_now()) - interval '1 hour'
    where c.site_id = ${siteId} and s.revoked_at is null
    group by c.id, s.id order by s.host_name, c.role desc, c.name`.execute(db);
  return rows;
}

/** What all captures of a site collected and lost in a range. */
export interface Collection {
  captureMinutes: number;
  packets: number;
  kernelDropped: number;
  parserDropped: number;
  detailTruncated: number;
}

export async function sumCollection(
  db: Queryable,
  siteId: number,
  fromMs: number,
  toMs: number,
): Promise<Collection> {
  const { rows } = await sql<Collection>`
    select count(*)::int as "captureMinutes", coalesce(sum(packets), 0)::float8 as packets,
      coalesce(sum(kernel_dropped), 0)::float8 as "kernelDropped", coalesce(sum(parser_dropped), 0)::float8 as "parserDropped",
      coalesce(sum(detail_truncated), 0)::float8 as "detailTruncated"
    from capture_minutes
    where site_id = ${siteId} and minute >= to_timestamp(${fromMs / 1000}) and minute < to_timestamp(${toMs / 1000})`.execute(
    db,
  );
  return rows[0]!;
}

export async function newestMinutes(db: Queryable): Promise<Map<number, number>> {
  const { rows } = await sql<{ siteId: number; minuteMs: number }>`
    select s.id as "siteId", ${milliseconds('newest.minute')} as "minuteMs" from sites s
    cross join lateral (select minute from site_minutes m where m.site_id = s.id order by minute desc limit 1) newest`.execute(
    db,
  );
  return new Map(rows.map((row) => [row.siteId, row.minuteMs]));
}
