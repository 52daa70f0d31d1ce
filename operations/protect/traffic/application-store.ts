/**
 * Statements of the explorer on applications: what used the most by any of their dimensions, and its course. Which of them count,
 * `countedSums` says.
 */
import { type RawBuilder, sql } from 'kysely';
import type { Sides } from '#service-kit/explorer/index.ts';
import type { Sort } from '#service-kit/pages/index.ts';
import { inTransaction, type Queryable } from '#service-kit/postgres/index.ts';
import { countedSums, identity, type RowsQuery, type SumKey } from './application-rows-store.ts';
import type { ExplorerScope } from './explorer-store.ts';
import { grainOfStep, splitRange } from './split-range.ts';
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
const namedKeys = sql`server_id as "serverId", address, name, transport, server_port as "serverPort"`;

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
    select ${namedKeys}, inbound as "inBytes", outbound as "outBytes", before_in as "previousIn",
      before_out as "previousOut", last_sent_at as "lastSentAt", groups::int, all_in::bigint as "allIn",
      all_out::bigint as "allOut", times, inbounds, outbounds
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
    select ${namedKeys}, step as at, sum(inbound)::bigint as "inBytes", sum(outbound)::bigint as "outBytes"
    from named group by ${keys}, step order by step`.execute(db);
  return rows;
}
