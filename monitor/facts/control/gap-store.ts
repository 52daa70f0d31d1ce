/** Gaps, which are kept in PostgreSQL whichever engine stores the facts. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type * as facts from '../contract/facts.ts';

const seconds = (column: string) => sql`extract(epoch from ${sql.ref(column)})::float8`;

/** Adds the uploads' gaps. */
export async function insertGaps(trx: Queryable, uploads: readonly facts.FactUpload[]): Promise<void> {
  const gaps = uploads.flatMap(({ origin, gaps }) =>
    gaps.map((gap): facts.FactOrigin & facts.GapInput => ({ ...origin, ...gap })),
  );
  if (gaps.length === 0) return;
  await sql`
    insert into telemetry_gaps (site_id, sensor_id, capture, from_minute, to_minute, reason)
    select site_id, sensor_id, capture, to_timestamp(from_minute), to_timestamp(to_minute), reason
    from unnest(${gaps.map((gap) => gap.siteId)}::bigint[], ${gaps.map((gap) => gap.sensorId)}::bigint[],
      ${gaps.map((gap) => gap.capture)}::text[], ${gaps.map((gap) => gap.fromMinute)}::float8[],
      ${gaps.map((gap) => gap.toMinute)}::float8[], ${gaps.map((gap) => gap.reason)}::text[])
      as given (site_id, sensor_id, capture, from_minute, to_minute, reason)`.execute(trx);
}

/** Gaps that touch the range, newest first. One that the parts of a minute name each is one. */
export async function listGaps(
  db: Queryable,
  range: facts.SiteRange,
  limit: number,
): Promise<facts.GapFact[]> {
  const { rows } = await sql<facts.GapFact>`
    select distinct sensor_id, capture, reason, ${seconds('from_minute')} as from_minute,
      ${seconds('to_minute')} as to_minute
    from telemetry_gaps
    where site_id = ${range.siteId} and to_minute >= to_timestamp(${range.fromMinute})
      and from_minute < to_timestamp(${range.toMinute})
    order by to_minute desc, from_minute desc, sensor_id, capture, reason limit ${limit}`.execute(db);
  return rows;
}

/** Rows by the place of their range. */
export function byRange<T extends { n: number }>(rows: readonly T[]): Map<number, Omit<T, 'n'>[]> {
  const found = new Map<number, Omit<T, 'n'>[]>();
  for (const { n, ...row } of rows) {
    const held = found.get(n);
    if (held) held.push(row);
    else found.set(n, [row]);
  }
  return found;
}

/** The captures of each range as rows `k`. */
export function capturesOf(ranges: readonly facts.AddressRange[], captures: readonly (readonly number[])[]) {
  const pairs = captures.flatMap((ids, n) => ids.map((id) => ({ n, id, range: ranges[n]! })));
  return sql`(
    select n, capture_id, site_id, address, to_timestamp(from_second) as from_minute, to_timestamp(to_second) as to_minute, segment
    from unnest(${pairs.map((one) => one.n)}::int[], ${pairs.map((one) => one.id)}::bigint[],
      ${pairs.map((one) => one.range.siteId)}::bigint[], ${pairs.map((one) => one.range.address)}::inet[],
      ${pairs.map((one) => one.range.fromMinute)}::float8[], ${pairs.map((one) => one.range.toMinute)}::float8[],
      ${pairs.map((one) => one.range.segment ?? '')}::text[])
      as r(n, capture_id, site_id, address, from_second, to_second, segment)) k`;
}

/** Gap rows by the captures that they name; a blank name means every capture of the sensor. */
export async function findCaptureGaps(
  db: Queryable,
  ranges: readonly facts.AddressRange[],
  captures: readonly (readonly number[])[],
) {
  const { rows } = await sql<facts.CaptureGap & { n: number }>`
    select k.n, c.id as capture_id, ${seconds('g.from_minute')} as from_minute, ${seconds('g.to_minute')} as to_minute,
      g.reason
    from ${capturesOf(ranges, captures)} join captures c on c.id = k.capture_id
    join telemetry_gaps g on g.site_id = k.site_id and c.sensor_id = g.sensor_id and (g.capture = '' or g.capture = c.name)
      and g.to_minute >= k.from_minute and g.from_minute < k.to_minute
    order by 1, 2, 3, 4, g.reason collate "C"`.execute(db);
  return byRange(rows);
}

// When captures may not say that an address was silent.

interface SilentSpan {
  n: number;
  captureId: number;
  /** Seconds; infinite where the place has no end. */
  fromSecond: number;
  toSecond: number;
}

/** When captures may not say that an address was silent: a server of another node had it, or one of its own may have left. */
export async function findPlaces(
  db: Queryable,
  ranges: readonly facts.AddressRange[],
  captures: readonly (readonly number[])[],
  certainUntil: string,
): Promise<Map<number, Omit<SilentSpan, 'n'>[]>> {
  const { rows } = await sql<SilentSpan>`
    select k.n, k.capture_id, extract(epoch from p.ended_at)::float8 as to_second,
      extract(epoch from case when p.speaks then greatest(p.began_at, ${certainUntil}::timestamptz)
        else p.began_at end)::float8 as from_second
    from ${capturesOf(ranges, captures)} join captures c on c.id = k.capture_id
    cross join lateral address_placements(c.sensor_id, k.address) p
    where (p.is_unique or p.segment = '' or k.segment in ('', p.segment))
      and (not p.speaks or p.is_open)`.execute(db);
  return byRange(rows);
}
