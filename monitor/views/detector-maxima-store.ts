/**
 * The largest rates that detectors reported of one address. Three months are up to a quarter of a million rows of each
 * capture, so the statements read them once and return few.
 */
import { type RawBuilder, sql } from 'kysely';
import { metrics } from '#contracts/sensor-api/detection.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';

/** When a sensor may speak for the address: [fromMs, toMs). */
export interface SpokenPeriod {
  sensorId: number;
  fromMs: number;
  toMs: number;
  /** The sensor counted by an older rule. */
  isOlderRule: boolean;
}

export interface MaximaRange {
  siteId: number;
  /** Canonical text. */
  address: string;
  /** Of its sensors; other rows do not count. */
  periods: readonly SpokenPeriod[];
}

export interface Speaker {
  id: number;
  /** Since when it counts by the rule, seconds since 1970; null: not yet. */
  ruleSince: number | null;
}

/** The sensors of a site, also former ones, and the times at which the address may have changed its node, seconds since 1970. */
export async function listSpeakers(
  db: Queryable,
  siteId: number,
  address: string,
  countingRule: number,
): Promise<{ sensors: Speaker[]; changesAt: number[] }> {
  const { rows: sensors } = await sql<Speaker>`
    select s.id::float8 as id, extract(epoch from min(e.since))::float8 as "ruleSince"
    from sensors s left join detector_epochs e on e.sensor_id = s.id and e.counting_rule >= ${countingRule}
    where s.site_id = ${siteId} group by s.id order by s.id`.execute(db);
  const { rows } = await sql<{ at: number }>`
    select distinct extract(epoch from at)::float8 as at
    from vm_placements p cross join lateral (values (p.began_at), (p.ended_at)) t(at)
    where p.address = ${address}::inet and isfinite(at)`.execute(db);
  return { sensors, changesAt: rows.map(({ at }) => at) };
}

const reported = ({ siteId, address, periods }: MaximaRange) => {
  const [fromMs, toMs] = [
    Math.min(...periods.map((one) => one.fromMs)),
    Math.max(...periods.map((one) => one.toMs)),
  ];
  return sql`detector_addresses d join unnest(${periods.map((one) => one.sensorId)}::bigint[],
      ${periods.map((one) => one.fromMs / 1000)}::float8[], ${periods.map((one) => one.toMs / 1000)}::float8[],
      ${periods.map((one) => one.isOlderRule)}::boolean[])
      as spoken(sensor_id, from_second, to_second, is_older_rule) on spoken.sensor_id = d.sensor_id
      and d.minute >= to_timestamp(spoken.from_second) and d.minute < to_timestamp(spoken.to_second)
    where d.site_id = ${siteId} and d.address = ${address}::inet
      and d.minute >= to_timestamp(${fromMs / 1000}::float8) and d.minute < to_timestamp(${toMs / 1000}::float8)`;
};

/** Minutes with traffic: for each sensor those of the capture and direction that has most. */
export async function countMaxima(db: Queryable, range: MaximaRange): Promise<number> {
  if (range.periods.length === 0) return 0;
  const { rows } = await sql<{ minutes: number }>`
    with of_captures as (select d.sensor_id, count(*) as minutes from ${reported(range)}
        group by d.sensor_id, d.capture, d.is_outbound),
    of_sensors as (select max(minutes) as minutes from of_captures group by sensor_id)
    select coalesce(sum(minutes), 0)::int as minutes from of_sensors`.execute(db);
  return rows[0]!.minutes;
}

export interface LoudMaxima {
  /** Seconds since 1970. */
  minute: number;
  isOutbound: boolean;
  isOlderRule: boolean;
  /** By metric, in the order of the contract's `metrics`: strongest seconds, then strongest ten seconds. As text with spaces. */
  rates: string;
}

/** Least rates of one second by metric; null: the metric does not matter. */
export interface MaximaFloors {
  inbound: readonly (number | null)[];
  outbound: readonly (number | null)[];
}

/** Minutes in which any metric reaches its floor, in order of time. Text is read faster than arrays of the driver. */
export async function listLoudMaxima(
  db: Queryable,
  range: MaximaRange,
  floors: MaximaFloors,
): Promise<LoudMaxima[]> {
  if (range.periods.length === 0) return [];
  const isLoud = sql`case when d.is_outbound then ${anyReaches(floors.outbound)} else ${anyReaches(floors.inbound)} end`;
  const { rows } = await sql<LoudMaxima>`
    select extract(epoch from d.minute)::float8 as minute, d.is_outbound as "isOutbound",
      spoken.is_older_rule as "isOlderRule", array_to_string(d.one_second || d.ten_seconds, ' ') as rates
    from ${reported(range)} and ${isLoud} order by d.minute`.execute(db);
  return rows;
}

/** A comparison with null is no match. */
function anyReaches(floors: readonly (number | null)[]): RawBuilder<unknown> {
  const parts = metrics.map((_, i) => sql`d.one_second[${sql.lit(i + 1)}] >= ${floors[i] ?? null}::float8`);
  return sql`(${sql.join(parts, sql` or `)})`;
}

/**
 * The 99.9th percentile of the strongest seconds of some metrics of one direction (positions in `metrics`), over the minutes
 * of all captures; null without any. The largest thousandth is sorted, not everything.
 */
export async function readPercentilesOf(
  db: Queryable,
  range: MaximaRange,
  isOutbound: boolean,
  positions: readonly number[],
): Promise<(number | null)[]> {
  if (range.periods.length === 0 || positions.length === 0) return positions.map(() => null);
  const columns = positions.map(
    (position) => sql`d.one_second[${sql.lit(position + 1)}] as ${sql.ref(`p${position}`)}`,
  );
  const values = positions.map(
    (position) => sql`(select ${sql.ref(`p${position}`)}::float8 from seconds
      order by 1 desc offset (select rows / 1000 from counted) limit 1)`,
  );
  const { rows } = await sql<{ percentiles: (number | null)[] }>`
    with seconds as materialized (
      select ${sql.join(columns)} from ${reported(range)} and d.is_outbound = ${isOutbound}),
    counted as materialized (select count(*) as rows from seconds)
    select array[${sql.join(values)}] as percentiles`.execute(db);
  return rows[0]!.percentiles;
}

/** Addresses in these prefixes that a detector of the site reported in the last day. */
export async function listReportedAddresses(
  db: Queryable,
  siteId: number,
  prefixes: readonly string[],
): Promise<string[]> {
  const { rows } = await sql<{ address: string }>`
    select distinct host(d.address) as address from detector_addresses d
    where d.site_id = ${siteId} and d.minute >= svc_now() - interval '1 day' and d.minute <= svc_now()
      and d.address <<= any(${[...prefixes]}::inet[])
    order by 1`.execute(db);
  return rows.map((row) => row.address);
}
