/**
 * Sums of minutes by ten minutes and by hour, and of applications by hour: written where minutes are written, under the lock of
 * their series, so that a sum is always that of its minutes.
 */
import { type RawBuilder, sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

/** Sums of applications are kept for so long; they are shown for 24 hours (NET-2.4.4). */
const applicationsKept = sql.lit('2 days');

/** A minute that was stored now; `isChanged` where another one stood in its place. */
export interface WrittenMinute {
  minute: Date;
  isChanged: boolean;
}

/** Makes the sums say what the minutes say, after these were written. */
export async function sumWritten(
  tx: Queryable,
  allocationId: number,
  written: readonly WrittenMinute[],
): Promise<void> {
  await sumBuckets(tx, allocationId, written);
  const changedHours = new Set(
    written.filter(({ isChanged }) => isChanged).map(({ minute }) => hourOf(minute)),
  );
  if (changedHours.size > 0) await sumHoursAgain(tx, allocationId, [...changedHours]);
  const added = written.filter(({ minute }) => !changedHours.has(hourOf(minute)));
  if (added.length > 0) await addApplications(tx, allocationId, added);
}

const hourOf = (minute: Date) => Math.floor(minute.getTime() / 3_600_000) * 3_600_000;

/** Packets of a minute out of its rate, both directions together; null where it is not known. */
export const packetsOfMinute: RawBuilder<unknown> = sql`round(pps * 60)::bigint`;

const tenSeconds = 600;
const hourSeconds = 3600;

/**
 * Every bucket that holds one of these minutes, from its minutes anew: a few rows that lie beside each other. Both sizes in one
 * statement, since planning takes longer than reading these rows.
 */
async function sumBuckets(
  tx: Queryable,
  allocationId: number,
  written: readonly WrittenMinute[],
): Promise<void> {
  const startsOf = (seconds: number) => [
    ...new Set(written.map(({ minute }) => Math.floor(minute.getTime() / 1000 / seconds) * seconds)),
  ];
  const write = (table: string, seconds: number) => {
    const bit = sql`1::bigint << (extract(epoch from minute - bucket.at)::int / 60)`;
    return sql`
      insert into ${sql.table(table)} (allocation_id, at, inbound_bytes, outbound_bytes, inbound_minutes, outbound_minutes,
        packets, packet_minutes, own_scan_inbound_bytes, own_scan_outbound_bytes)
      select ${allocationId}, bucket.at, coalesce(sum(inbound_bytes), 0), coalesce(sum(outbound_bytes), 0),
        coalesce(bit_or(${bit}) filter (where inbound_bps is not null), 0),
        coalesce(bit_or(${bit}) filter (where outbound_bps is not null), 0),
        coalesce(sum(packets), 0), coalesce(bit_or(${bit}) filter (where packets is not null), 0),
        coalesce(sum(own_scan_inbound_bytes), 0), coalesce(sum(own_scan_outbound_bytes), 0)
      from (select to_timestamp(start) as at from unnest(${startsOf(seconds)}::bigint[]) as start) bucket
      left join observed on minute >= bucket.at and minute < bucket.at + make_interval(secs => ${seconds})
      group by bucket.at order by bucket.at
      on conflict (allocation_id, at) do update set inbound_bytes = excluded.inbound_bytes,
        outbound_bytes = excluded.outbound_bytes, inbound_minutes = excluded.inbound_minutes,
        outbound_minutes = excluded.outbound_minutes, packets = excluded.packets,
        packet_minutes = excluded.packet_minutes, own_scan_inbound_bytes = excluded.own_scan_inbound_bytes,
        own_scan_outbound_bytes = excluded.own_scan_outbound_bytes`;
  };
  await sql`
    with observed as materialized (
      select minute, inbound_bytes, outbound_bytes, own_scan_inbound_bytes, own_scan_outbound_bytes, inbound_bps, outbound_bps,
        ${packetsOfMinute} as packets
      from unnest(${startsOf(hourSeconds)}::bigint[]) as start
      join protect_minutes on allocation_id = ${allocationId} and minute >= to_timestamp(start)
        and minute < to_timestamp(start + ${hourSeconds})
      where inbound_bps is not null or outbound_bps is not null),
    tens as (${write('protect_usage_tens', tenSeconds)})
    ${write('protect_usage_hours', hourSeconds)}`.execute(tx);
}

const seen = sql`jsonb_to_recordset(applications) as seen(name text, transport text, server_port integer,
  inbound_bytes bigint, outbound_bytes bigint)`;
const sumsOfSeen = sql`sum(seen.inbound_bytes)::bigint, sum(seen.outbound_bytes)::bigint,
  max(minute) filter (where seen.outbound_bytes > 0)`;

/** Adds minutes that were not there before: their applications alone are read and written. */
async function addApplications(
  tx: Queryable,
  allocationId: number,
  added: readonly WrittenMinute[],
): Promise<void> {
  await sql`
    insert into protect_application_hours as held
      (allocation_id, at, name, transport, server_port, inbound_bytes, outbound_bytes, last_sent_at)
    select allocation_id, date_bin('1 hour', minute, 'epoch'), name, transport, server_port, ${sumsOfSeen}
    from protect_minutes, ${seen}
    where allocation_id = ${allocationId} and minute = any(${added.map(({ minute }) => minute)}::timestamptz[])
      and minute >= svc_now() - ${applicationsKept}::interval
    group by 1, 2, 3, 4, 5
    on conflict (allocation_id, at, name, transport, server_port) do update set
      inbound_bytes = held.inbound_bytes + excluded.inbound_bytes,
      outbound_bytes = held.outbound_bytes + excluded.outbound_bytes,
      last_sent_at = greatest(held.last_sent_at, excluded.last_sent_at)`.execute(tx);
}

/** Whole hours anew: what a changed minute had before can't be taken out of a sum. */
async function sumHoursAgain(tx: Queryable, allocationId: number, hours: readonly number[]): Promise<void> {
  const starts = sql`any(${hours.map((ms) => new Date(ms))}::timestamptz[])`;
  await sql`delete from protect_application_hours where allocation_id = ${allocationId} and at = ${starts}`.execute(
    tx,
  );
  await sql`
    insert into protect_application_hours
      (allocation_id, at, name, transport, server_port, inbound_bytes, outbound_bytes, last_sent_at)
    select allocation_id, hour, name, transport, server_port, ${sumsOfSeen}
    from unnest(${hours.map((ms) => new Date(ms))}::timestamptz[]) as hour
    join protect_minutes on allocation_id = ${allocationId} and minute >= hour and minute < hour + interval '1 hour', ${seen}
    where minute >= svc_now() - ${applicationsKept}::interval
    group by 1, 2, 3, 4, 5`.execute(tx);
}

/** Deletes sums that are older than the minutes are kept, and applications that are no longer shown; how many they were at most. */
export async function deleteExpiredSums(tx: Queryable, olderThan: string, limit: number): Promise<number> {
  const results = [
    await sql`delete from protect_usage_tens where (allocation_id, at) in (
      select allocation_id, at from protect_usage_tens
      where at <= svc_now() - ${olderThan}::interval - interval '10 minutes' limit ${limit})`.execute(tx),
    await sql`delete from protect_usage_hours where (allocation_id, at) in (
      select allocation_id, at from protect_usage_hours
      where at <= svc_now() - ${olderThan}::interval - interval '1 hour' limit ${limit})`.execute(tx),
    await sql`delete from protect_application_hours where ctid in (
      select ctid from protect_application_hours
      where at <= svc_now() - ${applicationsKept}::interval - interval '1 hour' limit ${limit})`.execute(tx),
  ];
  return Math.max(...results.map(({ numAffectedRows }) => Number(numAffectedRows ?? 0n)));
}
