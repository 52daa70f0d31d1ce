/**
 * Sums of a range over any filters, by up to two dimensions, in steps. Where there are few values, one statement finds everything:
 * it reads the facts once, by step and value. Of two dimensions and of peers there may be as many as there are facts, so the steps
 * of the rows that are shown are a statement of their own.
 */
import { canonicalAddress } from '#common/ip/index.ts';
import type { Exploration, Explored, ExploredAmount, ExploredDimension } from '../contract/exploration.ts';
import { type Sources, scopeOf } from './address-store.ts';
import { joinsOf, keyColumn, optional, pieces, sourceColumns } from './explore-pieces-store.ts';
import { placesMatch } from './prefix-match.ts';
import { captured, within } from './select-store.ts';
import { stepMs } from './site-store.ts';
import { ch, type Fragment, joined, number, numbers, plain, texts } from './statement.ts';

type Key = (string | null)[];

interface AmountRow {
  inBytes: number;
  outBytes: number;
  sent: number;
}

interface SumRow extends AmountRow {
  kind: 'total' | 'step' | 'row';
  timeMs: number;
  k1: string | null;
  k2: string | null;
  /** How many keys there are. */
  groups: number;
  ownScans: number;
  /** A row's own: time, bytes in and out, packets. */
  steps: [number, number, number, number][];
}

interface StepRow extends AmountRow {
  timeMs: number;
  /** Of the row; null: of everything. */
  row: number | null;
}

const daySeconds = 86_400;
const sums = plain(
  'toFloat64(sum(inbound)) as inBytes, toFloat64(sum(outbound)) as outBytes, toFloat64(sum(packets)) as sent',
);

export async function explore(sources: Sources, asked: Exploration, limitMs: number): Promise<Explored> {
  const { stepSeconds, by } = asked;
  const hasFew = by.length < 2 && !sourceColumns(by).includes('peer');
  const read = await pieces(sources, asked);
  const found = await readSums(sources, asked, { read, limitMs, hasSteps: stepSeconds !== null && hasFew });
  const amountOf = ({ inBytes, outBytes, sent }: AmountRow): ExploredAmount => ({
    inBytes,
    outBytes,
    packets: asked.measure === 'packets' ? sent : null,
  });
  const rows = by.length === 0 ? [] : found.filter((row) => row.kind === 'row');
  const total = found.find((row) => row.kind === 'total');
  const steps =
    stepSeconds === null
      ? []
      : hasFew
        ? stepsOf(found, rows)
        : await readSteps(sources, asked, { read, limitMs, keys: rows.map((row): Key => [row.k1, row.k2]) });
  return {
    rows: rows.map((row) => ({
      key: by.map((one, n) => canonical(one, n === 0 ? row.k1 : row.k2)),
      ...amountOf(row),
    })),
    groups: by.length === 0 ? 0 : (total?.groups ?? 0),
    total: amountOf(total ?? { inBytes: 0, outBytes: 0, sent: 0 }),
    ownScans: asked.source === 'addresses' ? (total?.ownScans ?? 0) : null,
    steps: steps.map((one) => ({ timeMs: one.timeMs, row: one.row, ...amountOf(one) })),
    observed: stepSeconds === null ? [] : await listObserved(sources, asked, stepSeconds, limitMs),
    grains: ['minutes'],
  };
}

/** The total, with `hasSteps` its steps, and the rows that are asked for, with theirs. */
async function readSums(
  sources: Sources,
  asked: Exploration,
  { read, limitMs, hasSteps }: { read: Fragment; limitMs: number; hasSteps: boolean },
): Promise<SumRow[]> {
  const step = hasSteps ? stepMs(plain('minute'), asked.stepSeconds!) : plain('0');
  const columns = ['step', ...sourceColumns(asked.by)].join(', ');
  return await sources.engine.rows<SumRow>(
    ch`
    with ${read},
    cells as (
      select ${step} as step, ${plain(columns)}, sum(inbound) as inbound, sum(outbound) as outbound, sum(packets) as packets,
        sum(own_scans) as own_scans
      from pieces group by ${plain(columns)}),
    keyed as (
      select step, step as at, ${keyColumn(asked.by[0])} as k1, ${keyColumn(asked.by[1])} as k2, sum(inbound) as inbound,
        sum(outbound) as outbound, sum(packets) as packets, sum(own_scans) as own_scans
      from cells ${joinsOf(asked)} group by step, k1, k2),
    summed as (
      select step, k1, k2, ${sums}, toFloat64(sum(own_scans)) as ownScans,
        multiIf(grouping(step) = 0, 'step', grouping(k1) = 0, 'row', 'total') as kind,
        groupArray((toFloat64(at), toFloat64(inbound), toFloat64(outbound), toFloat64(packets))) as own
      from keyed group by grouping sets ((), (step), (k1, k2))),
    placed as (
      select *, row_number() over (partition by kind order by ${orderOf(asked)} desc, isNull(k1), k1, isNull(k2), k2) as place,
        toFloat64(countIf(kind = 'row') over ()) as groups
      from summed)
    select kind, toFloat64(step) as timeMs, k1, k2, inBytes, outBytes, sent, groups, ownScans,
      if(kind = 'row' and ${plain(hasSteps ? '1' : '0')}, arraySort(own), []) as steps
    from placed where kind != 'row' or ${wantedRows(asked)} order by kind, if(kind = 'step', timeMs, toFloat64(place))`,
    limitMs,
  );
}

const stepsOf = (found: readonly SumRow[], rows: readonly SumRow[]): StepRow[] => [
  ...found.filter((row) => row.kind === 'step').map((row) => ({ ...row, row: null })),
  ...rows.flatMap(({ steps }, row) =>
    steps.map(([timeMs, inBytes, outBytes, sent]) => ({ timeMs, row, inBytes, outBytes, sent })),
  ),
];

/** The text of an address as everywhere else. */
function canonical(dimension: ExploredDimension, text: string | null): string | null {
  if (text === null || (dimension !== 'address' && dimension !== 'peer')) return text;
  const [address = '', ...segment] = text.split('%');
  return [canonicalAddress(address) ?? address, ...segment].join('%');
}

/** By what rows are the largest. */
function orderOf({ order, measure }: Exploration): Fragment {
  if (order !== 'size') return plain(order === 'in' ? 'inBytes' : 'outBytes');
  return plain(measure === 'packets' ? 'sent' : 'inBytes + outBytes');
}

/** Both keys, each with a mark that tells null from blank. */
const marks = plain(`(if(k1 is null, '', concat('=', k1)), if(k2 is null, '', concat('=', k2)))`);
const markedKeys = (keys: readonly (readonly (string | null)[])[]): Fragment =>
  ch`arrayZip(${optional(keys.map((key) => key[0] ?? null))}, ${optional(keys.map((key) => key[1] ?? null))})`;

const wantedRows = ({ rows }: Exploration): Fragment =>
  'limit' in rows
    ? ch`place <= ${number(rows.limit)}`
    : ch`${marks} in (select arrayJoin(${markedKeys(rows.keys)}))`;

/** Steps of everything and of the rows with these keys. */
async function readSteps(
  { engine }: Sources,
  asked: Exploration,
  { read, limitMs, keys }: { read: Fragment; limitMs: number; keys: readonly Key[] },
): Promise<StepRow[]> {
  const found = await engine.rows<AmountRow & { timeMs: number; place: number; isTotal: number }>(
    ch`
    with ${read},
    keyed as (select ${keyColumn(asked.by[0])} as k1, ${keyColumn(asked.by[1])} as k2, minute, inbound, outbound, packets
      from pieces ${joinsOf(asked)}),
    placed as (select ${stepMs(plain('minute'), asked.stepSeconds!)} as step, indexOf(${markedKeys(keys)}, ${marks}) as place,
        sum(inbound) as inbound, sum(outbound) as outbound, sum(packets) as packets
      from keyed group by step, place)
    select toFloat64(step) as timeMs, place - 1 as place, ${sums}, grouping(place) as isTotal
    from placed group by grouping sets ((step), (step, place)) having isTotal = 1 or placed.place > 0
    order by isTotal desc, placed.place, timeMs`,
    limitMs,
  );
  return found.map(({ place, isTotal, ...row }) => ({ ...row, row: isTotal === 1 ? null : place }));
}

/** Minutes in which a capture listened that could see what the filters name: without such a minute, nothing seen is no zero. */
async function listObserved(
  sources: Sources,
  asked: Exploration,
  stepSeconds: number,
  limitMs: number,
): Promise<Explored['observed']> {
  const conditions = [plain('1')];
  for (const { dimension, is, values } of asked.filters) {
    const not = plain(is ? '' : 'not');
    if (dimension === 'sensor') conditions.push(ch`${not} (toString(of_sensor) in ${texts(values)})`);
    if (dimension === 'scope') {
      const vantages = values.map((one) => (one === 'uplink' ? 1 : 2));
      conditions.push(ch`${not} (of_vantage in ${numbers(vantages, 'UInt8')})`);
    }
  }
  const places = asked.filters.filter((one) => one.dimension === 'address' && one.is);
  if (places.length > 0) {
    const { siteId, toMinute } = asked;
    const scope = await scopeOf(sources, { siteId, fromMinute: asked.fromMinute - daySeconds, toMinute });
    const saw = places.map((one) => placesMatch(plain('address'), plain('toString(segment)'), one.values));
    conditions.push(ch`capture_id in (select distinct capture_id from host_minutes
      where ${within(scope)} and not (${scope.foreign('address')}) and ${joined(saw, ' and ')})`);
  }
  return await sources.engine.rows(
    ch`
    with ${captured(asked)}
    select ${stepMs(plain('minute'), stepSeconds)} as timeMs, toFloat64(uniqExact(minute)) as minutes
    from captured where ${joined(conditions, ' and ')} group by timeMs order by timeMs`,
    limitMs,
  );
}
