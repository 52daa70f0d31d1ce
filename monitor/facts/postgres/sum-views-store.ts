/** One statement for several views of the same rows: sums by all that they are made of, then of each view by its dimensions. */
import { type RawBuilder, sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type {
  AddressOwner,
  Exploration,
  Explored,
  ExploredAmount,
  ExploredDimension,
  ExploredFilter,
  ExploredView,
} from '../contract/exploration.ts';
import { rawNamesOf } from './divide-views.ts';
import { conditionOf } from './explore-filters-store.ts';
import { columns, piecesOf } from './explore-pieces-store.ts';
import { excludedLocals } from './name-pieces-store.ts';
import { listAddresses } from './packed.ts';
import type { PieceQuery, Pieces } from './pieces.ts';
import type { Coverage } from './span-store.ts';

export type Sums = Omit<Explored, 'observed'>;

interface SumRow {
  /** Place of the view; the steps of everything have that of the first. */
  view: number;
  kind: 'total' | 'row' | 'step' | 'emptied';
  /** Of rows and their steps: the place, from 1; null: everything. */
  place: number | null;
  k1: string | null;
  k2: string | null;
  timeMs: number | null;
  inBytes: number;
  outBytes: number;
  packets: number | null;
  groups: number;
  /** Of the total. */
  ownScans: number | null;
}

export interface SummedView extends ExploredView {
  /** Only what these leave has keys; the rest counts in the sums of everything. */
  keyed?: readonly ExploredFilter[];
  /** Only what these leave counts in the sums of this view. */
  only?: readonly ExploredFilter[];
}

/** Sums that were found by taking a part away may lack a row: the facts have to be read. */
export class Undecided extends Error {}

/** The views have the same steps and are made of pieces of one kind. Throws `Undecided`; not of a reading that is direct. */
export async function sumViews(
  db: Queryable,
  coverage: Coverage,
  reading: PieceQuery,
  views: readonly SummedView[],
): Promise<Sums[]> {
  const { measure, source } = reading;
  const { stepSeconds } = views[0]!;
  const pieces = piecesOf(coverage, { ...reading, ...views[0]! });
  const step =
    stepSeconds === null
      ? sql`null::timestamptz`
      : sql`date_bin(make_interval(secs => ${stepSeconds}), b.start, timestamptz 'epoch')`;
  // Whole numbers below 2^63: sums of numerics would take three times as long.
  const sumOf = (column: string) => sql`sum(${sql.ref(column)}::bigint)::bigint`;
  const packets = measure === 'packets' ? sumOf('packets') : sql`null::bigint`;
  const ownScans = source === 'addresses' ? sumOf('own_scans') : sql`null::bigint`;
  const sums = sql`${sumOf('inbound')} as inbound, ${sumOf('outbound')} as outbound, ${packets} as packets,
    ${ownScans} as own_scans`;
  const amounts = sql`coalesce(inbound, 0)::float8 as in_bytes, coalesce(outbound, 0)::float8 as out_bytes,
    ${measure === 'packets' ? sql`coalesce(packets, 0)::float8` : sql`null::float8`} as packets`;
  const named = sql.join(pieces.columns.map((one) => sql.ref(one)));
  const wanted = sql.join([sql`true`, ...pieces.filters.map(conditionOf)], sql` and `);
  const raw = [sql`${step} as step`, ...rawColumns(views)];
  const summed = pieces.parts.map(
    (part) => sql`select ${sql.join(raw)}, ${sums}
      from (${part}) b(${named}) where ${wanted} group by ${sql.join(raw.map((_, i) => sql.lit(i + 1)))}`,
  );
  const { rows } = await sql<SumRow>`
    with ${pieces.before}
    -- Texts and names are made of sums, not of every row.
    by_raw as materialized (${sql.join(summed, sql` union all `)}),
    ${sql.join(
      views.map((view, i) => groupView({ ...reading, ...view }, view.only ?? [], i, sums)),
      sql`, `,
    )},
    total as materialized (select ${sums} from ${tableOf('by_step', 0)})
    ${sql.join(
      views.map((view, i) => selectView({ ...reading, ...view }, i, amounts)),
      sql` union all `,
    )}
    union all
    select 0, 'step', null, null, null, ${timeMs('step')}, ${amounts}, 0, null
    from (select step, ${sums} from ${tableOf('by_step', 0)} group by step) t where step is not null
    ${selectEmptied(pieces)}
    order by 1, 2, 3 nulls first, 6`.execute(db);
  if (hasOthers(reading, rows)) throw new Undecided();
  return views.map((view, i) => ({
    ...toSums(rows, i, view.by.length),
    grains: [...pieces.grains].sort(),
  }));
}

/** The addresses of rows that were taken out as nothing, in one row, and how many rows have none. */
const selectEmptied = ({ emptied }: Pieces) =>
  emptied === undefined
    ? sql``
    : sql`union all
      select -1, 'emptied', null, encode(string_agg(locals, ''::bytea), 'hex'), null, null, 0, 0, null,
        (count(*) filter (where length(locals) = 0))::int, null
      from (${emptied}) e having count(*) > 0`;

/** Whether a row that was taken out may be of others than those that are left out. */
function hasOthers({ filters }: PieceQuery, rows: readonly SumRow[]): boolean {
  const emptied = rows.find((row) => row.kind === 'emptied');
  if (!emptied) return false;
  const locals = new Set(excludedLocals(filters));
  return emptied.groups > 0 || listAddresses(Buffer.from(emptied.k1!, 'hex')).some((one) => !locals.has(one));
}

const tableOf = (name: 'by_step' | 'keys' | 'ranked', view: number) => sql.table(`${name}_${view}`);
const timeMs = (of: string) => sql`(extract(epoch from ${sql.ref(of)}) * 1000)::float8`;

/** `by_step`, `keys` and `ranked` of a view. */
function groupView(
  asked: Exploration,
  only: readonly ExploredFilter[],
  view: number,
  sums: RawBuilder<unknown>,
): RawBuilder<unknown> {
  const { by } = asked;
  const counted = sql.join([sql`true`, ...only.map(conditionOf)], sql` and `);
  const key = (n: number) => (by[n] === undefined ? sql`null::text` : columns[by[n]]!);
  return sql`${tableOf('by_step', view)} as materialized (
      select step, ${key(0)} as k1, ${key(1)} as k2, ${sums} from by_raw b ${captureJoin(by)} ${ownerJoins(asked)} ${networkJoin(asked)}
      where ${counted} group by 1, 2, 3),
    ${tableOf('keys', view)} as materialized (
      select *, row_number() over (order by ${orderOf(asked)} desc, k1 collate "C", k2 collate "C")::int as place,
        count(*) over ()::int as groups
      from (select k1, k2, ${sums} from ${tableOf('by_step', view)} group by k1, k2) s where ${by.length > 0}),
    ${tableOf('ranked', view)} as materialized (select * from ${tableOf('keys', view)} k where ${wantedRows(asked)} order by place)`;
}

/** The total with the number of groups, the rows and their steps. */
function selectView({ measure, source }: Exploration, view: number, amounts: RawBuilder<unknown>) {
  return sql`
    select ${sql.lit(view)}::int as view, 'total' as kind, null::int as place, null as k1, null as k2, null::float8 as time_ms, ${amounts},
      coalesce((select max(groups) from ${tableOf('keys', view)}), 0) as groups,
      ${source === 'addresses' ? sql`coalesce(own_scans, 0)::float8` : sql`null::float8`} as own_scans
    from total
    union all
    select ${sql.lit(view)}, 'row', place, k1, k2, null, ${amounts}, 0, null from ${tableOf('ranked', view)}
    union all
    select ${sql.lit(view)}, 'step', r.place, null, null, ${timeMs('s.step')}, ${stepAmounts(measure)}, 0, null
    from ${tableOf('by_step', view)} s join ${tableOf('ranked', view)} r on ${isSame('k1')} and ${isSame('k2')}
    where s.step is not null`;
}

/** By what rows are the largest. */
function orderOf({ order, measure }: Exploration): RawBuilder<unknown> {
  if (order !== 'size') return order === 'in' ? sql`inbound` : sql`outbound`;
  return measure === 'packets' ? sql`packets` : sql`inbound + outbound`;
}

/** Equal, or both null, as a hash join takes it. */
const isSame = (column: string) =>
  sql`coalesce(${sql.ref(`r.${column}`)}, '') = coalesce(${sql.ref(`s.${column}`)}, '')
    and (${sql.ref(`r.${column}`)} is null) = (${sql.ref(`s.${column}`)} is null)`;

const stepAmounts = (measure: Exploration['measure']) => sql`s.inbound::float8, s.outbound::float8,
  ${measure === 'packets' ? sql`s.packets::float8` : sql`null::float8`}`;

function toSums(rows: readonly SumRow[], view: number, width: number): Omit<Sums, 'grains'> {
  const amountOf = ({ inBytes, outBytes, packets }: SumRow): ExploredAmount => ({
    inBytes,
    outBytes,
    packets,
  });
  const own = rows.filter((row) => row.view === view);
  const found = own.filter((row) => row.kind === 'row');
  const placeOf = new Map(found.map((row, i) => [row.place, i]));
  const total = own.find((row) => row.kind === 'total')!;
  const ofAll = rows.filter((row) => row.kind === 'step' && row.place === null);
  const ofRows = own.filter((row) => row.kind === 'step' && row.place !== null);
  return {
    rows: found.map((row) => ({ key: [row.k1, row.k2].slice(0, width), ...amountOf(row) })),
    groups: total.groups,
    total: amountOf(total),
    ownScans: total.ownScans,
    steps: [...ofAll, ...ofRows].map((row) => ({
      timeMs: row.timeMs!,
      row: row.place === null ? null : placeOf.get(row.place)!,
      ...amountOf(row),
    })),
  };
}

function wantedRows({ rows, by }: Exploration): RawBuilder<unknown> {
  if ('limit' in rows) return sql`place <= ${rows.limit}`;
  const part = (n: number) => rows.keys.map((key) => key[n] ?? null);
  return sql`exists (select from unnest(${part(0)}::text[], ${part(by.length > 1 ? 1 : 2)}::text[]) as g(k1, k2)
    where g.k1 is not distinct from k.k1 and g.k2 is not distinct from k.k2)`;
}

/** Columns of `pieces` that the views are made of, each once; null where no view that has the column needs it. */
function rawColumns(views: readonly SummedView[]): RawBuilder<unknown>[] {
  return [...rawNamesOf(views.flatMap((one) => one.by))].map((name) => {
    const column = sql.ref(`b.${name}`);
    const conditions = views
      .filter(({ by }) => rawNamesOf(by).has(name))
      .map(({ keyed }) => (keyed?.length ? sql.join(keyed.map(conditionOf), sql` and `) : null));
    return conditions.includes(null)
      ? column
      : sql`case when ${sql.join(conditions, sql` or `)} then ${column} end as ${sql.ref(name)}`;
  });
}

/** The sensor is that of the capture. */
const captureJoin = (dimensions: readonly ExploredDimension[]) =>
  dimensions.includes('sensor') ? sql`left join captures c on c.id = b.capture_id` : sql``;

/** Who has the address. */
function ownerJoins(asked: Exploration): RawBuilder<unknown> {
  if (!asked.by.some((one) => one === 'server' || one === 'customer')) return sql``;
  const owners = (name: string, of: readonly AddressOwner[]) => sql`left join unnest(
      ${of.map((one) => one.address)}::inet[], ${of.map((one) => one.segment)}::text[],
      ${of.map((one) => one.server)}::text[], ${of.map((one) => one.customer)}::text[])
    as ${sql.ref(name)}(address, segment, server, customer) on ${sql.ref(`${name}.address`)} = b.local`;
  const [some, all] = [
    asked.owners.filter((one) => one.segment !== ''),
    asked.owners.filter((one) => one.segment === ''),
  ];
  return sql`${owners('l', some)} and l.segment = b.segment ${owners('w', all)} and l.address is null`;
}

/** Where the peer is. */
function networkJoin({ by, networks }: Exploration): RawBuilder<unknown> {
  if (!by.some((one) => one === 'country' || one === 'as')) return sql``;
  return sql`left join unnest(${networks.map((one) => one.peer)}::inet[], ${networks.map((one) => one.country)}::text[],
      ${networks.map((one) => one.as)}::text[]) as n(peer, country, as_number) on n.peer = b.peer`;
}
