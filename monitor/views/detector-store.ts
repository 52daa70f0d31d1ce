/** What detectors said of addresses: their minutes beside the captures that counted, the largest rates, and what they protect. */
import { type RawBuilder, sql } from 'kysely';
import { metrics } from '#contracts/sensor-api/detection.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';

/** A capture that told of an address in a minute and may speak for it, by the facts. */
export interface Speaker {
  address: string;
  minute: number;
  captureId: number;
}

/** A minute of an address, and the capture that counts in it. */
export interface AskedMinute {
  address: string;
  /** Seconds since 1970. */
  minute: number;
  captureId: number;
}

export interface DetectorReport {
  /** The capture that counts watched all of the minute: 60 seconds, nothing lost, nothing without counters. */
  isComplete: boolean;
  /** One epoch of it covered the address throughout. */
  isCovered: boolean;
  /**
   * Attack traffic at the capture that counts, where it watched the whole minute and saw some, else at the one that saw most;
   * null: no capture reported the address.
   */
  attack: { bytes: number; packets: number; captureId: number } | null;
  /** The sensor of the capture that counts; null for one that is there no more. */
  sensorId: number | null;
}

/**
 * Reports in the order asked. Only captures that may speak for the address count: those that `findSpeakers` names, which is asked
 * about minutes with attack traffic alone.
 */
export async function readDetectorReports(
  db: Queryable,
  siteId: number,
  asked: readonly AskedMinute[],
  findSpeakers: (attacked: readonly Pick<Speaker, 'address' | 'minute'>[]) => Promise<readonly Speaker[]>,
): Promise<DetectorReport[]> {
  if (asked.length === 0) return [];
  const minutes = asked.map(({ minute }) => minute);
  const within = sql`minute >= to_timestamp(${Math.min(...minutes)}::float8) and minute <= to_timestamp(${Math.max(...minutes)}::float8)`;
  const attacked = await findAttacked(db, siteId, asked);
  const speakers = attacked.length === 0 ? [] : await findSpeakers(attacked);
  const { rows } = await sql<{
    isComplete: boolean;
    isCovered: boolean;
    bytes: number | null;
    packets: number | null;
    captureId: number | null;
    sensorId: number | null;
  }>`
    with asked as materialized (
      select n, address, to_timestamp(second) as minute, capture_id
      from unnest(${asked.map(({ address }) => address)}::inet[], ${minutes}::float8[],
        ${asked.map(({ captureId }) => captureId)}::bigint[]) with ordinality as t (address, second, capture_id, n)),
    winners as materialized (
      select a.n, a.address, a.minute, m.sensor_id, m.epoch_id, m.ticks = 60 and m.overflowed = 0 and m.incidents_lost = 0
        and m.merged_frames = 0 and m.lost_packets = 0 as complete
      from asked a join captures c on c.id = a.capture_id
      join (select * from detector_minutes where ${within}) m
        on m.sensor_id = c.sensor_id and m.capture = c.name and m.minute = a.minute),
    -- Each epoch is compared with each address once, because it has thousands of prefixes.
    covers as materialized (
      select w.sensor_id, w.epoch_id, w.address, e.since
      from (select distinct sensor_id, epoch_id, address from winners where epoch_id is not null) w
      join detector_epochs e on e.sensor_id = w.sensor_id and e.id = w.epoch_id
      where w.address <<= any(e.prefixes)),
    attacks as (
      select a.n, c.id as capture_id, sum(d.attack_bytes)::bigint as bytes, sum(d.attack_packets)::bigint as packets,
        bool_or(w.complete and c.id = a.capture_id) as counts
      from asked a left join winners w using (n)
      join (select * from detector_addresses where site_id = ${siteId} and ${within}) d
        on d.address = a.address and d.minute = a.minute
      join captures c on c.sensor_id = d.sensor_id and c.name = d.capture
      where (a.address, a.minute, c.id) in (select address, to_timestamp(second), capture_id
        from unnest(${speakers.map(({ address }) => address)}::inet[], ${speakers.map(({ minute }) => minute)}::float8[],
          ${speakers.map(({ captureId }) => captureId)}::bigint[]) as s (address, second, capture_id))
      group by a.n, c.id),
    -- The capture that counts tells of the attack too, if it watched the whole minute: two that see the same differ by some packets.
    strongest as (
      select distinct on (n) n, capture_id, bytes, packets from attacks
      order by n, coalesce(counts and bytes > 0, false) desc, bytes desc, packets desc, capture_id)
    select coalesce(w.complete, false) as is_complete, coalesce(e.since <= a.minute, false) as is_covered, s.bytes,
      s.packets, s.capture_id, c.sensor_id
    from asked a left join captures c on c.id = a.capture_id left join winners w using (n)
    left join covers e on e.sensor_id = w.sensor_id and e.epoch_id = w.epoch_id and e.address = a.address
    left join strongest s using (n) order by a.n`.execute(db);
  return rows.map(({ isComplete, isCovered, bytes, packets, captureId, sensorId }) => ({
    isComplete,
    isCovered,
    sensorId,
    attack: captureId === null ? null : { bytes: bytes!, packets: packets!, captureId },
  }));
}

/** Those of these minutes in which any detector reported traffic of the address. */
async function findAttacked(
  db: Queryable,
  siteId: number,
  asked: readonly AskedMinute[],
): Promise<Pick<Speaker, 'address' | 'minute'>[]> {
  const minutes = asked.map(({ minute }) => minute);
  const { rows } = await sql<Pick<Speaker, 'address' | 'minute'>>`
    select distinct host(a.address) as address, a.second as minute
    from unnest(${asked.map(({ address }) => address)}::inet[], ${minutes}::float8[]) as a (address, second)
    join (select address, minute from detector_addresses where site_id = ${siteId}
        and minute >= to_timestamp(${Math.min(...minutes)}::float8) and minute <= to_timestamp(${Math.max(...minutes)}::float8)) d
      on d.address = a.address and d.minute = to_timestamp(a.second)`.execute(db);
  return rows;
}

// The largest rates that detectors reported of one address. Three months are up to a quarter of a million rows of each
// capture, so the statements read them once and return few.

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

export interface SiteSensor {
  id: number;
  /** Since when it counts by the rule, seconds since 1970; null: not yet. */
  ruleSince: number | null;
  /** It counted by an earlier rule before. */
  hasOlderRule: boolean;
}

/** The sensors of a site, also former ones, and the times at which the address may have changed its node, seconds since 1970. */
export async function listSpeakers(
  db: Queryable,
  siteId: number,
  address: string,
  countingRule: number,
): Promise<{ sensors: SiteSensor[]; changesAt: number[] }> {
  const { rows: sensors } = await sql<SiteSensor>`
    select s.id::float8 as id, extract(epoch from min(e.since) filter (where e.counting_rule >= ${countingRule}))::float8 as rule_since,
      coalesce(bool_or(e.counting_rule < ${countingRule}), false) as has_older_rule
    from sensors s left join detector_epochs e on e.sensor_id = s.id
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
    select extract(epoch from d.minute)::float8 as minute, d.is_outbound, spoken.is_older_rule,
      array_to_string(d.one_second || d.ten_seconds, ' ') as rates
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
export async function listReportedAddresses(db: Queryable, siteId: number, prefixes: readonly string[]) {
  const { rows } = await sql<{ address: string }>`
    select distinct host(d.address) as address from detector_addresses d
    where d.site_id = ${siteId} and d.minute >= svc_now() - interval '1 day' and d.minute <= svc_now()
      and d.address <<= any(${[...prefixes]}::inet[])
    order by 1`.execute(db);
  return rows.map((row) => row.address);
}

export interface AddressEpoch {
  sensorId: number;
  hostName: string;
  /** UUID. */
  id: string;
  sinceMs: number;
}

/** The newest epoch of each sensor of the site, where it contains the address; by host name. */
export async function listEpochsOf(db: Queryable, siteId: number, address: string): Promise<AddressEpoch[]> {
  const { rows } = await sql<AddressEpoch>`
    select s.id as sensor_id, s.host_name, e.id, (extract(epoch from e.since) * 1000)::float8 as since_ms
    from sensors s cross join lateral (
      select id, since, prefixes from detector_epochs where sensor_id = s.id order by since desc limit 1) e
    where s.site_id = ${siteId} and s.revoked_at is null
      and exists (select from unnest(e.prefixes) p where p >>= ${address}::inet)
    order by lower(s.host_name), s.id`.execute(db);
  return rows;
}
