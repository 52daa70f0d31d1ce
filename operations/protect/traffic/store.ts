/** Every statement on series and minutes of allocations. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { MinuteValues, StoredApplication, StoredMinute } from './minute.ts';
import type { WrittenMinute } from './sum-store.ts';

/**
 * Writes what is new or different and says which minutes that were. A minute is one row however often it is sent; an
 * identical one is not written again, so a replay keeps the time at which it was first received. Most minutes of a delivery
 * are identical: they are left out by a look at their rows, because a conflict would lock each of them. The lock of the series
 * keeps other deliveries of the generation from writing between the look and the insert. A row that was updated has the
 * transaction in its `xmax`; one that was inserted has none.
 */
export async function upsertMinutes(
  tx: Queryable,
  allocationId: number,
  minutes: readonly StoredMinute[],
): Promise<WrittenMinute[]> {
  const payload = JSON.stringify(
    minutes.map(({ minuteMs, ...rest }) => ({ ...rest, minute: new Date(minuteMs).toISOString() })),
  );
  const { rows } = await sql<WrittenMinute>`
    insert into protect_minutes (allocation_id, minute, inbound_bytes, outbound_bytes, own_scan_inbound_bytes,
      own_scan_outbound_bytes, dropped_inbound_bytes, dropped_outbound_bytes, dropped_inbound_packets,
      dropped_outbound_packets, inbound_bps, outbound_bps, pps, expected_bps, expected_pps, ddos_bps, ddos_pps, coverage,
      applications, reason)
    select ${allocationId}, sent.minute, "inboundBytes", "outboundBytes", "ownScanInboundBytes", "ownScanOutboundBytes",
           nullif("droppedInboundBytes", 0), nullif("droppedOutboundBytes", 0), nullif("droppedInboundPackets", 0),
           nullif("droppedOutboundPackets", 0), "inboundBps", "outboundBps", sent.pps, "expectedBps", "expectedPps", "ddosBps", "ddosPps", sent.coverage,
           sent.applications, sent.reason
    from jsonb_to_recordset(${payload}::jsonb) as sent(minute timestamptz, "inboundBytes" bigint,
      "outboundBytes" bigint, "ownScanInboundBytes" bigint, "ownScanOutboundBytes" bigint,
      "droppedInboundBytes" bigint, "droppedOutboundBytes" bigint, "droppedInboundPackets" bigint,
      "droppedOutboundPackets" bigint,
      "inboundBps" double precision, "outboundBps" double precision, pps double precision,
      "expectedBps" double precision, "expectedPps" double precision, "ddosBps" double precision,
      "ddosPps" double precision, coverage double precision, applications jsonb, reason text)
    left join protect_minutes held on held.allocation_id = ${allocationId} and held.minute = sent.minute
    where held.minute is null
      or (held.inbound_bps, held.outbound_bps, held.pps, held.expected_bps, held.expected_pps, held.ddos_bps, held.ddos_pps,
          held.coverage, held.applications, held.reason, held.own_scan_inbound_bytes, held.own_scan_outbound_bytes,
          coalesce(held.dropped_inbound_bytes, 0), coalesce(held.dropped_outbound_bytes, 0),
          coalesce(held.dropped_inbound_packets, 0), coalesce(held.dropped_outbound_packets, 0))
        is distinct from ("inboundBps", "outboundBps", sent.pps, "expectedBps", "expectedPps", "ddosBps", "ddosPps",
          sent.coverage, sent.applications, sent.reason, "ownScanInboundBytes", "ownScanOutboundBytes", "droppedInboundBytes",
          "droppedOutboundBytes", "droppedInboundPackets", "droppedOutboundPackets")
    on conflict (allocation_id, minute) do update set
      inbound_bytes = excluded.inbound_bytes, outbound_bytes = excluded.outbound_bytes,
      own_scan_inbound_bytes = excluded.own_scan_inbound_bytes, own_scan_outbound_bytes = excluded.own_scan_outbound_bytes,
      dropped_inbound_bytes = excluded.dropped_inbound_bytes, dropped_outbound_bytes = excluded.dropped_outbound_bytes,
      dropped_inbound_packets = excluded.dropped_inbound_packets,
      dropped_outbound_packets = excluded.dropped_outbound_packets,
      inbound_bps = excluded.inbound_bps, outbound_bps = excluded.outbound_bps, pps = excluded.pps,
      expected_bps = excluded.expected_bps, expected_pps = excluded.expected_pps, ddos_bps = excluded.ddos_bps,
      ddos_pps = excluded.ddos_pps, coverage = excluded.coverage, applications = excluded.applications,
      reason = excluded.reason,
      received_at = svc_now()
    returning minute, xmax::text <> '0' as is_changed`.execute(tx);
  return rows;
}

/** Which generations a reader sees: those of this server in this tenant, and of one address where it is given. */
export interface SeriesScope {
  serverId: number;
  tenantId: number;
  address: string | null;
}

/** A minute without values is one that the monitor knows the reason of: nothing was observed in it. */
const isObserved = sql`(inbound_bps is not null or outbound_bps is not null)`;

/** Of bytes that are not known no part is known. */
const ownScanInbound = sql`case when inbound_bytes is not null then own_scan_inbound_bytes end`;
const ownScanOutbound = sql`case when outbound_bytes is not null then own_scan_outbound_bytes end`;
const droppedIn = (column: string) =>
  sql`case when inbound_bytes is not null then coalesce(${sql.ref(`dropped_inbound_${column}`)}, 0) end`;
const droppedOut = (column: string) =>
  sql`case when outbound_bytes is not null then coalesce(${sql.ref(`dropped_outbound_${column}`)}, 0) end`;

const seriesOf = (scope: SeriesScope) => sql`
  server_id = ${scope.serverId} and tenant_id = ${scope.tenantId}
  and (${scope.address}::text is null or address = ${scope.address})`;

/** Every address of which the server has a series, present and former. */
export async function listAddresses(db: Queryable, scope: SeriesScope): Promise<string[]> {
  const { rows } = await sql<{ address: string }>`
    select address from protect_series where ${seriesOf(scope)} group by address order by min(allocation_id)`.execute(
    db,
  );
  return rows.map((row) => row.address);
}

export interface MinuteRow extends MinuteValues {
  allocationId: number;
  address: string;
  minute: Date;
  applications: StoredApplication[];
}

/** Minutes of the range as they are stored, in time order. */
export async function listMinutes(
  db: Queryable,
  scope: SeriesScope,
  range: { fromMs: number; toMs: number },
): Promise<MinuteRow[]> {
  const { rows } = await sql<MinuteRow>`
    select allocation_id, address, minute, inbound_bytes, outbound_bytes, ${ownScanInbound} as own_scan_inbound_bytes,
           ${ownScanOutbound} as own_scan_outbound_bytes, ${droppedIn('bytes')} as dropped_inbound_bytes,
           ${droppedOut('bytes')} as dropped_outbound_bytes, ${droppedIn('packets')} as dropped_inbound_packets,
           ${droppedOut('packets')} as dropped_outbound_packets, inbound_bps, outbound_bps, pps, expected_bps,
           expected_pps, ddos_bps, ddos_pps, coverage, reason, applications
    from protect_series join protect_minutes using (allocation_id)
    where ${seriesOf(scope)} and minute >= ${new Date(range.fromMs)} and minute < ${new Date(range.toMs)}
    order by minute, allocation_id`.execute(db);
  return rows;
}

export interface StepRow extends MinuteValues {
  at: Date;
  /** Minutes with observed traffic. */
  minutes: number;
  /** Addresses with observed traffic, in that of these minutes which has the fewest; 0 without such a minute. */
  addresses: number;
  /** The newest of these minutes. */
  lastMinute: Date | null;
}

/**
 * Sums over the addresses, minute by minute, then means over the observed minutes of each step: unobserved
 * minutes lower no mean, and a step without any row is absent. Of sums of which a part is unknown, the expected rate is
 * unknown, and the attack rate is known only if it is above zero: zero is said only when every part is known to be zero.
 */
export async function listSteps(
  db: Queryable,
  scope: SeriesScope,
  range: { fromMs: number; toMs: number; stepSeconds: number },
): Promise<StepRow[]> {
  const { rows } = await sql<StepRow>`
    with by_minute as (
      select minute, sum(inbound_bytes)::bigint as inbound_bytes, sum(outbound_bytes)::bigint as outbound_bytes,
             sum(${ownScanInbound}) as own_scan_inbound, sum(${ownScanOutbound}) as own_scan_outbound,
             sum(${droppedIn('bytes')}) as dropped_in_bytes, sum(${droppedOut('bytes')}) as dropped_out_bytes,
             sum(${droppedIn('packets')}) as dropped_in_packets, sum(${droppedOut('packets')}) as dropped_out_packets,
             sum(inbound_bps) as inbound_bps, sum(outbound_bps) as outbound_bps, sum(pps) as pps,
             case when count(expected_bps) = count(*) then sum(expected_bps) end as expected_bps,
             case when count(expected_pps) = count(*) then sum(expected_pps) end as expected_pps,
             case when count(ddos_bps) = count(*) or sum(ddos_bps) > 0 then sum(ddos_bps) end as ddos_bps,
             case when count(ddos_pps) = count(*) or sum(ddos_pps) > 0 then sum(ddos_pps) end as ddos_pps,
             case when count(coverage) = count(*) then avg(coverage) end as coverage,
             min(reason) as reason, count(*) filter (where ${isObserved}) as addresses
      from protect_series join protect_minutes using (allocation_id)
      where ${seriesOf(scope)} and minute >= ${new Date(range.fromMs)} and minute < ${new Date(range.toMs)}
      group by minute)
    select date_bin(make_interval(secs => ${range.stepSeconds}), minute, 'epoch') as at,
           sum(inbound_bytes)::bigint as inbound_bytes, sum(outbound_bytes)::bigint as outbound_bytes,
           sum(own_scan_inbound)::bigint as own_scan_inbound_bytes, sum(own_scan_outbound)::bigint as own_scan_outbound_bytes,
           sum(dropped_in_bytes)::bigint as dropped_inbound_bytes, sum(dropped_out_bytes)::bigint as dropped_outbound_bytes,
           sum(dropped_in_packets)::bigint as dropped_inbound_packets,
           sum(dropped_out_packets)::bigint as dropped_outbound_packets, avg(inbound_bps) as inbound_bps,
           avg(outbound_bps) as outbound_bps, avg(pps) as pps, avg(expected_bps) as expected_bps,
           avg(expected_pps) as expected_pps,
           case when count(ddos_bps) = count(*) or sum(ddos_bps) > 0 then avg(ddos_bps) end as ddos_bps,
           case when count(ddos_pps) = count(*) or sum(ddos_pps) > 0 then avg(ddos_pps) end as ddos_pps,
           case when count(coverage) = count(*) then avg(coverage) end as coverage,
           min(reason) as reason, count(*) filter (where addresses > 0)::int as minutes,
           coalesce(min(addresses) filter (where addresses > 0), 0)::int as addresses,
           max(minute) filter (where addresses > 0) as last_minute
    from by_minute group by 1 order by 1`.execute(db);
  return rows;
}

/** How the delivery of a server's minutes stands. */
export interface MinuteStatus {
  attemptedAt: Date | null;
  receivedAt: Date | null;
  /** Start of the newest observed minute, and when it was received. */
  latestAt: Date | null;
  latestReceivedAt: Date | null;
  /** Addresses with minutes, and the minutes of the last hour. */
  addresses: number;
  minutes: number;
  /** Deliveries are tried and none of them was taken: another source owns the minutes. */
  isRefused: boolean;
}

export async function readStatus(db: Queryable, scope: SeriesScope): Promise<MinuteStatus> {
  const { rows } = await sql<MinuteStatus>`
    select max(greatest(source_seen_at, waiting_at)) as attempted_at, max(source_seen_at) as received_at,
      max(latest.minute) as latest_at,
      (array_agg(latest.received_at order by latest.minute desc nulls last, allocation_id desc))[1] as latest_received_at,
      count(*)::int as addresses, coalesce(sum(hour.minutes), 0)::int as minutes,
      coalesce(max(waiting_at) > max(source_seen_at) + interval '5 minutes', false) as is_refused
    from protect_series series
    left join lateral (select minute, received_at from protect_minutes
      where allocation_id = series.allocation_id and ${isObserved} order by minute desc limit 1) latest on true
    left join lateral (select count(*) as minutes from protect_minutes
      where allocation_id = series.allocation_id and ${isObserved} and minute > svc_now() - interval '1 hour') hour on true
    where ${seriesOf(scope)}`.execute(db);
  return rows[0]!;
}

export interface LatestRow {
  serverId: number;
  minute: Date;
  inboundBps: number | null;
  outboundBps: number | null;
}

/** The newest observed minute of each server, summed over the addresses that were observed in it. */
export async function listLatest(
  db: Queryable,
  serverIds: readonly number[],
  tenantIds: readonly number[] | 'all',
): Promise<LatestRow[]> {
  const ofOwner = tenantIds === 'all' ? sql`true` : sql`tenant_id = any(${[...tenantIds]}::bigint[])`;
  const { rows } = await sql<LatestRow>`
    select server_id, minute, sum(inbound_bps) as inbound_bps, sum(outbound_bps) as outbound_bps
    from (
      select server_id, latest.*, max(minute) over (partition by server_id) as newest
      from protect_series series
      join lateral (
        select minute, inbound_bps, outbound_bps from protect_minutes
        where allocation_id = series.allocation_id and ${isObserved} order by minute desc limit 1) latest on true
      where server_id = any(${[...serverIds]}::bigint[]) and ${ofOwner}) each_address
    where minute = newest
    group by server_id, minute`.execute(db);
  return rows;
}

/** Deletes at most `limit` expired minutes; how many they were. */
export async function deleteExpired(tx: Queryable, olderThan: string, limit: number): Promise<number> {
  await sql`delete from protect_set_aside where minute < svc_now() - ${olderThan}::interval`.execute(tx);
  const result = await sql`
    delete from protect_minutes where (allocation_id, minute) in (
      select allocation_id, minute from protect_minutes
      where minute < svc_now() - ${olderThan}::interval limit ${limit})`.execute(tx);
  return Number(result.numAffectedRows ?? 0n);
}
