/**
 * The rows of applications that statements of the explorer add up: those of applications whose server sent bytes for them in the
 * last 24 hours, and no others. What strangers send in neither creates nor renews a row (NET-2.4.4).
 *
 * An hour in which an address sent says by itself that its application counts. The others are doubtful: they count where
 * another row of their server's application says so. These are few, so that the large part is read once and looked at with
 * nothing else.
 */
import { type RawBuilder, sql } from 'kysely';
import type { Filter } from '#service-kit/explorer/index.ts';
import { type ExplorerScope, hasFewServers, onlyChosen, seriesOf } from './explorer-store.ts';
import type { RangePart } from './split-range.ts';

export interface RowsQuery {
  /** Applications that were last sent before it are not shown. */
  shownFromMs: number;
  filters: readonly Filter[];
  /** Only these names. */
  names?: readonly string[];
}

/** Parts of the range, and of the time before where it is read beside it. */
export interface RowParts {
  now: readonly RangePart[];
  before: readonly RangePart[];
}

/** What is added up. */
export interface SumsExtent {
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
export type SumKey = 'allocation_id' | 'name' | 'transport' | 'server_port';

export const identity = sql`name, transport, server_port`;
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
export function countedSums(
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
