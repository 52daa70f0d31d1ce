/**
 * Sums of a range over any filters, by up to two dimensions, in steps: one statement for the sums and one for what listened; or,
 * where it is cheap to ask which rows are the largest, one for those, and one each for the steps of everything and of these
 * rows: sums of every key in every step cost more than reading thrice.
 */
import { type RawBuilder, sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type {
  AddressOwner,
  Exploration,
  Explored,
  ExploredAmount,
  ExploredDimension,
  ExploredFilter,
} from '../contract/exploration.ts';
import { listDeviceAddresses } from './device-store.ts';
import { columns, conditionOf, isByName, piecesOf } from './explore-pieces-store.ts';
import { listObserved } from './observed-store.ts';
import { type Coverage, hourSeconds } from './span-store.ts';

interface SumRow {
  kind: 'total' | 'row' | 'step';
  /** Of rows and their steps: the place, from 1; null: everything. */
  place: number | null;
  k1: string | null;
  k2: string | null;
  timeMs: number | null;
  inBytes: number;
  outBytes: number;
  packets: number | null;
  groups: number;
}

export async function explore(db: Queryable, coverage: Coverage, asked: Exploration): Promise<Explored> {
  const { stepSeconds } = asked;
  const narrowed = await narrowToAddresses(db, coverage, asked);
  const sums = isRankedFirst(coverage, narrowed)
    ? await rankThenStep(db, coverage, narrowed)
    : await readSums(db, coverage, narrowed);
  return { ...sums, observed: stepSeconds === null ? [] : await listObserved(db, asked, stepSeconds) };
}

type Sums = Omit<Explored, 'observed'>;

/** Beside its devices a query names the addresses that they had, so that nothing of others is judged. */
async function narrowToAddresses(
  db: Queryable,
  coverage: Coverage,
  asked: Exploration,
): Promise<Exploration> {
  const keys = asked.filters.filter((one) => one.dimension === 'device' && one.is).map((one) => one.values);
  if (keys.length === 0) return asked;
  const values = await listDeviceAddresses(db, coverage, keys[0]!, null);
  return { ...asked, filters: [...asked.filters, { dimension: 'address', is: true, values }] };
}

/** One value of these leaves few remote addresses. */
const narrowing: readonly ExploredDimension[] = ['address', 'device', 'application', 'peer'];
/** So many times more minutes than those that each read would judge. */
const judgedShare = 10;

/**
 * Whether most of the range is kept by the hour, and steps are shorter than that; or there are so many remote addresses that
 * sums of each in each step would not fit into memory; or what is kept of each minute can be read again and again.
 */
function isRankedFirst(coverage: Coverage, asked: Exploration) {
  const { by, stepSeconds, fromMinute, toMinute } = asked;
  if (stepSeconds === null || by.length === 0) return false;
  if (asked.source === 'addresses') return true;
  if (isByName(asked)) {
    const unjudged = coverage
      .namesUpTo(stepSeconds)
      .unjudged.reduce((sum, { from, to }) => sum + to - from, 0);
    return unjudged * judgedShare <= toMinute - fromMinute;
  }
  const isFine = stepSeconds % hourSeconds !== 0;
  const isMany =
    by.includes('peer') && !asked.filters.some(({ dimension, is }) => is && narrowing.includes(dimension));
  return (isFine || isMany) && coverage.hours.length * hourSeconds * 2 > toMinute - fromMinute;
}

/** All reads are of the transaction's snapshot, so steps belong to the sums. */
async function rankThenStep(db: Queryable, coverage: Coverage, asked: Exploration): Promise<Sums> {
  const sums = await readSums(db, coverage, { ...asked, stepSeconds: null });
  const everything = await readSums(db, coverage, { ...asked, by: [] });
  const keys = sums.rows.map((one) => one.key);
  const ofRows = await readSums(db, coverage, {
    ...asked,
    filters: [...asked.filters, ...filtersOf(asked, keys)],
    rows: { keys },
  });
  const grains = new Set([...sums.grains, ...everything.grains, ...ofRows.grains]);
  const placeOf = new Map(keys.map((key, place) => [JSON.stringify(key), place]));
  const rowSteps = ofRows.steps
    .filter((step) => step.row !== null)
    .map((step) => ({ ...step, row: placeOf.get(JSON.stringify(ofRows.rows[step.row!]!.key))! }))
    .sort((a, b) => a.row - b.row || a.timeMs - b.timeMs);
  return { ...sums, steps: [...everything.steps, ...rowSteps], grains: [...grains].sort() };
}

/** What can be left out unread when only these keys are wanted; they may let more pass. */
function filtersOf(
  { by, owners, networks }: Exploration,
  keys: Sums['rows'][number]['key'][],
): ExploredFilter[] {
  return by.flatMap((dimension, n): ExploredFilter[] => {
    const values = [...new Set(keys.map((key) => key[n]!))];
    // Rows without a value match no filter.
    if (values.includes(null!)) return [];
    const known = new Set(values);
    switch (dimension) {
      case 'server':
      case 'customer': {
        const owned = owners.filter((one) => one[dimension] !== null && known.has(one[dimension]));
        return [{ dimension: 'address', is: true, values: [...new Set(owned.map((one) => one.address))] }];
      }
      case 'country':
      case 'as': {
        const within = networks.filter((one) => one[dimension] !== null && known.has(one[dimension]));
        return [{ dimension: 'peer', is: true, values: within.map((one) => one.peer) }];
      }
      default:
        return [{ dimension, is: true, values }];
    }
  });
}

async function readSums(db: Queryable, coverage: Coverage, asked: Exploration): Promise<Sums> {
  const { measure, stepSeconds, by } = asked;
  const pieces = piecesOf(coverage, asked);
  const size = orderOf(asked);
  const step =
    stepSeconds === null
      ? sql`null::timestamptz`
      : sql`date_bin(make_interval(secs => ${stepSeconds}), b.start, timestamptz 'epoch')`;
  const timeMs = (of: string) => sql`(extract(epoch from ${sql.ref(of)}) * 1000)::float8`;
  const key = (n: number) => (by[n] === undefined ? sql`null::text` : columns[by[n]]!);
  // Whole numbers below 2^63: sums of numerics would take three times as long.
  const sumOf = (column: string) => sql`sum(${sql.ref(column)}::bigint)::bigint`;
  const packets = measure === 'packets' ? sumOf('packets') : sql`null::bigint`;
  const sums = sql`${sumOf('inbound')} as inbound, ${sumOf('outbound')} as outbound, ${packets} as packets`;
  const amounts = sql`coalesce(inbound, 0)::float8 as "inBytes", coalesce(outbound, 0)::float8 as "outBytes",
    ${measure === 'packets' ? sql`coalesce(packets, 0)::float8` : sql`null::float8`} as packets`;
  const named = sql.join(pieces.columns.map((one) => sql.ref(one)));
  const wanted = sql.join([sql`true`, ...asked.filters.map(conditionOf)], sql` and `);
  const summed = pieces.parts.map(
    (part) => sql`select ${step} as step, ${rawColumns(by)} ${sums}
      from (${part}) b(${named}) where ${wanted} group by ${rawColumns(by)} 1`,
  );
  const { rows } = await sql<SumRow>`
    with ${pieces.before}
    -- Texts and names are made of sums, not of every row.
    by_raw as materialized (${sql.join(summed, sql` union all `)}),
    by_step as materialized (
      select step, ${key(0)} as k1, ${key(1)} as k2, ${sums} from by_raw b ${captureJoin(by)} ${ownerJoins(asked)} ${networkJoin(asked)}
      group by 1, 2, 3),
    keys as materialized (
      select *, row_number() over (order by ${size} desc, k1 collate "C", k2 collate "C")::int as place,
        count(*) over ()::int as groups
      from (select k1, k2, ${sums} from by_step group by k1, k2) s where ${by.length > 0}),
    ranked as materialized (select * from keys where ${wantedRows(asked)} order by place)
    select 'total' as kind, null::int as place, null as k1, null as k2, null::float8 as "timeMs", ${amounts},
      coalesce((select max(groups) from keys), 0) as groups
    from (select ${sums} from by_step) t
    union all
    select 'row', place, k1, k2, null, ${amounts}, 0 from ranked
    union all
    select 'step', null, null, null, ${timeMs('step')}, ${amounts}, 0
    from (select step, ${sums} from by_step group by step) t where step is not null
    union all
    select 'step', r.place, null, null, ${timeMs('s.step')}, ${stepAmounts(measure)}, 0
    from by_step s join ranked r on ${isSame('k1')} and ${isSame('k2')}
    where s.step is not null
    order by 1, 2 nulls first, 5`.execute(db);
  return { ...toExplored(rows, by.length), grains: [...pieces.grains].sort() };
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

function toExplored(rows: readonly SumRow[], width: number): Omit<Explored, 'observed' | 'grains'> {
  const amountOf = ({ inBytes, outBytes, packets }: SumRow): ExploredAmount => ({
    inBytes,
    outBytes,
    packets,
  });
  const found = rows.filter((row) => row.kind === 'row');
  const placeOf = new Map(found.map((row, i) => [row.place, i]));
  const total = rows.find((row) => row.kind === 'total')!;
  return {
    rows: found.map((row) => ({ key: [row.k1, row.k2].slice(0, width), ...amountOf(row) })),
    groups: total.groups,
    total: amountOf(total),
    steps: rows
      .filter((row) => row.kind === 'step')
      .map((row) => ({
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
    where g.k1 is not distinct from keys.k1 and g.k2 is not distinct from keys.k2)`;
}

/** Columns of `pieces` that these dimensions are made of, each once, with a comma after each. */
function rawColumns(by: readonly ExploredDimension[]): RawBuilder<unknown> {
  const names = new Set(by.flatMap((one) => rawNames[one]));
  return sql.join(
    [...names].map((name) => sql`${sql.ref(`b.${name}`)}, `),
    sql``,
  );
}

const rawNames: Readonly<Record<ExploredDimension, readonly string[]>> = {
  address: ['local', 'segment'],
  server: ['local', 'segment'],
  customer: ['local', 'segment'],
  country: ['peer'],
  as: ['peer'],
  device: ['device_key'],
  application: ['name'],
  peer: ['peer'],
  port: ['server_port'],
  transport: ['protocol'],
  direction: ['direction'],
  sensor: ['capture_id'],
  scope: ['vantage'],
};

/** The sensor is that of the capture. */
const captureJoin = (dimensions: readonly ExploredDimension[]) =>
  dimensions.includes('sensor') ? sql`join captures c on c.id = b.capture_id` : sql``;

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
