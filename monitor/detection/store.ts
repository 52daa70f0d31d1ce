/** Every statement on what detectors said. */
import { sql } from 'kysely';
import type { DetectorEpoch } from '#contracts/sensor-api/detection.ts';
import type { TelemetryMinute } from '#contracts/sensor-api/telemetry.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';

/** A capture's minute with a report. */
export type ReportedMinute = TelemetryMinute & Required<Pick<TelemetryMinute, 'detector'>>;

const daySeconds = 86_400;

/** Creates partitions before the transaction that writes, and remembers them. */
export function createPartitionMaker() {
  const known = new Set<number>();
  return {
    async ensureDays(db: Queryable, minutes: readonly number[]): Promise<void> {
      for (const day of new Set(minutes.map((minute) => Math.floor(minute / daySeconds) * daySeconds))) {
        if (known.has(day)) continue;
        for (const table of ['detector_minutes', 'detector_addresses'])
          await sql`select ensure_fact_partition(${table}, to_timestamp(${day}::float8), interval '1 day')`.execute(
            db,
          );
        known.add(day);
      }
    },
  };
}

/** An epoch never changes, so one that is there already stays as it is. */
export async function insertEpochs(trx: Queryable, sensorId: number, epochs: readonly DetectorEpoch[]) {
  for (const { id, sinceMs, prefixes, countingRule = 1 } of epochs)
    await sql`insert into detector_epochs (sensor_id, id, since, prefixes, counting_rule)
      values (${sensorId}, ${id}, to_timestamp(${sinceMs / 1000}::float8), ${prefixes}::inet[], ${countingRule})
      on conflict do nothing`.execute(trx);
}

interface Origin {
  siteId: number;
  sensorId: number;
}

/**
 * Adds reports. A capture that was restarted within a minute reports it in parts: their seconds and amounts add, their largest
 * rates are compared, and no epoch lasted the whole minute.
 */
export async function insertMinutes(trx: Queryable, origin: Origin, minutes: readonly ReportedMinute[]) {
  for (const one of minutes) await insertMinute(trx, origin, one);
  await noteUsedEpochs(trx, origin.sensorId, minutes);
}

async function insertMinute(
  trx: Queryable,
  { siteId, sensorId }: Origin,
  { minute, capture, totals, detector }: ReportedMinute,
): Promise<void> {
  const { ticks, epochId, overflowed, incidentsLost, mergedFrames, rows } = detector;
  await sql`
    insert into detector_minutes as held (minute, site_id, sensor_id, capture, ticks, epoch_id, overflowed, incidents_lost,
      merged_frames, lost_packets)
    values (to_timestamp(${minute}::float8), ${siteId}, ${sensorId}, ${capture}, ${ticks}, ${epochId === '' ? null : epochId},
      ${overflowed}, ${incidentsLost}, ${mergedFrames}, ${totals.kernelDropped + totals.parserDropped})
    on conflict (sensor_id, capture, minute) do update set ticks = least(60, held.ticks + excluded.ticks),
      epoch_id = case when held.epoch_id = excluded.epoch_id then held.epoch_id end,
      overflowed = held.overflowed + excluded.overflowed, incidents_lost = held.incidents_lost + excluded.incidents_lost,
      merged_frames = held.merged_frames + excluded.merged_frames,
      lost_packets = held.lost_packets + excluded.lost_packets`.execute(trx);
  if (rows.length === 0) return;
  const arrayOf = (values: readonly number[]) => `{${values.map((value) => Math.round(value)).join(',')}}`;
  await sql`
    insert into detector_addresses as held (minute, site_id, sensor_id, capture, address, is_outbound, one_second, ten_seconds,
      attack_bytes, attack_packets)
    select to_timestamp(${minute}::float8), ${siteId}, ${sensorId}, ${capture}, address, is_outbound, one::bigint[], ten::bigint[],
      bytes, packets
    from unnest(${rows.map((row) => row.address)}::inet[], ${rows.map((row) => row.direction === 'outbound')}::boolean[],
      ${rows.map((row) => arrayOf(row.oneSecond))}::text[], ${rows.map((row) => arrayOf(row.tenSeconds))}::text[],
      ${rows.map((row) => row.attackBytes)}::bigint[], ${rows.map((row) => row.attackPackets)}::bigint[])
      as told (address, is_outbound, one, ten, bytes, packets)
    on conflict (address, minute, sensor_id, capture, is_outbound) do update set
      one_second = array(select greatest(a, b) from unnest(held.one_second, excluded.one_second) as t (a, b)),
      ten_seconds = array(select greatest(a, b) from unnest(held.ten_seconds, excluded.ten_seconds) as t (a, b)),
      attack_bytes = held.attack_bytes + excluded.attack_bytes,
      attack_packets = held.attack_packets + excluded.attack_packets`.execute(trx);
}

/** One write an hour keeps an epoch as long as its minutes. */
async function noteUsedEpochs(trx: Queryable, sensorId: number, minutes: readonly ReportedMinute[]) {
  const newest = new Map<string, number>();
  for (const { minute, detector } of minutes)
    if (detector.epochId !== '')
      newest.set(detector.epochId, Math.max(minute, newest.get(detector.epochId) ?? 0));
  for (const [id, minute] of newest)
    await sql`update detector_epochs set last_used_at = to_timestamp(${minute}::float8)
      where sensor_id = ${sensorId} and id = ${id}
        and last_used_at < to_timestamp(${minute}::float8) - interval '1 hour'`.execute(trx);
}

/** The largest rates of an address in one direction of one minute, as one capture saw them. */
export interface MaximaRow {
  /** Seconds since 1970. */
  minute: number;
  sensorId: number;
  capture: string;
  isOutbound: boolean;
  /** By metric, in the order of the contract's `metrics`. */
  oneSecond: number[];
  tenSeconds: number[];
}

export async function listMaxima(
  db: Queryable,
  siteId: number,
  address: string,
  fromMs: number,
  toMs: number,
): Promise<MaximaRow[]> {
  const { rows } = await sql<MaximaRow>`
    select extract(epoch from minute)::float8 as minute, sensor_id, capture, is_outbound,
      one_second::float8[] as one_second, ten_seconds::float8[] as ten_seconds
    from detector_addresses
    where site_id = ${siteId} and address = ${address}::inet and minute >= to_timestamp(${fromMs / 1000}::float8)
      and minute < to_timestamp(${toMs / 1000}::float8)
    order by minute, sensor_id, capture collate "C", is_outbound`.execute(db);
  return rows;
}
