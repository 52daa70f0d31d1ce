/**
 * Statements of the explorer on what addresses did: sums by server or address, and their course in steps. Each names the owners
 * and the servers, and reads every part of the range from the coarsest sums that hold it.
 */
import { type RawBuilder, sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { grainOfStep, type RangePart, splitRange } from './split-range.ts';
import { packetsOfMinute } from './sum-store.ts';
import type { UsageRange, UsageStep } from './usage-store.ts';

export { listTrafficServers, type TrafficServer } from '#operations/views/index.ts';

/** Which series count. */
export interface ExplorerScope {
  /** `all` for staff. */
  tenantIds: readonly number[] | 'all';
  /** Null: all servers of these tenants. */
  serverIds: readonly number[] | null;
  /** Addresses and networks; each list narrows, or with `isNot` leaves out. */
  addresses: readonly { isNot: boolean; values: readonly string[] }[];
}

/** Conditions on `protect_series`. */
export function seriesOf({ tenantIds, serverIds, addresses }: ExplorerScope): RawBuilder<unknown> {
  const conditions = [
    serverIds === null ? sql`true` : sql`server_id = any(${[...serverIds]}::bigint[])`,
    tenantIds === 'all' ? sql`true` : sql`tenant_id = any(${[...tenantIds]}::bigint[])`,
    ...addresses.map(({ isNot, values }) => {
      const within = sql`address::inet <<= any(${[...values]}::inet[])`;
      return isNot ? sql`not ${within}` : within;
    }),
  ];
  return sql.join(conditions, sql` and `);
}

const within = (column: RawBuilder<unknown>, { fromMs, toMs }: UsageRange) =>
  sql`${column} >= ${new Date(fromMs)} and ${column} < ${new Date(toMs)}`;

const minuteBit = sql`1::bigint << (extract(epoch from minute)::bigint / 60 % 60)::int`;
const tenShift = sql`(extract(epoch from at)::bigint / 600 % 6 * 10)::int`;

/** Whether every series counts. */
const isEverything = ({ tenantIds, serverIds, addresses }: ExplorerScope) =>
  tenantIds === 'all' && serverIds === null && addresses.length === 0;

/** The series of a scope by themselves, so that a few of them are looked up and not searched for among all. */
const chosen = (scope: ExplorerScope) => sql`chosen as materialized (
  select allocation_id, server_id, address from protect_series where ${seriesOf(scope)})`;

/** A few series are looked up by themselves; all of them are read without a look. */
export const onlyChosen = (scope: ExplorerScope): RawBuilder<unknown> =>
  isEverything(scope) ? sql`` : sql`and allocation_id in (select allocation_id from chosen)`;

/** What is read: bytes alone, or packets beside them. */
export interface Measured {
  hasPackets: boolean;
}

/** Bytes and packets of a part of a range, with the observed minutes of its hour as bits. */
function rowsOfPart(part: RangePart, scope: ExplorerScope, { hasPackets }: Measured): RawBuilder<unknown> {
  const only = onlyChosen(scope);
  const packets = (of: RawBuilder<unknown>) => (hasPackets ? of : sql`null::bigint, 0::bigint`);
  switch (part.grain) {
    case 'hours':
      return sql`select allocation_id, at, inbound_bytes, outbound_bytes, inbound_minutes, outbound_minutes,
          ${packets(sql`packets, coalesce(packet_minutes, 0)`)}
        from protect_usage_hours where ${within(sql`at`, part)} ${only}`;
    case 'tens':
      return sql`select allocation_id, at, inbound_bytes, outbound_bytes, inbound_minutes << ${tenShift},
          outbound_minutes << ${tenShift}, ${packets(sql`packets, coalesce(packet_minutes, 0) << ${tenShift}`)}
        from protect_usage_tens where ${within(sql`at`, part)} ${only}`;
    default:
      return sql`select allocation_id, minute, coalesce(inbound_bytes, 0), coalesce(outbound_bytes, 0),
          case when inbound_bps is null then 0 else ${minuteBit} end,
          case when outbound_bps is null then 0 else ${minuteBit} end,
          ${packets(sql`${packetsOfMinute}, case when pps is null then 0 else ${minuteBit} end`)}
        from protect_minutes where ${within(sql`minute`, part)}
          and (inbound_bps is not null or outbound_bps is not null) ${only}`;
  }
}

const rowsOf = (parts: readonly RangePart[], scope: ExplorerScope, measured: Measured) => sql`(${sql.join(
  parts.map((part) => rowsOfPart(part, scope, measured)),
  sql` union all `,
)})
    as part (allocation_id, at, inbound_bytes, outbound_bytes, inbound_minutes, outbound_minutes, packets, packet_minutes)`;

/** What an address did in a range in which it was observed. */
export interface AddressSum {
  allocationId: number;
  serverId: number;
  address: string;
  inboundBytes: number;
  outboundBytes: number;
  /** Both directions; null where no minute has them, or they were not asked for. */
  packets: number | null;
  /** Some observed minutes have no packets. */
  arePacketsPartial: boolean;
}

export async function listAddressSums(
  db: Queryable,
  scope: ExplorerScope,
  range: UsageRange,
  measured: Measured,
): Promise<AddressSum[]> {
  const parts = splitRange(range, 'hours');
  if (parts.length === 0) return [];
  const [packets, isPartial] = measured.hasPackets
    ? [
        sql`(sum(packets) filter (where packet_minutes <> 0))::bigint`,
        sql`bool_or((inbound_minutes | outbound_minutes) & ~packet_minutes <> 0)`,
      ]
    : [sql`null::bigint`, sql`false`];
  // By allocation first: that is a sum over numbers, and few rows are left to be joined.
  const { rows } = await sql<AddressSum>`
    with ${chosen(scope)}, sums as (
      select allocation_id, sum(inbound_bytes)::bigint as inbound, sum(outbound_bytes)::bigint as outbound,
        ${packets} as packets, ${isPartial} as is_partial
      from ${rowsOf(parts, scope, measured)} group by 1
      having bit_or(inbound_minutes | outbound_minutes) <> 0)
    select allocation_id as "allocationId", server_id as "serverId", address, inbound as "inboundBytes",
      outbound as "outboundBytes", packets, is_partial as "arePacketsPartial"
    from sums join chosen using (allocation_id)`.execute(db);
  return rows;
}

/** What is added up to one line: everything, or servers or addresses by the number of their line. */
export type LinesOf =
  | 'all'
  | { servers: readonly { id: number; line: number }[] }
  | { addresses: readonly { address: string; serverId: number; line: number }[] };

export interface LineStep extends UsageStep {
  /** Packets per second of both directions, over the minutes that have packets; null where there are none. */
  pps: number | null;
}

/**
 * The course of lines. A step's rate is its bytes over the minutes in which any address of the line was observed; those are
 * counted hour by hour from the bits of all of them.
 */
export async function listLineSteps(
  db: Queryable,
  scope: ExplorerScope,
  range: UsageRange & { stepSeconds: number } & Measured,
  of: LinesOf,
): Promise<LineStep[]> {
  const parts = splitRange(range, grainOfStep(range.stepSeconds));
  if (parts.length === 0) return [];
  const line = of === 'all' ? sql`null::bigint` : sql`line`;
  const step = sql`date_bin(make_interval(secs => ${range.stepSeconds}), hour, 'epoch')`;
  const fine = sql`date_bin(make_interval(secs => ${range.stepSeconds}), at, 'epoch')`;
  // Steps of several hours are added up from hours; the bits of an hour can't be those of two.
  const at = range.stepSeconds > 3600 ? sql`date_bin('1 hour', at, 'epoch')` : fine;
  const bits = (minutes: RawBuilder<unknown>) => sql`bit_count((${minutes})::bit(64))`;
  const packets = range.hasPackets
    ? sql`sum(packets) as packets, bit_or(packet_minutes) as packet_minutes`
    : sql`null::bigint as packets, 0::bigint as packet_minutes`;
  const { rows } = await sql<Omit<LineStep, 'inboundBps' | 'outboundBps' | 'pps'> & StepMinutes>`
    with ${chosen(scope)}, slots as (
      select ${line} as id, ${at} as hour, sum(inbound_bytes) as inbound, sum(outbound_bytes) as outbound,
        bit_or(inbound_minutes) as in_minutes, bit_or(outbound_minutes) as out_minutes, ${packets}
      from ${rowsOf(parts, scope, range)} ${of === 'all' ? sql`` : sql`join chosen using (allocation_id)`} ${lineJoin(of)}
      group by 1, 2)
    select id, ${range.stepSeconds > 3600 ? step : sql`hour`} as at, sum(inbound)::bigint as "inboundBytes",
      sum(outbound)::bigint as "outboundBytes", sum(${bits(sql`in_minutes`)})::int as "inMinutes",
      sum(${bits(sql`out_minutes`)})::int as "outMinutes", sum(packets)::bigint as packets,
      sum(${bits(sql`packet_minutes`)})::int as "packetMinutes", sum(${bits(sql`in_minutes | out_minutes`)})::int as minutes
    from slots where in_minutes <> 0 or out_minutes <> 0 group by 1, 2 order by 1, 2`.execute(db);
  const rate = (bytes: number | null, minutes: number) =>
    minutes === 0 ? null : ((bytes ?? 0) * 8) / (minutes * 60);
  return rows.map(({ inMinutes, outMinutes, packets, packetMinutes, ...row }) => ({
    ...row,
    pps: packetMinutes === 0 ? null : (packets ?? 0) / (packetMinutes * 60),
    inboundBps: rate(row.inboundBytes, inMinutes),
    outboundBps: rate(row.outboundBytes, outMinutes),
  }));
}

interface StepMinutes {
  inMinutes: number;
  outMinutes: number;
  packets: number | null;
  packetMinutes: number;
}

function lineJoin(of: LinesOf): RawBuilder<unknown> {
  if (of === 'all') return sql``;
  if ('servers' in of)
    return sql`join unnest(${of.servers.map(({ id }) => id)}::bigint[], ${of.servers.map(({ line }) => line)}::int[])
      as named (server_id, line) using (server_id)`;
  return sql`join unnest(${of.addresses.map(({ serverId }) => serverId)}::bigint[],
      ${of.addresses.map(({ address }) => address)}::text[], ${of.addresses.map(({ line }) => line)}::int[])
    as named (server_id, address, line) using (server_id, address)`;
}

export interface MinutePercentile {
  /** Null: of all servers together. */
  serverId: number | null;
  inboundP95: number | null;
  outboundP95: number | null;
  /** Packets per second; null where they were not asked for. */
  packetsP95: number | null;
}

/** 95 % of the observed minutes are not above it; of each server, or of all together. Reads every minute: for a few servers. */
export async function listMinutePercentiles(
  db: Queryable,
  scope: ExplorerScope,
  range: UsageRange & Measured,
  by: 'server' | 'all',
): Promise<MinutePercentile[]> {
  const pps = range.hasPackets ? sql`sum(pps)` : sql`null::float8`;
  const { rows } = await sql<MinutePercentile>`
    with ${chosen(scope)}, by_minute as (
      select ${by === 'server' ? sql`server_id` : sql`null::bigint`} as owner, minute, sum(inbound_bytes) as inbound,
        sum(outbound_bytes) as outbound, ${pps} as pps
      from chosen join protect_minutes using (allocation_id)
      where ${within(sql`minute`, range)} and (inbound_bps is not null or outbound_bps is not null)
      group by 1, 2)
    select owner::bigint as "serverId", (percentile_disc(0.95) within group (order by inbound) * 8 / 60.0)::float8 as "inboundP95",
      (percentile_disc(0.95) within group (order by outbound) * 8 / 60.0)::float8 as "outboundP95",
      percentile_disc(0.95) within group (order by pps) as "packetsP95"
    from by_minute group by 1`.execute(db);
  return rows;
}
