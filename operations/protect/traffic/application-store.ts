/**
 * Statements of the explorer on applications: what used the most by any of their dimensions, and its course.
 *
 * An application counts only where its server sent bytes for it in the last 24 hours, and nothing older is read: what
 * strangers send in neither creates nor renews a row (NET-2.4.4).
 */
import { type RawBuilder, sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { type ExplorerScope, onlyChosen, seriesOf } from './explorer-store.ts';
import type { TrafficFilter } from './filter.ts';
import { grainOfStep, type RangePart, splitRange } from './split-range.ts';
import type { UsageRange } from './usage-store.ts';

export const applicationGroups = [
  'app',
  'service',
  'port',
  'transport',
  'server',
  'address',
  'flow',
  'all',
] as const;
/** `service`: a name with its port; `flow`: a name by server; `all`: everything together. */
export type ApplicationGroup = (typeof applicationGroups)[number];

export const applicationOrders = ['total', 'in', 'out', 'change', 'last', 'name'] as const;
export type ApplicationOrder = (typeof applicationOrders)[number];

export interface ApplicationQuery extends UsageRange {
  /** Applications before it are not shown. */
  shownFromMs: number;
  filters: readonly TrafficFilter[];
  by: ApplicationGroup;
  /** Only these names, where it is grouped by them. */
  names?: readonly string[];
  /** Which bytes count. */
  directions: { in: boolean; out: boolean };
}

export interface ApplicationSum {
  serverId: number | null;
  address: string | null;
  name: string | null;
  transport: string | null;
  serverPort: number | null;
  inboundBytes: number;
  outboundBytes: number;
  previousInbound: number;
  previousOutbound: number;
  lastSentAt: Date;
  /** Of all groups, not of those returned alone. */
  groups: number;
  allInbound: number;
  allOutbound: number;
}

const service = sql`case when transport is null then coalesce(server_port::text, 'unknown')
  when server_port is null then transport else transport || '/' || server_port end`;

/** Of these filters those on applications, as conditions on an identity. */
function identityOf({ filters, names }: Pick<ApplicationQuery, 'filters' | 'names'>): RawBuilder<unknown> {
  const ofNames = names === undefined ? [] : [sql`name = any(${[...names]}::text[])`];
  const conditions = filters.flatMap(({ dimension, isNot, values }) => {
    const list = sql`any(${values.map((value) => value.toLowerCase())}::text[])`;
    const is =
      dimension === 'app'
        ? sql`lower(name) = ${list}`
        : dimension === 'port'
          ? sql`(lower(${service}) = ${list} or server_port::text = ${list})`
          : dimension === 'transport'
            ? sql`lower(transport) = ${list}`
            : null;
    return is === null ? [] : [isNot ? sql`not coalesce(${is}, false)` : is];
  });
  const all = [...ofNames, ...conditions];
  return all.length === 0 ? sql`true` : sql.join(all, sql` and `);
}

const hourMs = 3_600_000;
const wholeHours = (parts: readonly RangePart[]) => parts.find(({ grain }) => grain === 'hours');
/** Tens of minutes hold no applications: what is no whole hour is read from minutes. */
const edges = (parts: readonly RangePart[]) => parts.filter(({ grain }) => grain !== 'hours');

/** Whether `at` is one of the hours; false where there are none. */
const inHours = (part: RangePart | undefined) =>
  part === undefined ? sql`false` : sql`at >= ${new Date(part.fromMs)} and at < ${new Date(part.toMs)}`;

const seen = sql`jsonb_to_recordset(applications) as seen(name text, transport text, server_port integer,
  inbound_bytes bigint, outbound_bytes bigint)`;

/** Identities in minutes; `isNow` false for the time before. */
const minutesPart = ({ fromMs, toMs }: UsageRange, isNow: boolean) => sql`
  select allocation_id, minute as at, name, transport, server_port, seen.inbound_bytes, seen.outbound_bytes,
    null::timestamptz as last_sent_at, ${sql.lit(isNow)} as is_now, ${sql.lit(!isNow)} as is_before
  from protect_minutes, ${seen}
  where minute >= ${new Date(fromMs)} and minute < ${new Date(toMs)}
    and allocation_id in (select allocation_id from chosen)`;

/**
 * Applications by one of their dimensions, `limit` of them in the wanted order; what all of them are together stands in each
 * row. `before` is read beside it and has to be shown still.
 */
export async function listApplicationSums(
  db: Queryable,
  scope: ExplorerScope,
  query: ApplicationQuery & {
    before: UsageRange | null;
    order: ApplicationOrder;
    isAscending: boolean;
    limit: number;
  },
): Promise<ApplicationSum[]> {
  const { fromMs, toMs, shownFromMs, by, directions } = query;
  const now = splitRange({ fromMs, toMs }, 'hours');
  const before = query.before === null ? [] : splitRange(query.before, 'hours');
  const minutes = [
    ...edges(now).map((part) => minutesPart(part, true)),
    ...edges(before).map((part) => minutesPart(part, false)),
  ];
  const firstHour = new Date(Math.floor(shownFromMs / hourMs) * hourMs);
  const sum = (column: string, when: string) =>
    sql`coalesce(sum(${sql.ref(column)}) filter (where ${sql.ref(when)}), 0)::bigint`;
  const { rows } = await sql<ApplicationSum>`
    with chosen as materialized (select allocation_id, server_id, address from protect_series where ${seriesOf(scope)}),
    rows as (
      select allocation_id, at, name, transport, server_port, inbound_bytes, outbound_bytes, last_sent_at,
        ${inHours(wholeHours(now))} as is_now, ${inHours(wholeHours(before))} as is_before
      from protect_application_hours where at >= ${firstHour} ${onlyChosen(scope)}
      ${sql.join(
        minutes.map((one) => sql`union all ${one}`),
        sql` `,
      )}),
    identities as (
      select server_id, ${by === 'address' ? sql`address` : sql`null::text`} as address, name, transport, server_port,
        ${sum('inbound_bytes', 'is_now')} as inbound, ${sum('outbound_bytes', 'is_now')} as outbound,
        ${sum('inbound_bytes', 'is_before')} as before_in, ${sum('outbound_bytes', 'is_before')} as before_out,
        max(last_sent_at) as last_sent_at
      from rows join chosen using (allocation_id)
      where ${identityOf(query)}
      group by 1, 2, 3, 4, 5),
    shown as (
      select *, ${by === 'address' ? sql`max(last_sent_at) over (partition by server_id, name, transport, server_port)` : sql`last_sent_at`} as sent_at
      from identities)
    select ${keyColumns(by)}, sum(inbound)::bigint as "inboundBytes", sum(outbound)::bigint as "outboundBytes",
      sum(before_in)::bigint as "previousInbound", sum(before_out)::bigint as "previousOutbound",
      max(sent_at) as "lastSentAt", (count(*) over ())::int as groups,
      (sum(sum(inbound)) over ())::bigint as "allInbound", (sum(sum(outbound)) over ())::bigint as "allOutbound"
    from shown where sent_at > ${new Date(shownFromMs)}
    group by 1, 2, 3, 4, 5
    having ${counted(directions, 'sum(inbound)', 'sum(outbound)')} > 0
    order by ${orderOf(query)} ${query.isAscending ? sql`asc` : sql`desc`}, 1, 2, 3, 4, 5
    limit ${query.limit}`.execute(db);
  return rows;
}

const counted = (directions: { in: boolean; out: boolean }, inbound: string, outbound: string) => {
  const columns = [...(directions.in ? [inbound] : []), ...(directions.out ? [outbound] : [])];
  return columns.length === 0 ? sql`0` : sql.raw(columns.join(' + '));
};

/** Of the columns of `keyColumns`, the one that names the group. */
const nameColumn: Readonly<Record<ApplicationGroup, RawBuilder<unknown>>> = {
  server: sql`1`,
  address: sql`2`,
  app: sql`3`,
  service: sql`3`,
  flow: sql`3`,
  all: sql`1`,
  port: sql`5`,
  transport: sql`4`,
};

function orderOf({
  order,
  by,
  directions,
}: ApplicationQuery & { order: ApplicationOrder }): RawBuilder<unknown> {
  switch (order) {
    case 'in':
      return sql`6`;
    case 'out':
      return sql`7`;
    case 'last':
      return sql`10`;
    case 'name':
      return nameColumn[by];
    case 'change':
      return sql`sum(inbound + outbound)::float8 / nullif(sum(before_in + before_out), 0)`;
    default:
      return counted(directions, 'sum(inbound)', 'sum(outbound)');
  }
}

/** The five columns that name a group; what it is not grouped by is null. */
function keyColumns(by: ApplicationGroup): RawBuilder<unknown> {
  const has = (...groups: ApplicationGroup[]) => groups.includes(by);
  return sql`${has('server', 'address', 'flow') ? sql`server_id` : sql`null::bigint`} as "serverId",
    ${has('address') ? sql`address` : sql`null::text`} as address,
    ${has('app', 'service', 'flow') ? sql`name` : sql`null::text`} as name,
    ${has('service', 'port', 'transport') ? sql`transport` : sql`null::text`} as transport,
    ${has('service', 'port') ? sql`server_port` : sql`null::integer`} as "serverPort"`;
}

export interface ApplicationStep {
  at: Date;
  serverId: number | null;
  address: string | null;
  name: string | null;
  transport: string | null;
  serverPort: number | null;
  inboundBytes: number;
  outboundBytes: number;
}

/** The course of what passes the filters and may be shown, by the same groups. */
export async function listApplicationSteps(
  db: Queryable,
  scope: ExplorerScope,
  query: ApplicationQuery & { stepSeconds: number },
): Promise<ApplicationStep[]> {
  const { fromMs, toMs, shownFromMs, stepSeconds } = query;
  const most = grainOfStep(stepSeconds) === 'hours' ? 'hours' : 'minutes';
  const parts = splitRange({ fromMs, toMs }, most);
  if (parts.length === 0) return [];
  const firstHour = new Date(Math.floor(shownFromMs / hourMs) * hourMs);
  const minutes = edges(parts).map((part) => minutesPart(part, true));
  const { rows } = await sql<ApplicationStep>`
    with chosen as materialized (select allocation_id, server_id, address from protect_series where ${seriesOf(scope)}),
    sent as (
      select server_id, name, coalesce(transport, '') as of_transport, coalesce(server_port, -1) as of_port
      from protect_application_hours join chosen using (allocation_id)
      where at >= ${firstHour} and last_sent_at > ${new Date(shownFromMs)} and ${identityOf(query)}
      group by 1, 2, 3, 4),
    rows as (
      select allocation_id, at, name, transport, server_port, inbound_bytes, outbound_bytes, last_sent_at,
        true as is_now, false as is_before
      from protect_application_hours where ${inHours(wholeHours(parts))} ${onlyChosen(scope)}
      ${sql.join(
        minutes.map((one) => sql`union all ${one}`),
        sql` `,
      )})
    select ${keyColumns(query.by)}, date_bin(make_interval(secs => ${stepSeconds}), at, 'epoch') as at,
      sum(inbound_bytes)::bigint as "inboundBytes", sum(outbound_bytes)::bigint as "outboundBytes"
    from (select server_id, address, name, transport, server_port, at, inbound_bytes, outbound_bytes,
        coalesce(transport, '') as of_transport, coalesce(server_port, -1) as of_port
      from rows join chosen using (allocation_id)) named
      join sent using (server_id, name, of_transport, of_port)
    group by 1, 2, 3, 4, 5, 6 order by 6`.execute(db);
  return rows;
}
