/** Reads of addresses, captures and sites. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { vantageOf } from '../contract/codes.ts';
import type * as facts from '../contract/facts.ts';
import { type Coverage, hourSeconds, inHours, inSpans } from './span-store.ts';

const seconds = (column: string) => sql`extract(epoch from ${sql.ref(column)})::float8`;
const within = (range: facts.SiteRange) =>
  sql`minute >= to_timestamp(${range.fromMinute}) and minute < to_timestamp(${range.toMinute})`;
/** Of a capture's rows of a minute: they are of the segment, or of none that is known. */
const ofSegment = (range: facts.AddressRange) =>
  range.segment === undefined ? sql`true` : sql`max(segment collate "C") in ('', ${range.segment})`;
const ofAddress = (range: facts.AddressRange) =>
  sql`site_id = ${range.siteId} and address = ${range.address}::inet`;
const atSegment = (range: facts.AddressRange) =>
  range.segment === undefined ? sql`true` : sql`segment = ${range.segment}`;

/** Every capture's row, the chosen one of each minute first. */
export async function explainAddress(
  db: Queryable,
  range: facts.AddressRange,
): Promise<Omit<facts.CaptureRow, 'reason'>[]> {
  const { rows } = await sql<Omit<facts.CaptureRow, 'reason' | 'role'> & { vantage: number }>`
    with strongest as (select distinct on (minute) minute, capture_id
      from strongest_host_minutes(${range.siteId}, to_timestamp(${range.fromMinute}), to_timestamp(${range.toMinute}))
      where address = ${range.address}::inet and ${atSegment(range)}
      order by minute, rx_bytes + tx_bytes desc, segment collate "C"),
    h as (select minute, capture_id, sum(rx_bytes)::float8 as rx, sum(tx_bytes)::float8 as tx, sum(packets)::float8 as packets,
        case when min(device_key) = max(device_key) then min(device_key) else '' end as device_key, is_foreign
      from host_minutes where ${ofAddress(range)} and ${within(range)}
      group by minute, capture_id, is_foreign having ${ofSegment(range)})
    select extract(epoch from h.minute)::float8 as minute, c.id as capture_id, c.sensor_id, c.name as capture,
      m.vantage, h.rx as rx_bytes, h.tx as tx_bytes, h.packets, h.device_key, m.observed_ms, m.kernel_dropped,
      m.parser_dropped, m.detail_truncated, m.merged_frames,
      s.capture_id is not null and not h.is_foreign as is_chosen, h.is_foreign
    from h join captures c on c.id = h.capture_id
    join capture_minutes m on m.site_id = ${range.siteId} and m.minute = h.minute and m.capture_id = h.capture_id
      and m.minute >= to_timestamp(${range.fromMinute}) and m.minute < to_timestamp(${range.toMinute})
    left join strongest s on s.minute = h.minute and s.capture_id = h.capture_id
    order by h.minute, (s.capture_id is null), h.is_foreign, h.rx + h.tx desc, c.sensor_id, c.name`.execute(
    db,
  );
  return rows.map(({ vantage, ...row }) => ({ ...row, role: vantageOf(vantage) }));
}

export async function listSpeakers(
  db: Queryable,
  siteId: number,
  asked: readonly facts.AddressMinute[],
): Promise<facts.Speaker[]> {
  if (asked.length === 0) return [];
  const minutes = asked.map(({ minute }) => minute);
  const bounds = { siteId, fromMinute: Math.min(...minutes), toMinute: Math.max(...minutes) + 60 };
  const { rows } = await sql<facts.Speaker>`
    select distinct host(a.address) as address, a.second as minute, h.capture_id
    from unnest(${asked.map(({ address }) => address)}::inet[], ${minutes}::float8[]) as a (address, second)
    join (select * from host_minutes where site_id = ${siteId} and ${within(bounds)} and not is_foreign) h
      on h.address = a.address and h.minute = to_timestamp(a.second)`.execute(db);
  return rows;
}

/** What sensors told of addresses that servers of other nodes had, the most bytes first. */
export async function listForeign(
  db: Queryable,
  range: facts.SiteRange & { sensorId: number | null },
  limit: number,
): Promise<facts.ForeignAddress[]> {
  const { rows } = await sql<facts.ForeignAddress>`
    select c.sensor_id, host(h.address) as address, count(distinct h.minute)::int as minutes,
      sum(h.rx_bytes)::float8 as rx_bytes, sum(h.tx_bytes)::float8 as tx_bytes, extract(epoch from max(h.minute))::float8 as last_minute
    from (select * from host_minutes where site_id = ${range.siteId} and ${within(range)} and is_foreign) h join captures c on c.id = h.capture_id
    where ${range.sensorId}::bigint is null or c.sensor_id = ${range.sensorId}
    group by 1, h.address
    order by sum(h.rx_bytes) + sum(h.tx_bytes) desc, 1, h.address limit ${limit}`.execute(db);
  return rows;
}

/** Whole hours serve steps of whole hours. */
export async function sumSite(
  db: Queryable,
  coverage: Coverage,
  range: facts.SiteRange & { stepSeconds: number },
): Promise<facts.SiteStep[]> {
  const step = range.stepSeconds;
  const hours = step % hourSeconds === 0 ? coverage.hours : [];
  const spans = hours.length === 0 ? [{ from: range.fromMinute, to: range.toMinute }] : coverage.spans;
  const { rows } = await sql<facts.SiteStep>`
    with pieces as (
      select hour as start, rx_bytes as rx, tx_bytes as tx, packets, addresses, minutes from site_hours
      where site_id = ${range.siteId} and ${inHours(hours)}
      union all
      select minute, rx_bytes, tx_bytes, packets, addresses, 1 from site_minutes
      where site_id = ${range.siteId} and ${inSpans(spans)})
    select floor(extract(epoch from start) / ${step}) * ${step * 1000}::float8 as time_ms,
      sum(rx)::float8 as rx_bytes, sum(tx)::float8 as tx_bytes, sum(packets)::float8 as packets,
      max(addresses) as addresses, sum(minutes)::int as minutes
    from pieces group by 1 order by 1`.execute(db);
  return rows;
}

export async function listCaptures(
  db: Queryable,
  siteId: number,
  sinceMinute: number,
): Promise<facts.CaptureFacts[]> {
  const { rows } = await sql<facts.CaptureFacts>`
    select c.id as capture_id, c.sensor_id, c.name, c.role,
      (select ${seconds('newest.minute')} from capture_minutes newest
        where newest.site_id = c.site_id and newest.capture_id = c.id and newest.minute <= svc_now()
        order by newest.minute desc limit 1) as newest_minute, coalesce(sum(m.packets), 0)::float8 as packets,
      coalesce(sum(m.kernel_dropped), 0)::float8 as kernel_dropped,
      coalesce(sum(m.parser_dropped), 0)::float8 as parser_dropped,
      coalesce(sum(m.detail_truncated), 0)::float8 as detail_truncated, coalesce(sum(m.observed_ms), 0)::float8 as observed_ms
    from captures c
    left join capture_minutes m on m.site_id = c.site_id and m.capture_id = c.id and m.minute >= to_timestamp(${sinceMinute})
    where c.site_id = ${siteId}
    group by c.id order by c.sensor_id, c.name collate "C"`.execute(db);
  return rows;
}

export async function listLosses(
  db: Queryable,
  fromMinute: number,
  toMinute: number,
): Promise<facts.CaptureLosses[]> {
  const { rows } = await sql<facts.CaptureLosses>`
    select c.id as capture_id, c.sensor_id, c.site_id, c.name, count(m.minute)::int as minutes,
      coalesce(sum(m.packets), 0)::float8 as packets, coalesce(sum(m.kernel_dropped), 0)::float8 as kernel_dropped,
      coalesce(sum(m.parser_dropped), 0)::float8 as parser_dropped
    from captures c
    left join capture_minutes m on m.site_id = c.site_id and m.capture_id = c.id
      and m.minute >= to_timestamp(${fromMinute}) and m.minute < to_timestamp(${toMinute})
    group by c.id`.execute(db);
  return rows;
}

export async function listOutages(db: Queryable, sinceMinute: number): Promise<facts.CaptureOutage[]> {
  const { rows } = await sql<facts.CaptureOutage>`
    select c.id as capture_id, c.sensor_id, c.site_id, c.name, c.role,
      (select extract(epoch from max(m.minute))::float8 from capture_minutes m where m.site_id = c.site_id and m.capture_id = c.id
        and m.minute >= to_timestamp(${sinceMinute}) and m.minute <= svc_now()) as newest_minute,
      (select extract(epoch from max(g.to_minute))::float8 from telemetry_gaps g where g.site_id = c.site_id and g.sensor_id = c.sensor_id
        and g.to_minute >= to_timestamp(${sinceMinute}) and g.reason = 'capture_failed'
        and g.capture in ('', c.name)) as failed_through
    from captures c order by c.sensor_id, c.name collate "C"`.execute(db);
  return rows;
}

export async function sumCollection(db: Queryable, range: facts.SiteRange): Promise<facts.Collection> {
  const { rows } = await sql<facts.Collection>`
    select count(*)::int as capture_minutes, coalesce(sum(packets), 0)::float8 as packets,
      coalesce(sum(kernel_dropped), 0)::float8 as kernel_dropped, coalesce(sum(parser_dropped), 0)::float8 as parser_dropped,
      coalesce(sum(detail_truncated), 0)::float8 as detail_truncated
    from capture_minutes where site_id = ${range.siteId} and ${within(range)}`.execute(db);
  return rows[0]!;
}

export async function newestMinutes(db: Queryable): Promise<Map<number, number>> {
  const { rows } = await sql<{ siteId: number; minute: number }>`
    select s.id as site_id, ${seconds('newest.minute')} as minute
    from (select distinct site_id as id from captures) s
    cross join lateral (select minute from site_minutes m where m.site_id = s.id and minute <= svc_now()
      order by minute desc limit 1) newest`.execute(db);
  return new Map(rows.map((row) => [row.siteId, row.minute]));
}
