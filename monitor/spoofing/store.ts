/** Every statement on spoofed traffic. */
import { sql } from 'kysely';
import type { GuardReason } from '#contracts/guard-reasons.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';

/** What a MAC claimed that is not its own in one minute of a capture. */
export interface SpoofedMinute {
  siteId: number;
  sensorId: number;
  /** Start of the minute, seconds since 1970. */
  minute: number;
  capture: string;
  segment: string;
  /** Blank, with the address null, in the row of what found no row of its own. */
  mac: string;
  /** Null where it is no server's. */
  address: string | null;
  reason: GuardReason;
  bytes: number;
  packets: number;
}

export interface BegunSpoofing extends Omit<SpoofedMinute, 'minute' | 'capture' | 'mac'> {
  macs: string[];
  /** Start of the first of these minutes. */
  occurredAtMs: number;
}

/** Adds minutes to their hours. Rows in the order of their key, so that two transactions can't deadlock. */
export async function addMinutes(trx: Queryable, minutes: readonly SpoofedMinute[]): Promise<void> {
  await sql`
    insert into spoofed_traffic as kept (sensor_id, hour, capture, segment, mac, address, reason, site_id, first_minute, last_minute,
      bytes, packets)
    select "sensorId", date_bin('1 hour', to_timestamp(minute), timestamptz 'epoch') as hour, capture, segment, mac, address, reason,
      "siteId", to_timestamp(min(minute)), to_timestamp(max(minute)), sum(bytes), sum(packets)
    from ${given(minutes)}
    group by "siteId", "sensorId", hour, capture, segment, mac, address, reason
    order by "sensorId", hour, capture, segment, mac, address, reason
    on conflict (sensor_id, hour, capture, segment, mac, address, reason) do update set
      first_minute = least(kept.first_minute, excluded.first_minute),
      last_minute = greatest(kept.last_minute, excluded.last_minute),
      bytes = kept.bytes + excluded.bytes, packets = kept.packets + excluded.packets`.execute(trx);
}

/**
 * Of these minutes, which are not stored yet: claims that no minute of this sensor had in the hour before, the loudest first. Those of an
 * address are one, of all senders; others are one of each sender.
 */
export async function listBegun(
  trx: Queryable,
  minutes: readonly SpoofedMinute[],
  limit: number,
): Promise<BegunSpoofing[]> {
  const { rows } = await sql<BegunSpoofing>`
    select "siteId", "sensorId", host(address) as address, reason, min(segment) as segment, array_agg(distinct mac order by mac) as macs,
      sum(bytes)::float8 as bytes, sum(packets)::float8 as packets, min(minute) * 1000 as occurred_at_ms
    from ${given(minutes)}
    where mac <> '' and not exists (select 1 from spoofed_traffic kept
      where kept.sensor_id = "sensorId" and kept.reason = given.reason
        and (kept.address = given.address or (kept.address is null and given.address is null and kept.mac = given.mac))
        and kept.hour >= to_timestamp(minute) - interval '2 hours' and kept.last_minute >= to_timestamp(minute) - interval '1 hour')
    group by "siteId", "sensorId", address, reason, case when address is null then mac end
    order by bytes desc, packets desc, address, reason, macs limit ${limit}`.execute(trx);
  return rows;
}

const given = (minutes: readonly SpoofedMinute[]) => sql`
  jsonb_to_recordset(${JSON.stringify(minutes)}::jsonb) as given("siteId" bigint, "sensorId" bigint, minute float8, capture text,
    segment text, mac text, address inet, reason text, bytes bigint, packets bigint)`;
