/** Sums of a range over any filters, by up to two dimensions, in steps: one statement for the sums, one for what listened. */
import { type RawBuilder, sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { AddressOwner, Exploration, Explored, ExploredAmount } from '../contract/exploration.ts';
import { columns, conditionOf, piecesOf, usesDimension } from './explore-pieces-store.ts';
import { listObserved } from './observed-store.ts';
import type { Coverage } from './span-store.ts';

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
  const { measure, stepSeconds, by } = asked;
  const pieces = piecesOf(coverage, asked);
  const size = measure === 'packets' ? sql`packets` : sql`inbound + outbound`;
  const step =
    stepSeconds === null
      ? sql`null::float8`
      : sql`floor(extract(epoch from b.start) / ${stepSeconds}) * ${stepSeconds * 1000}::float8`;
  const key = (n: number) => (by[n] === undefined ? sql`null::text` : columns[by[n]]!);
  const sums = sql`sum(inbound) as inbound, sum(outbound) as outbound, sum(packets) as packets`;
  const amounts = sql`coalesce(inbound, 0)::float8 as "inBytes", coalesce(outbound, 0)::float8 as "outBytes",
    ${measure === 'packets' ? sql`coalesce(packets, 0)::float8` : sql`null::float8`} as packets`;
  const { rows } = await sql<SumRow>`
    with ${pieces.before} pieces as (${pieces.base}),
    by_step as materialized (
      select ${step} as time_ms, ${key(0)} as k1, ${key(1)} as k2, ${sums}
      from pieces b ${joins(asked)} where ${sql.join([sql`true`, ...asked.filters.map(conditionOf)], sql` and `)}
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
    select 'step', null, null, null, time_ms, ${amounts}, 0
    from (select time_ms, ${sums} from by_step group by time_ms) t where time_ms is not null
    union all
    select 'step', r.place, null, null, s.time_ms, ${stepAmounts(measure)}, 0
    from by_step s join ranked r on r.k1 is not distinct from s.k1 and r.k2 is not distinct from s.k2
    where s.time_ms is not null
    order by 1, 2 nulls first, 5`.execute(db);
  return {
    ...toExplored(rows, by.length),
    observed: stepSeconds === null ? [] : await listObserved(db, asked, stepSeconds),
    grains: [...pieces.grains].sort(),
  };
}

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

/** What dimensions need beside the row itself: the capture, and who has the address. */
function joins(asked: Exploration): RawBuilder<unknown> {
  const capture = usesDimension(asked, 'sensor') ? sql`join captures c on c.id = b.capture_id` : sql``;
  if (!usesDimension(asked, 'server', 'customer')) return capture;
  const owners = (name: string, of: readonly AddressOwner[]) => sql`left join unnest(
      ${of.map((one) => one.address)}::inet[], ${of.map((one) => one.segment)}::text[],
      ${of.map((one) => one.server)}::text[], ${of.map((one) => one.customer)}::text[])
    as ${sql.ref(name)}(address, segment, server, customer) on ${sql.ref(`${name}.address`)} = b.local`;
  const [some, all] = [
    asked.owners.filter((one) => one.segment !== ''),
    asked.owners.filter((one) => one.segment === ''),
  ];
  return sql`${capture} ${owners('l', some)} and l.segment = b.segment ${owners('w', all)} and l.address is null`;
}
