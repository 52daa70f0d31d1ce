/** What the detectors of captures said of minutes of addresses, beside the captures that counted. */
import { sql } from 'kysely';
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
    select coalesce(w.complete, false) as "isComplete",
      coalesce(e.since <= a.minute, false) as "isCovered", s.bytes, s.packets, s.capture_id as "captureId",
      c.sensor_id as "sensorId"
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
