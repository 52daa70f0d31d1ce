/**
 * Statements of the explorer on what addresses did: sums by server or address, and their course in steps. Each names the owners
 * and the servers, and reads every part of the range from the coarsest sums that hold it.
 */
import { type RawBuilder, sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { grainOfStep, type RangePart, splitRange } from './split-range.ts';
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

/** Bytes of a part of a range, with the observed minutes of its hour as bits. */
function rowsOfPart(part: RangePart, scope: ExplorerScope): RawBuilder<unknown> {
  const only = onlyChosen(scope);
  switch (part.grain) {
    case 'hours':
      return sql`select allocation_id, at, inbound_bytes, outbound_bytes, inbound_minutes, outbound_minutes
        from protect_usage_hours where ${within(sql`at`, part)} ${only}`;
    case 'tens':
      return sql`select allocation_id, at, inbound_bytes, outbound_bytes, inbound_minutes << ${tenShift},
          outbound_minutes << ${tenShift}
        from protect_usage_tens where ${within(sql`at`, part)} ${only}`;
    default:
      return sql`select allocation_id, minute, coalesce(inbound_bytes, 0), coalesce(outbound_bytes, 0),
          case when inbound_bps is null then 0 else ${minuteBit} end,
          case when outbound_bps is null then 0 else ${minuteBit} end
        from protect_minutes where ${within(sql`minute`, part)}
          and (inbound_bps is not null or outbound_bps is not null) ${only}`;
  }
}

const rowsOf = (parts: readonly RangePart[], scope: ExplorerScope) => sql`(${sql.join(
  parts.map((part) => rowsOfPart(part, scope)),
  sql` union all `,
)})
    as part (allocation_id, at, inbound_bytes, outbound_bytes, inbound_minutes, outbound_minutes)`;

export interface UsageSum {
  serverId: number;
  /** Null where sums are by server. */
  address: string | null;
  inboundBytes: number;
  outboundBytes: number;
  /** Both directions of the time before. */
  previousInbound: number;
  previousOutbound: number;
  isObserved: boolean;
  isPreviousObserved: boolean;
}

/** Sums of a range by server or address, beside those of the same length of time before where they are wanted. */
export async function listUsageSums(
  db: Queryable,
  scope: ExplorerScope,
  { fromMs, toMs }: UsageRange,
  { by, withPrevious }: { by: 'server' | 'address'; withPrevious: boolean },
): Promise<UsageSum[]> {
  const parts = splitRange({ fromMs, toMs }, 'hours');
  if (withPrevious) parts.unshift(...splitRange({ fromMs: 2 * fromMs - toMs, toMs: fromMs }, 'hours'));
  if (parts.length === 0) return [];
  const address = by === 'address' ? sql`address` : sql`null::text`;
  const isNow = sql`at >= ${new Date(fromMs)}`;
  const isSeen = sql`inbound_minutes <> 0 or outbound_minutes <> 0`;
  const sum = (column: string, when: RawBuilder<unknown>) =>
    sql`coalesce(sum(${sql.ref(column)}) filter (where ${when}), 0)::bigint`;
  // By allocation first: that is a sum over numbers, and few rows are left to be joined.
  const { rows } = await sql<UsageSum>`
    with ${chosen(scope)}, sums as (
      select allocation_id, ${sum('inbound_bytes', isNow)} as inbound, ${sum('outbound_bytes', isNow)} as outbound,
        ${sum('inbound_bytes', sql`not ${isNow}`)} as before_in, ${sum('outbound_bytes', sql`not ${isNow}`)} as before_out,
        coalesce(bool_or(${isSeen}) filter (where ${isNow}), false) as is_observed,
        coalesce(bool_or(${isSeen}) filter (where not ${isNow}), false) as was_observed
      from ${rowsOf(parts, scope)} group by 1)
    select server_id as "serverId", ${address} as address, sum(inbound)::bigint as "inboundBytes",
      sum(outbound)::bigint as "outboundBytes", sum(before_in)::bigint as "previousInbound",
      sum(before_out)::bigint as "previousOutbound", bool_or(is_observed) as "isObserved",
      bool_or(was_observed) as "isPreviousObserved"
    from sums join chosen using (allocation_id) where is_observed or was_observed
    group by 1, 2`.execute(db);
  return rows;
}

/** What is added up to one line: everything, or servers or addresses by the number of their line. */
export type LinesOf =
  | 'all'
  | { servers: readonly { id: number; line: number }[] }
  | { addresses: readonly { address: string; serverId: number; line: number }[] };

/**
 * The course of lines. A step's rate is its bytes over the minutes in which any address of the line was observed; those are
 * counted hour by hour from the bits of all of them.
 */
export async function listLineSteps(
  db: Queryable,
  scope: ExplorerScope,
  range: UsageRange & { stepSeconds: number },
  of: LinesOf,
): Promise<UsageStep[]> {
  const parts = splitRange(range, grainOfStep(range.stepSeconds));
  if (parts.length === 0) return [];
  const line = of === 'all' ? sql`null::bigint` : sql`line`;
  const step = sql`date_bin(make_interval(secs => ${range.stepSeconds}), hour, 'epoch')`;
  const fine = sql`date_bin(make_interval(secs => ${range.stepSeconds}), at, 'epoch')`;
  // Steps of several hours are added up from hours; the bits of an hour can't be those of two.
  const at = range.stepSeconds > 3600 ? sql`date_bin('1 hour', at, 'epoch')` : fine;
  const bits = (minutes: RawBuilder<unknown>) => sql`bit_count((${minutes})::bit(64))`;
  const { rows } = await sql<
    Omit<UsageStep, 'inboundBps' | 'outboundBps'> & { inMinutes: number; outMinutes: number }
  >`
    with ${chosen(scope)}, slots as (
      select ${line} as id, ${at} as hour, sum(inbound_bytes) as inbound, sum(outbound_bytes) as outbound,
        bit_or(inbound_minutes) as in_minutes, bit_or(outbound_minutes) as out_minutes
      from ${rowsOf(parts, scope)} ${of === 'all' ? sql`` : sql`join chosen using (allocation_id)`} ${lineJoin(of)}
      group by 1, 2)
    select id, ${range.stepSeconds > 3600 ? step : sql`hour`} as at, sum(inbound)::bigint as "inboundBytes",
      sum(outbound)::bigint as "outboundBytes", sum(${bits(sql`in_minutes`)})::int as "inMinutes",
      sum(${bits(sql`out_minutes`)})::int as "outMinutes", sum(${bits(sql`in_minutes | out_minutes`)})::int as minutes
    from slots where in_minutes <> 0 or out_minutes <> 0 group by 1, 2 order by 1, 2`.execute(db);
  const rate = (bytes: number | null, minutes: number) =>
    minutes === 0 ? null : ((bytes ?? 0) * 8) / (minutes * 60);
  return rows.map(({ inMinutes, outMinutes, ...row }) => ({
    ...row,
    inboundBps: rate(row.inboundBytes, inMinutes),
    outboundBps: rate(row.outboundBytes, outMinutes),
  }));
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
}

/** 95 % of the observed minutes are not above it; of each server, or of all together. Reads every minute: for a few servers. */
export async function listMinutePercentiles(
  db: Queryable,
  scope: ExplorerScope,
  range: UsageRange,
  by: 'server' | 'all',
): Promise<MinutePercentile[]> {
  const { rows } = await sql<MinutePercentile>`
    with ${chosen(scope)}, by_minute as (
      select ${by === 'server' ? sql`server_id` : sql`null::bigint`} as owner, minute, sum(inbound_bytes) as inbound,
        sum(outbound_bytes) as outbound
      from chosen join protect_minutes using (allocation_id)
      where ${within(sql`minute`, range)} and (inbound_bps is not null or outbound_bps is not null)
      group by 1, 2)
    select owner::bigint as "serverId", (percentile_disc(0.95) within group (order by inbound) * 8 / 60.0)::float8 as "inboundP95",
      (percentile_disc(0.95) within group (order by outbound) * 8 / 60.0)::float8 as "outboundP95"
    from by_minute group by 1`.execute(db);
  return rows;
}
