/**
 * Statements of the explorer on what addresses did: sums by server or address, and their course in steps. Each names the owners
 * and the servers, and reads every part of the range from the coarsest sums that hold it.
 */
import { type RawBuilder, sql } from 'kysely';
import type { Amount } from '#service-kit/explorer/index.ts';
import { asColumns, type Columns, fromColumns, type Queryable } from '#service-kit/postgres/index.ts';
import { grainOfStep, type RangePart, splitRange } from './split-range.ts';
import { packetsOfMinute } from './sum-store.ts';
import type { UsageRange } from './usage-store.ts';

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

/** Servers whose series are few beside all others: what they have is looked up, and not searched for in what all have. */
const fewServersMax = 1_000;
export const hasFewServers = ({ serverIds }: ExplorerScope): boolean =>
  serverIds !== null && serverIds.length <= fewServersMax;

/** Whether every series counts. */
const isEverything = ({ tenantIds, serverIds, addresses }: ExplorerScope) =>
  tenantIds === 'all' && serverIds === null && addresses.length === 0;

/** The series of a scope by themselves, so that a few of them are looked up and not searched for among all. */
const chosen = (scope: ExplorerScope) => sql`chosen as materialized (
  select allocation_id, server_id, address from protect_series where ${seriesOf(scope)})`;

/**
 * A few series are looked up by themselves; all of them are read without a look. As a list in one condition on the index, so
 * that a page that holds rows of several series is read once.
 */
export const onlyChosen = (scope: ExplorerScope): RawBuilder<unknown> => {
  if (isEverything(scope)) return sql``;
  return hasFewServers(scope)
    ? sql`and allocation_id = any(array(select allocation_id from chosen))`
    : sql`and allocation_id in (select allocation_id from chosen)`;
};

/** What is read: bytes alone, or packets beside them. */
export interface Measured {
  hasPackets: boolean;
}

/** Bytes and packets of a part of a range, with its observed minutes as bits: the first minute of each row is the lowest. */
function rowsOfPart(part: RangePart, scope: ExplorerScope, { hasPackets }: Measured): RawBuilder<unknown> {
  const only = onlyChosen(scope);
  const packets = (of: RawBuilder<unknown>) => (hasPackets ? of : sql`null::bigint, 0::bigint`);
  if (part.grain !== 'minutes')
    return sql`select allocation_id, at, inbound_bytes, outbound_bytes, inbound_minutes, outbound_minutes,
        ${packets(sql`packets, coalesce(packet_minutes, 0)`)}
      from ${sql.table(`protect_usage_${part.grain}`)} where ${within(sql`at`, part)} ${only}`;
  const bit = (column: string) => sql`case when ${sql.ref(column)} is null then 0::bigint else 1::bigint end`;
  return sql`select allocation_id, minute, coalesce(inbound_bytes, 0), coalesce(outbound_bytes, 0), ${bit('inbound_bps')},
      ${bit('outbound_bps')}, ${packets(sql`${packetsOfMinute}, ${bit('pps')}`)}
    from protect_minutes where ${within(sql`minute`, part)} and (inbound_bps is not null or outbound_bps is not null) ${only}`;
}

const rowColumns = sql`as part (allocation_id, at, inbound_bytes, outbound_bytes, inbound_minutes, outbound_minutes, packets, packet_minutes)`;
const secondsOfAt = sql`date_part('epoch', at)::bigint`;
/** Where in its hour a row's first minute is. */
const firstMinute: Readonly<Record<RangePart['grain'], RawBuilder<unknown> | null>> = {
  hours: null,
  tens: sql`(${secondsOfAt} / 600 % 6 * 10)::int`,
  minutes: sql`(${secondsOfAt} / 60 % 60)::int`,
};

/** Observed minutes as bits of their hour. */
const inHour = (part: RangePart, column: RawBuilder<unknown>) => {
  const first = firstMinute[part.grain];
  return first === null ? column : sql`${column} << ${first}`;
};

const unionAll = (parts: readonly RangePart[], of: (part: RangePart) => RawBuilder<unknown>) =>
  sql.join(parts.map(of), sql` union all `);

/** What an address did in a range in which it was observed. */
export interface AddressSum {
  allocationId: number;
  serverId: number;
  address: string;
  inBytes: number;
  outBytes: number;
  /** Both directions; null where no minute has them, or they were not asked for. */
  packets: number | null;
  /** Some observed minutes have no packets. */
  arePacketsPartial: boolean;
}
/** Without packets those columns say the same in each row, so they are not sent. */
const sumColumns = ({ hasPackets }: Measured): string[] => [
  ...['allocation_id', 'server_id', 'address', 'in_bytes', 'out_bytes'],
  ...(hasPackets ? ['packets', 'are_packets_partial'] : []),
];
const toSums = (columns: Columns): AddressSum[] =>
  fromColumns<Omit<AddressSum, 'packets' | 'arePacketsPartial'> & Partial<AddressSum>>(columns).map(
    (row) => ({
      allocationId: row.allocationId,
      serverId: row.serverId,
      address: row.address,
      inBytes: row.inBytes,
      outBytes: row.outBytes,
      packets: row.packets ?? null,
      arePacketsPartial: row.arePacketsPartial ?? false,
    }),
  );

/** Sums of what rows of `part` say, and which of their minutes were observed. */
const summed = ({
  hasPackets,
}: Measured) => sql`sum(inbound_bytes)::bigint as inbound, sum(outbound_bytes)::bigint as outbound,
  bit_or(inbound_minutes) as in_minutes, bit_or(outbound_minutes) as out_minutes,
  ${
    hasPackets
      ? sql`(sum(packets) filter (where packet_minutes <> 0))::bigint as packets, bit_or(packet_minutes) as packet_minutes,
        bool_or((inbound_minutes | outbound_minutes) & ~packet_minutes <> 0) as is_partial`
      : sql`null::bigint as packets, 0::bigint as packet_minutes, false as is_partial`
  }`;

/** By allocation first: that is a sum over numbers, and few rows are left to be joined. */
const addressSumsOf = (measured: Measured, sums: RawBuilder<unknown>) =>
  asColumns(
    sql`select allocation_id, server_id, address, inbound as in_bytes, outbound as out_bytes, packets,
        is_partial as are_packets_partial
      from ${sums} sums join chosen using (allocation_id) where in_minutes | out_minutes <> 0`,
    sumColumns(measured),
  );

export async function listAddressSums(
  db: Queryable,
  scope: ExplorerScope,
  range: UsageRange,
  measured: Measured,
): Promise<AddressSum[]> {
  const parts = splitRange(range, 'hours');
  if (parts.length === 0) return [];
  const { rows } = await sql<{ sums: Columns }>`
    with ${chosen(scope)}, sums as (
      select allocation_id, ${summed(measured)}
      from (${unionAll(parts, (part) => rowsOfPart(part, scope, measured))}) ${rowColumns} group by 1)
    select ${addressSumsOf(measured, sql`sums`)} as sums`.execute(db);
  return toSums(rows[0]!.sums);
}

/** What the provider's own port scans caused of all that these series exchanged. */
export async function sumOwnScans(db: Queryable, scope: ExplorerScope, range: UsageRange): Promise<Amount> {
  const rows = (part: RangePart) => {
    const ofPart =
      part.grain === 'minutes'
        ? sql`protect_minutes where ${within(sql`minute`, part)}`
        : sql`${sql.table(`protect_usage_${part.grain}`)} where ${within(sql`at`, part)}`;
    return sql`select own_scan_inbound_bytes as inbound, own_scan_outbound_bytes as outbound
      from ${ofPart} ${onlyChosen(scope)}`;
  };
  const parts = splitRange(range, 'hours');
  if (parts.length === 0) return { inBytes: 0, outBytes: 0, packets: null };
  const { rows: found } = await sql<{ inBytes: number; outBytes: number }>`
    with ${chosen(scope)} select coalesce(sum(inbound), 0)::bigint as in_bytes, coalesce(sum(outbound), 0)::bigint as out_bytes
    from (${unionAll(parts, rows)}) parts`.execute(db);
  return { ...found[0]!, packets: null };
}

/** What is added up to one line: everything, or servers or addresses by the number of their line. */
export type LinesOf =
  | 'all'
  | { servers: readonly { id: number; line: number }[] }
  | { addresses: readonly { address: string; serverId: number; line: number }[] };

/** A step of a line. Rates are means over the minutes in which any of its addresses was observed; null: none. */
export interface LineStep {
  /** Of the line; null: of everything. */
  id: number | null;
  timeMs: number;
  inBytes: number;
  outBytes: number;
  /** Bit/s. */
  inBps: number | null;
  outBps: number | null;
  /** Packets per second of both directions, over the minutes that have packets. */
  pps: number | null;
  /** Minutes with observed traffic. */
  minutes: number;
}

interface StepRow {
  id: number | null;
  timeMs: number;
  inBytes: number;
  outBytes: number;
  inMinutes: number;
  outMinutes: number;
  packets: number | null;
  packetMinutes: number;
  minutes: number;
}
const stepColumns =
  'id time_ms in_bytes out_bytes in_minutes out_minutes packets packet_minutes minutes'.split(' ');

type StepRange = UsageRange & { stepSeconds: number } & Measured;

/**
 * Steps out of sums by `id` and `at`. A step's rate is its bytes over the minutes in which any address of the line was
 * observed; those are counted hour by hour from the bits of all of them.
 */
function stepsOf({ stepSeconds }: StepRange, times: RawBuilder<unknown>): RawBuilder<Columns> {
  const step = (at: RawBuilder<unknown>) =>
    sql`date_bin(make_interval(secs => ${stepSeconds}), ${at}, 'epoch')`;
  // Steps of several hours are added up from hours; the bits of an hour can't be those of two.
  const [hour, at] =
    stepSeconds > 3600 ? [sql`date_bin('1 hour', at, 'epoch')`, step(sql`hour`)] : [step(sql`at`), sql`hour`];
  const bits = (minutes: RawBuilder<unknown>) => sql`sum(bit_count((${minutes})::bit(64)))::int`;
  return asColumns(
    sql`select id, (date_part('epoch', ${at}) * 1000)::bigint as time_ms, sum(inbound)::bigint as in_bytes,
        sum(outbound)::bigint as out_bytes, ${bits(sql`in_minutes`)} as in_minutes, ${bits(sql`out_minutes`)} as out_minutes,
        sum(packets)::bigint as packets, ${bits(sql`packet_minutes`)} as packet_minutes,
        ${bits(sql`in_minutes | out_minutes`)} as minutes
      from (
        select id, ${hour} as hour, sum(inbound) as inbound, sum(outbound) as outbound, bit_or(in_minutes) as in_minutes,
          bit_or(out_minutes) as out_minutes, sum(packets) as packets, bit_or(packet_minutes) as packet_minutes
        from ${times} times group by 1, 2) slots
      where in_minutes <> 0 or out_minutes <> 0 group by 1, 2 order by 1, 2`,
    stepColumns,
  );
}

function toSteps(columns: Columns): LineStep[] {
  const rate = (count: number, minutes: number) => (minutes === 0 ? null : count / (minutes * 60));
  return fromColumns<StepRow>(columns).map(({ inMinutes, outMinutes, packets, packetMinutes, ...row }) => ({
    ...row,
    ...{ inBps: rate(row.inBytes * 8, inMinutes), outBps: rate(row.outBytes * 8, outMinutes) },
    pps: rate(packets ?? 0, packetMinutes),
  }));
}

/** The course of lines. */
export async function listLineSteps(
  db: Queryable,
  scope: ExplorerScope,
  range: StepRange,
  of: LinesOf,
): Promise<LineStep[]> {
  const parts = splitRange(range, grainOfStep(range.stepSeconds));
  if (parts.length === 0) return [];
  const line = of === 'all' ? sql`null::bigint` : sql`line`;
  const join = of === 'all' ? sql`` : sql`join chosen using (allocation_id)`;
  // What all rows of a time have in common is made once for their sum, and not for each of them.
  const times = unionAll(
    parts,
    (part) => sql`
      select id, at, inbound, outbound, ${inHour(part, sql`in_minutes`)} as in_minutes,
        ${inHour(part, sql`out_minutes`)} as out_minutes, packets, ${inHour(part, sql`packet_minutes`)} as packet_minutes
      from (
        select ${line} as id, at, ${summed(range)}
        from (${rowsOfPart(part, scope, range)}) ${rowColumns} ${join} ${lineJoin(of)} group by 1, 2) times`,
  );
  const { rows } = await sql<{ steps: Columns }>`
    with ${chosen(scope)} select ${stepsOf(range, sql`(${times})`)} as steps`.execute(db);
  return toSteps(rows[0]!.steps);
}

/** Sums of addresses and the course of all of them, where both are of the same hours: these are read once for both. */
export async function listSumsWithSteps(
  db: Queryable,
  scope: ExplorerScope,
  range: StepRange,
): Promise<{ sums: AddressSum[]; steps: LineStep[] }> {
  const parts = splitRange(range, 'hours');
  if (parts.length === 0) return { sums: [], steps: [] };
  const inHours = (part: RangePart) => sql`
    select allocation_id, at, inbound_bytes, outbound_bytes, ${inHour(part, sql`inbound_minutes`)},
      ${inHour(part, sql`outbound_minutes`)}, packets, ${inHour(part, sql`packet_minutes`)}
    from (${rowsOfPart(part, scope, range)}) ${rowColumns}`;
  const { rows } = await sql<{ sums: Columns; steps: Columns }>`
    with ${chosen(scope)}, both_ways as materialized (
      select allocation_id, null::bigint as id, at, ${summed(range)}
      from (${unionAll(parts, inHours)}) ${rowColumns} group by grouping sets (allocation_id, at))
    select ${addressSumsOf(range, sql`(select * from both_ways where allocation_id is not null)`)} as sums,
      ${stepsOf(range, sql`(select * from both_ways where allocation_id is null)`)} as steps`.execute(db);
  return { sums: toSums(rows[0]!.sums), steps: toSteps(rows[0]!.steps) };
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
  /** Bit/s. */
  percentile95In: number | null;
  percentile95Out: number | null;
  /** Packets per second; null where they were not asked for. */
  percentile95Packets: number | null;
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
    select owner::bigint as server_id, (percentile_disc(0.95) within group (order by inbound) * 8 / 60.0)::float8 as percentile95_in,
      (percentile_disc(0.95) within group (order by outbound) * 8 / 60.0)::float8 as percentile95_out,
      percentile_disc(0.95) within group (order by pps) as percentile95_packets
    from by_minute group by 1`.execute(db);
  return rows;
}
