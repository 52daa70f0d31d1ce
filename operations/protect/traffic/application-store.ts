/**
 * Statements of the explorer on applications: what used the most by any of their dimensions, and its course. They count applications
 * whose server sent bytes for them in the last 24 hours, and no others: what strangers send in neither creates nor renews a row
 * (NET-2.4.4).
 *
 * An hour in which an address sent says by itself that its application counts. The others are doubtful: they count where
 * another row of their server's application says so. These are few, so that the large part is read once and looked at with
 * nothing else.
 */
import { type RawBuilder, sql } from 'kysely';
import type { Filter, Sides } from '#service-kit/explorer/index.ts';
import type { Sort } from '#service-kit/pages/index.ts';
import { inTransaction, type Queryable } from '#service-kit/postgres/index.ts';
import { type ExplorerScope, hasFewServers, onlyChosen, seriesOf } from './explorer-store.ts';
import { grainOfStep, type RangePart, splitRange } from './split-range.ts';
import type { UsageRange } from './usage-store.ts';

/** `service`: a name with its port; `flow`: a name by server; `all`: everything together. */
export type ApplicationGroup =
  | 'app'
  | 'service'
  | 'port'
  | 'transport'
  | 'server'
  | 'address'
  | 'flow'
  | 'all';

export interface ApplicationQuery extends UsageRange, RowsQuery {
  by: ApplicationGroup;
  /** Which bytes count. */
  sides: Sides;
}

/** What a group is named by; what it is not grouped by is null. */
export interface ApplicationKey {
  serverId: number | null;
  address: string | null;
  name: string | null;
  transport: string | null;
  serverPort: number | null;
}

export interface ApplicationSum extends ApplicationKey {
  inBytes: number;
  outBytes: number;
  previousIn: number;
  previousOut: number;
  lastSentAt: Date;
  /** Of all groups, not of those returned alone. */
  groups: number;
  allIn: number;
  allOut: number;
  /** Its course where it was read beside the sums. */
  steps: ApplicationStep[] | null;
}

export interface ApplicationStep extends ApplicationKey {
  at: Date;
  inBytes: number;
  outBytes: number;
}

/** The columns that each group is of. */
const groupColumns: Readonly<Record<ApplicationGroup, readonly KeyColumn[]>> = {
  app: ['name'],
  service: ['name', 'transport', 'server_port'],
  port: ['transport', 'server_port'],
  transport: ['transport'],
  server: ['server_id'],
  address: ['server_id', 'address'],
  flow: ['server_id', 'name'],
  all: [],
};
const keyTypes = {
  server_id: sql`bigint`,
  address: sql`text`,
  name: sql`text`,
  transport: sql`text`,
  server_port: sql`integer`,
} as const;
type KeyColumn = keyof typeof keyTypes;
const keys = sql`server_id, address, name, transport, server_port`;
const namedKeys = sql`server_id, address, name, transport, server_port`;

/** The five columns that name a group; what it is not grouped by is null. */
const keysOf = (by: ApplicationGroup): RawBuilder<unknown> =>
  sql.join(
    (Object.keys(keyTypes) as KeyColumn[]).map((column) =>
      groupColumns[by].includes(column)
        ? sql.ref(column)
        : sql`null::${keyTypes[column]} as ${sql.ref(column)}`,
    ),
  );

const isOfServers = (by: ApplicationGroup) => groupColumns[by].includes('server_id');

/** What rows are added up by before they are joined with their series: few of them are left for that. */
function innerKeys(by: ApplicationGroup): SumKey[] {
  // When an application of an address was last sent, all addresses of its server say.
  if (by === 'address') return ['allocation_id', 'name', 'transport', 'server_port'];
  const ofRow = groupColumns[by].filter(
    (column): column is KeyColumn & SumKey => column !== 'server_id' && column !== 'address',
  );
  return [...(isOfServers(by) ? (['allocation_id'] as const) : []), ...ofRow];
}

const withSeries = (by: ApplicationGroup) =>
  isOfServers(by) ? sql`join chosen using (allocation_id)` : sql``;

const stepOf = (stepSeconds: number) => sql`date_bin(make_interval(secs => ${stepSeconds}), at, 'epoch')`;

/**
 * Whether the course of groups is read beside their sums: both are of the same hours then, and there are few groups. Names are
 * too many; the course of those that are shown is looked up by them.
 */
const hasCourse = (by: ApplicationGroup, stepSeconds: number) =>
  ['port', 'transport', 'all'].includes(by) && grainOfStep(stepSeconds) === 'hours';

interface SumRow extends Omit<ApplicationSum, 'steps'> {
  times: Date[] | null;
  inbounds: number[] | null;
  outbounds: number[] | null;
}

/**
 * Applications by one of their dimensions, `limit` of them in the wanted order; what all of them are together stands in each
 * row. `before` is read beside it and has to be shown still.
 */
export async function listApplicationSums(
  db: Queryable,
  scope: ExplorerScope,
  query: ApplicationQuery & {
    before: UsageRange | null;
    order: Sort;
    limit: number;
    /** Of the course that may be read beside the sums. */
    stepSeconds: number;
  },
): Promise<ApplicationSum[]> {
  const { fromMs, toMs, by, sides, stepSeconds } = query;
  const isTimed = hasCourse(by, stepSeconds);
  const parts = {
    now: splitRange({ fromMs, toMs }, 'hours'),
    before: query.before === null ? [] : splitRange(query.before, 'hours'),
  };
  const sums = countedSums(scope, query, parts, {
    ...{ keys: innerKeys(by), isTimed, stepSeconds: isTimed ? stepSeconds : 3600 },
    ...{ hasLastSent: true, hasSilent: by === 'address' },
  });
  const bytes = (column: string, when: string) =>
    sql`case when ${sql.ref(when)} then ${sql.ref(column)} else 0 end`;
  const lastSent =
    by === 'address'
      ? sql`max(last_sent_at) over (partition by server_id, ${identity})`
      : sql.ref('last_sent_at');
  const order = sql`${orderOf(query)} ${query.order.direction === 'asc' ? sql`asc` : sql`desc`}, ${keys}`;
  const statement = sql<SumRow>`
    with ${sums},
    named as (
      select ${keysOf(by)}, ${isTimed ? sql`case when is_now then ${stepOf(stepSeconds)} end` : sql`null::timestamptz`} as step,
        ${bytes('inbound', 'is_now')} as inbound, ${bytes('outbound', 'is_now')} as outbound,
        ${bytes('inbound', 'is_before')} as before_in, ${bytes('outbound', 'is_before')} as before_out, ${lastSent} as last_sent_at
      from sums ${withSeries(by)}),
    groups as (
      select ${keys}, sum(inbound)::bigint as inbound, sum(outbound)::bigint as outbound, sum(before_in)::bigint as before_in,
        sum(before_out)::bigint as before_out, max(last_sent_at) as last_sent_at
      from named group by ${keys} having ${counted(sides, 'sum(inbound)', 'sum(outbound)')} > 0),
    ranked as (
      select *, count(*) over () as groups, sum(inbound) over () as all_in, sum(outbound) over () as all_out
      from groups order by ${order} limit ${query.limit})
    select ${namedKeys}, inbound as in_bytes, outbound as out_bytes, before_in as previous_in,
      before_out as previous_out, last_sent_at, groups::int, all_in::bigint as all_in, all_out::bigint as all_out,
      times, inbounds, outbounds
    from ranked left join lateral (${isTimed ? courseOfRanked : noCourse}) course on true
    order by ${order}`;
  return inTransaction(db, async (trx) => {
    // Sums of every application of every server: written to disk and read again they would take half as long again.
    await sql`select set_config('work_mem', '64MB', true)`.execute(trx);
    return (await statement.execute(trx)).rows.map(withSteps);
  });
}

const noCourse = sql`select null::timestamptz[] as times, null::float8[] as inbounds, null::float8[] as outbounds`;
/** Bytes of steps as fractions, because a list of them is read as numbers; the sums beside them are larger and are looked at. */
const courseOfRanked = sql`
  select array_agg(step order by step) as times, array_agg(inbound::float8 order by step) as inbounds,
    array_agg(outbound::float8 order by step) as outbounds
  from (
    select step, sum(inbound) as inbound, sum(outbound) as outbound from named
    where step is not null and (named.transport, named.server_port) is not distinct from (ranked.transport, ranked.server_port)
    group by step) steps`;

function withSteps({ times, inbounds, outbounds, ...row }: SumRow): ApplicationSum {
  const { serverId, address, name, transport, serverPort } = row;
  const key = { serverId, address, name, transport, serverPort };
  const steps = times?.map((at, index) => ({
    ...{ ...key, at },
    ...{ inBytes: inbounds![index]!, outBytes: outbounds![index]! },
  }));
  return { ...row, steps: steps ?? null };
}

const counted = (sides: Sides, inbound: string, outbound: string) => {
  const columns = [...(sides.in ? [inbound] : []), ...(sides.out ? [outbound] : [])];
  // In an order, a number alone would be a place among the columns.
  return columns.length === 0 ? sql`0::bigint` : sql.raw(columns.join(' + '));
};

/** The column that a group is named by. */
const nameColumn: Readonly<Record<ApplicationGroup, KeyColumn>> = {
  server: 'server_id',
  address: 'address',
  app: 'name',
  service: 'name',
  flow: 'name',
  all: 'server_id',
  port: 'server_port',
  transport: 'transport',
};

function orderOf({ order, by, sides }: ApplicationQuery & { order: Sort }): RawBuilder<unknown> {
  switch (order.by) {
    case 'in':
      return sql.ref('inbound');
    case 'out':
      return sql.ref('outbound');
    case 'last':
      return sql.ref('last_sent_at');
    case 'name':
      return sql.ref(nameColumn[by]);
    case 'change':
      return sql`(inbound + outbound)::float8 / nullif(before_in + before_out, 0)`;
    default:
      return counted(sides, 'inbound', 'outbound');
  }
}

/** The course of what passes the filters and may be shown, by the same groups. */
export async function listApplicationSteps(
  db: Queryable,
  scope: ExplorerScope,
  query: ApplicationQuery & { stepSeconds: number },
): Promise<ApplicationStep[]> {
  const { fromMs, toMs, stepSeconds, by } = query;
  const most = grainOfStep(stepSeconds) === 'hours' ? 'hours' : 'minutes';
  const parts = splitRange({ fromMs, toMs }, most);
  if (parts.length === 0) return [];
  const sums = countedSums(...([scope, query, { now: parts, before: [] }] as const), {
    keys: innerKeys(by),
    isTimed: true,
    stepSeconds,
    hasLastSent: false,
  });
  const { rows } = await sql<ApplicationStep>`
    with ${sums},
    named as (select ${keysOf(by)}, ${stepOf(stepSeconds)} as step, inbound, outbound from sums ${withSeries(by)})
    select ${namedKeys}, step as at, sum(inbound)::bigint as in_bytes, sum(outbound)::bigint as out_bytes
    from named group by ${keys}, step order by step`.execute(db);
  return rows;
}

interface RowsQuery {
  /** Applications that were last sent before it are not shown. */
  shownFromMs: number;
  filters: readonly Filter[];
  /** Only these names. */
  names?: readonly string[];
}

/** Parts of the range, and of the time before where it is read beside it. */
interface RowParts {
  now: readonly RangePart[];
  before: readonly RangePart[];
}

/** What is added up. */
interface SumsExtent {
  /** Columns of a row by which it is added up. */
  keys: readonly SumKey[];
  /** Hours, or shorter steps of what is read from minutes, are parted. */
  isTimed: boolean;
  stepSeconds: number;
  /** All hours in which applications are shown count, because they say when each was last sent. */
  hasLastSent: boolean;
  /** Also those in which the address sent nothing. */
  hasSilent?: boolean;
}
type SumKey = 'allocation_id' | 'name' | 'transport' | 'server_port';

const identity = sql`name, transport, server_port`;
const service = sql`case when transport is null then coalesce(server_port::text, 'unknown')
  when server_port is null then transport else transport || '/' || server_port end`;
const lowerName = sql`lower(name)`;
/** An identity whose parts are equal where they are unknown. */
const comparable = sql`name, coalesce('/' || transport, '') as of_transport, coalesce(server_port, -1) as of_port`;

/** Of these filters those on applications, as conditions on an identity. */
function identityOf({ filters, names }: RowsQuery): RawBuilder<unknown> {
  // The first condition is what the index takes.
  const ofNames =
    names === undefined
      ? []
      : [
          sql`${lowerName} = any(array[${sql.join(names.map((name) => sql`lower(${name}::text)`))}]::text[])`,
          sql`name = any(${[...names]}::text[])`,
        ];
  const conditions = filters.flatMap(({ dimension, is, values }) => {
    const list = sql`any(${values.map((value) => value.toLowerCase())}::text[])`;
    const matches =
      dimension === 'application'
        ? sql`${lowerName} = ${list}`
        : dimension === 'port'
          ? sql`(lower(${service}) = ${list} or coalesce(server_port::text, 'none') = ${list})`
          : dimension === 'transport'
            ? sql`lower(transport) = ${list}`
            : null;
    return matches === null ? [] : [is ? matches : sql`not coalesce(${matches}, false)`];
  });
  const all = [...ofNames, ...conditions];
  return all.length === 0 ? sql`true` : sql.join(all, sql` and `);
}

const hourMs = 3_600_000;
const wholeHours = (parts: readonly RangePart[]) => parts.find(({ grain }) => grain === 'hours');
/** Tens of minutes hold no applications: what is no whole hour is read from minutes. */
const edges = (parts: readonly RangePart[]) => parts.filter(({ grain }) => grain !== 'hours');

/** Whether `at` is one of the hours; false where there are none. */
const inHours = (parts: readonly RangePart[]) => {
  const part = wholeHours(parts);
  return part === undefined
    ? sql`false`
    : sql`(at >= ${new Date(part.fromMs)} and at < ${new Date(part.toMs)})`;
};

interface MinutesExtent {
  isNow: boolean;
  stepSeconds: number;
  query: RowsQuery;
  scope: ExplorerScope;
}

/** Identities in the minutes of a part; `isNow` false for the time before. */
const minutesPart = ({ fromMs, toMs }: RangePart, { isNow, stepSeconds, query, scope }: MinutesExtent) => sql`
  select allocation_id, ${identity}, date_bin(make_interval(secs => ${stepSeconds}), minute, 'epoch') as at,
    sum(seen.inbound_bytes)::bigint as inbound_bytes, sum(seen.outbound_bytes)::bigint as outbound_bytes,
    null::timestamptz as last_sent_at, ${sql.lit(isNow)} as is_now, ${sql.lit(!isNow)} as is_before,
    bool_or(seen.outbound_bytes > 0 and minute > ${new Date(query.shownFromMs)}) as has_sent
  from protect_minutes, jsonb_to_recordset(applications) as seen(name text, transport text, server_port integer,
    inbound_bytes bigint, outbound_bytes bigint)
  where minute >= ${new Date(fromMs)} and minute < ${new Date(toMs)}
    ${onlyChosen(scope)} and ${identityOf(query)}
  group by 1, 2, 3, 4, 5`;

/**
 * Common table expressions up to `sums`: of the keys, with the time where it is parted, the bytes of both directions, and when
 * an address last sent; those of the range and those of the time before in rows of their own. `chosen` are the series of the scope.
 */
function countedSums(
  scope: ExplorerScope,
  query: RowsQuery,
  { now, before }: RowParts,
  { keys, isTimed, stepSeconds, hasLastSent, hasSilent = false }: SumsExtent,
): RawBuilder<unknown> {
  const shownFrom = new Date(query.shownFromMs);
  const passing = sql`${identityOf(query)} ${onlyChosen(scope)}`;
  const [isNow, isBefore] = [inHours(now), inHours(before)];
  const shownHours = sql`at >= ${new Date(Math.floor(query.shownFromMs / hourMs) * hourMs)}`;
  const ofParts = sql`(${isNow} or ${isBefore})`;
  const minutes = [
    ...edges(now).map((part) => minutesPart(part, { isNow: true, stepSeconds, query, scope })),
    ...edges(before).map((part) => minutesPart(part, { isNow: false, stepSeconds, query, scope })),
  ];
  const columns = sql`allocation_id, ${identity}, at, inbound_bytes, outbound_bytes, last_sent_at`;
  // Hours of a few servers are read once and held; those of more take less time to read again than to write down.
  const isHeld = hasFewServers(scope) && (hasLastSent || query.names !== undefined);
  const source = isHeld ? sql`held` : sql`protect_application_hours`;
  const hours = (condition: RawBuilder<unknown>) => sql`
    select ${columns}, ${isNow} as is_now, ${isBefore} as is_before from ${source}
    where ${condition} and ${isHeld ? sql`true` : passing}`;
  const ofMinutes = (condition: RawBuilder<unknown>) =>
    minutes.length === 0
      ? sql``
      : sql`union all select ${columns}, is_now, is_before from observed where ${condition}`;
  const refs = (columns: readonly string[]) => sql.join(columns.map((column) => sql.ref(column)));
  const timedKeys = [...keys, ...(isTimed ? ['at'] : [])];
  const groups = refs([...timedKeys, 'is_now', 'is_before']);
  const amounts = sql`sum(inbound_bytes)::bigint as inbound, sum(outbound_bytes)::bigint as outbound, max(last_sent_at) as last_sent_at`;
  // Each source by itself: rows that are put together before they are added up cost a third more.
  const addedUp = (source: RawBuilder<unknown>) => sql`
    select ${groups}, ${amounts} from (${source}) source group by ${groups}`;
  // Of an hour it is known from its time whether it is of the range: looked at once for its sum, and not for each of its rows.
  const addedUpHours = (condition: RawBuilder<unknown>) =>
    isTimed
      ? sql`
    select ${refs(timedKeys)}, ${isNow} as is_now, ${isBefore} as is_before, inbound, outbound, last_sent_at
    from (select ${refs(timedKeys)}, ${amounts} from (${hours(condition)}) source group by ${refs(timedKeys)}) by_hour`
      : addedUp(hours(condition));
  return sql`
    chosen as materialized (select allocation_id, server_id, address from protect_series where ${seriesOf(scope)}),
    ${minutes.length === 0 ? sql`` : sql`observed as materialized (${sql.join(minutes, sql` union all `)}),`}
    ${isHeld ? sql`held as materialized (select ${columns} from protect_application_hours where ${shownHours} and ${passing}),` : sql``}
    doubtful as materialized (
      select doubtful.*, server_id, coalesce('/' || transport, '') as of_transport, coalesce(server_port, -1) as of_port
      from (
        ${hours(sql`${hasSilent ? shownHours : ofParts} and (last_sent_at is null or last_sent_at <= ${shownFrom})`)}
        ${ofMinutes(sql`not has_sent`)}) doubtful
      join chosen using (allocation_id)),
    sent as materialized (
      select distinct server_id, name, of_transport, of_port from (
        select server_id, ${comparable} from ${source} join chosen using (allocation_id)
        where ${shownHours} and last_sent_at > ${shownFrom} and ${isHeld ? sql`true` : passing} and exists (select from doubtful)
          and allocation_id in (
            select allocation_id from chosen where server_id in (select server_id from doubtful))
        -- By server before anything else: a name alone is of many servers.
        offset 0) of_servers
      where (server_id, name, of_transport, of_port) in (select server_id, name, of_transport, of_port from doubtful)),
    sums as (
      ${addedUpHours(sql`${hasLastSent ? shownHours : ofParts} and last_sent_at > ${shownFrom}`)}
      union all
      ${addedUp(sql`
        select ${columns}, is_now, is_before from doubtful join sent using (server_id, name, of_transport, of_port)
        ${ofMinutes(sql`has_sent`)}`)})`;
}
