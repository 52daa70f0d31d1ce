/**
 * Sums by name as pieces of a query: the kept ones, whole or without some local addresses. What these exchanged is found by an index and
 * taken away from what all did, so that leaving out one server of a thousand is not to read the others.
 */
import { type RawBuilder, sql } from 'kysely';
import { type Exploration, type ExploredFilter, splitPlaces } from '../contract/exploration.ts';
import { conditionOf } from './explore-filters-store.ts';
import { judgedFacts } from './judge-store.ts';
import type { Pieces } from './pieces.ts';
import {
  daySeconds,
  hourSeconds,
  inHours,
  inSpans,
  inStarts,
  type NameParts,
  spansOf,
  tenSeconds,
  uniteSpans,
} from './span-store.ts';

interface Of {
  siteId: number;
}

/** Of more addresses the index finds no small part. */
const excludedMax = 100;

/** Local addresses that filters leave out, where they ask for nothing else of addresses; null: others do, or none does. */
export function excludedLocals(filters: readonly ExploredFilter[]): string[] | null {
  const ofAddress = filters.filter((one) => one.dimension === 'address');
  const places = splitPlaces(ofAddress.flatMap((one) => one.values));
  const isPlain = places.networks.length + places.segments.length === 0;
  const count = places.addresses.length;
  if (!isPlain || count === 0 || count > excludedMax || ofAddress.some((one) => one.is)) return null;
  // This one stands for traffic without a local end.
  return places.addresses.includes('0.0.0.0') ? null : places.addresses;
}

const amounts = ['inbound', 'outbound', 'packets'];
const nameColumns = ['start', 'name', 'protocol', 'server_port', 'direction', ...amounts];

/** Rows without a name hold the sum of all names. */
const isTotal = ({ by }: Pick<Exploration, 'by'>, filters: readonly ExploredFilter[]): boolean =>
  [...by, ...filters.map((one) => one.dimension)].every((one) => one === 'direction');

const grainsOf = (names: NameParts): Pieces['grains'] =>
  new Set([
    ...(names.days.length > 0 ? (['days'] as const) : []),
    ...(names.hours.length > 0 ? (['hours'] as const) : []),
    ...(names.tens.length > 0 ? (['tens'] as const) : []),
    ...(names.judged.length + names.unjudged.length > 0 ? (['minutes'] as const) : []),
  ]);

/** What is kept by name alone, in units that fit the step. */
export function namePieces({ siteId }: Of, asked: Exploration, names: NameParts): Pieces {
  const isOfAll = isTotal(asked, asked.filters);
  const ofSite = sql`site_id = ${siteId} and name is ${sql.raw(isOfAll ? 'null' : 'not null')} and inbound_bytes is not null`;
  const shared = sql`name, protocol, server_port, direction, inbound_bytes, outbound_bytes, null::numeric`;
  const judging = { siteId, judged: [], unjudged: names.unjudged, direction: null };
  return {
    kind: isOfAll ? 'all names' : 'names',
    before: sql`${judgedFacts(judging)},`,
    columns: nameColumns,
    parts: [
      sql`select day, ${shared} from name_days where ${ofSite} and ${inStarts(names.days, daySeconds, 'day')}`,
      sql`select hour, ${shared} from name_hours where ${ofSite} and ${inStarts(names.hours, hourSeconds, 'hour')}`,
      sql`select start, ${shared} from name_tens where ${ofSite} and ${inStarts(names.tens, tenSeconds, 'start')}`,
      sql`select minute, ${shared} from name_minutes where ${ofSite} and ${inSpans(names.judged)}`,
      sql`select minute, ${shared} from judged where owns and ${inSpans(names.unjudged)}`,
    ],
    filters: asked.filters,
    grains: grainsOf(names),
  };
}

/** A table of sums by name, but for days, which hold no address. */
interface KeptTable {
  table: string;
  /** Column of the start. */
  start: string;
  /** Of the units that are read, by the table's name in the statement. */
  isRead: (as: 'b' | 'k') => RawBuilder<unknown>;
  /** Where the addresses of its rows are. */
  locals: string;
}

const keptTables = ({ hours, tens, judged }: NameParts): readonly KeptTable[] => [
  {
    ...{ table: 'name_hours', start: 'hour', locals: 'name_hour_locals' },
    isRead: (as) => inStarts(hours, hourSeconds, `${as}.hour`),
  },
  {
    ...{ table: 'name_tens', start: 'start', locals: 'name_tens' },
    isRead: (as) => inStarts(tens, tenSeconds, `${as}.start`),
  },
  {
    ...{ table: 'name_minutes', start: 'minute', locals: 'name_minutes' },
    isRead: (as) => inSpans(judged, `${as}.minute`),
  },
];

/**
 * The same without these local addresses. A row that is left with no byte is nothing where all of its addresses are left out; where it has
 * others, the sums don't tell whether they had a part of no byte (`emptied`).
 */
export function namePiecesWithout(
  { siteId }: Of,
  asked: Exploration,
  names: NameParts,
  locals: readonly string[],
): Pieces {
  const filters = asked.filters.filter((one) => one.dimension !== 'address');
  const isOfAll = isTotal(asked, filters);
  const tables = keptTables(names);
  const isSame = (start: string) => isSameRow(sql.ref(`b.${start}`), 'b', 'p', isOfAll);
  const ofSite = sql`b.site_id = ${siteId} and b.name is ${sql.raw(isOfAll ? 'null' : 'not null')} and b.inbound_bytes is not null`;
  const isEmptied = sql`b.inbound_bytes = p.inbound and b.outbound_bytes = p.outbound`;
  const isLeftOut = sql`local = any(${[...locals]}::inet[])`;
  const wanted = sql.join([sql`true`, ...filters.map(conditionOf)], sql` and `);
  const left = tables.map(
    ({
      table,
      start,
      isRead,
    }) => sql`select ${sql.ref(`b.${start}`)}, b.name, b.protocol, b.server_port, b.direction,
        b.inbound_bytes - coalesce(p.inbound, 0), b.outbound_bytes - coalesce(p.outbound, 0), null::numeric
      from ${sql.table(table)} b left join part p on ${isSame(start)}
      where ${ofSite} and ${isRead('b')} and (p.start is null or not (${isEmptied}))`,
  );
  const emptied = tables.map(
    ({
      table,
      start,
      isRead,
    }) => sql`select ${table}::text as of_table, p.start, p.direction, p.name, p.protocol, p.server_port
      from ${sql.table(table)} b join part p on ${isSame(start)}
      where ${ofSite} and ${isRead('b')} and ${wanted} and ${isEmptied} and ${isOfAll ? sql`true` : sql`b.name = any(array(select name from part))`}`,
  );
  return {
    kind: isOfAll ? 'all names without addresses' : 'names without addresses',
    before: sql`${judgedFacts({
      ...{ siteId, judged: uniteSpans(spansOf(names.tens, tenSeconds), names.judged) },
      ...{ unjudged: names.unjudged, direction: null, locals },
    })},
    ${partOf(siteId, names, isLeftOut, isOfAll)},
    emptied as materialized (${sql.join(emptied, sql` union all `)}),`,
    columns: nameColumns,
    parts: [
      ...left,
      sql`select minute, ${isOfAll ? sql`null::text` : sql`name`}, protocol, server_port, direction, inbound_bytes, outbound_bytes,
          null::numeric
        from judged where owns and ${inSpans(names.unjudged)} and not ${isLeftOut}`,
    ],
    filters,
    emptied: sql.join(
      tables.map((one) => emptiedLocals(siteId, one, isOfAll)),
      sql` union all `,
    ),
    grains: grainsOf(names),
  };
}

/** The addresses of emptied rows of a table; of all names those of each. Nothing known of a row is an empty list. */
function emptiedLocals(
  siteId: number,
  { table, start, isRead, locals }: KeptTable,
  isOfAll: boolean,
): RawBuilder<unknown> {
  const ofTable = sql`e.of_table = ${table}`;
  const named = sql`k.name is not null ${isOfAll ? sql`` : sql`and k.name = any(array(select e.name from emptied e where ${ofTable}))`}`;
  // What is known of a name alone has no part in the sums.
  const isCounted = locals === table ? sql`and k.inbound_bytes is not null` : sql``;
  return sql`
    select coalesce(k.locals, ''::bytea) as locals
    from emptied e left join (select k.* from ${sql.table(locals)} k where k.site_id = ${siteId} and ${isRead('k')} and ${named}
      and ${sql.ref(`k.${start}`)} = any(array(select e.start from emptied e where ${ofTable}))) k
      on ${isSameRow(sql.ref(`k.${start}`), 'k', 'e', isOfAll)} ${isCounted}
    where ${ofTable}`;
}

/** `part`: what these local addresses exchanged, in the units of `names`; of all names a row for each direction. */
function partOf(
  siteId: number,
  names: NameParts,
  isLeftOut: RawBuilder<unknown>,
  isOfAll: boolean,
): RawBuilder<unknown> {
  const name = isOfAll
    ? sql`null::text as name, 0 as protocol, null::int as server_port`
    : sql`name, protocol, server_port`;
  const tens = spansOf(names.tens, tenSeconds);
  const isOfMinutes = inSpans(uniteSpans(tens, names.judged));
  return sql`part as materialized (
      select start, direction, ${name}, sum(inbound_bytes) as inbound, sum(outbound_bytes) as outbound
      from (
        select hour as start, direction, name, protocol, server_port, inbound_bytes, outbound_bytes from application_hours
        where site_id = ${siteId} and ${inHours(names.hours)} and inbound_bytes is not null and ${isLeftOut}
        union all
        select case when ${inSpans(tens)} then date_bin('10 minutes', minute, timestamptz 'epoch') else minute end, direction, name,
          protocol, server_port, inbound_bytes, outbound_bytes
        from judged where owns and ${isOfMinutes} and ${isLeftOut}) each
      group by start, direction ${isOfAll ? sql`` : sql`, name, protocol, server_port`})`;
}

/** The key of a row of what is kept and of another one; of all names they have none. */
const isSameRow = (start: RawBuilder<unknown>, a: string, b: string, isOfAll: boolean) => sql`
  ${sql.ref(`${b}.start`)} = ${start} and ${sql.ref(`${b}.direction`)} = ${sql.ref(`${a}.direction`)}
  ${
    isOfAll
      ? sql``
      : sql`and ${sql.ref(`${b}.name`)} = ${sql.ref(`${a}.name`)} and ${sql.ref(`${b}.protocol`)} = ${sql.ref(`${a}.protocol`)}
        and coalesce(${sql.ref(`${b}.server_port`)}, -1) = coalesce(${sql.ref(`${a}.server_port`)}, -1)`
  }`;
