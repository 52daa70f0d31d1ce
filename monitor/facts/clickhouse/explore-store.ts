/**
 * Sums of a range over any filters, by up to two dimensions, in steps: one statement for everything, its steps and the rows; one for
 * the steps of the rows that are shown; and one for what listened.
 */
import { canonicalAddress } from '#common/ip/index.ts';
import type { Exploration, Explored, ExploredAmount, ExploredDimension } from '../contract/exploration.ts';
import { type Sources, scopeOf } from './address-store.ts';
import { joinsOf, keyColumn, optional, pieces } from './explore-pieces-store.ts';
import { placesMatch } from './prefix-match.ts';
import { captured, within } from './select-store.ts';
import { stepMs } from './site-store.ts';
import { ch, type Fragment, joined, number, numbers, plain, texts } from './statement.ts';

type Key = (string | null)[];

interface AmountRow {
  timeMs: number;
  inBytes: number;
  outBytes: number;
  sent: number;
}

interface SumRow extends AmountRow {
  kind: 'total' | 'step' | 'row';
  k1: string | null;
  k2: string | null;
  /** How many keys there are. */
  groups: number;
}

const daySeconds = 86_400;
const sums = plain(
  'toFloat64(sum(inbound)) as inBytes, toFloat64(sum(outbound)) as outBytes, toFloat64(sum(packets)) as sent',
);

export async function explore(sources: Sources, asked: Exploration, limitMs: number): Promise<Explored> {
  const { stepSeconds, by } = asked;
  const keyed = await keyedPieces(sources, asked);
  const found = await sources.engine.rows<SumRow>(
    ch`
    with ${keyed},
    summed as (
      select step, k1, k2, ${sums}, multiIf(grouping(step) = 0, 'step', grouping(k1) = 0, 'row', 'total') as kind
      from keyed group by grouping sets ((), (step), (k1, k2))),
    placed as (
      select *, row_number() over (partition by kind order by ${orderOf(asked)} desc, isNull(k1), k1, isNull(k2), k2) as place,
        toFloat64(countIf(kind = 'row') over ()) as groups
      from summed)
    select kind, toFloat64(step) as timeMs, k1, k2, inBytes, outBytes, sent, groups
    from placed where kind != 'row' or ${wantedRows(asked)} order by kind, if(kind = 'step', toFloat64(step), toFloat64(place))`,
    limitMs,
  );
  const amountOf = ({ inBytes, outBytes, sent }: AmountRow): ExploredAmount => ({
    inBytes,
    outBytes,
    packets: asked.measure === 'packets' ? sent : null,
  });
  const rows = by.length === 0 ? [] : found.filter((row) => row.kind === 'row');
  const keys = rows.map((row): Key => [row.k1, row.k2]);
  const total = found.find((row) => row.kind === 'total');
  const steps = stepSeconds === null ? [] : found.filter((row) => row.kind === 'step');
  const ofRows =
    stepSeconds === null || keys.length === 0 ? [] : await readRowSteps(sources, keyed, keys, limitMs);
  return {
    rows: rows.map((row, i) => ({ key: by.map((one, n) => canonical(one, keys[i]![n]!)), ...amountOf(row) })),
    groups: by.length === 0 ? 0 : (total?.groups ?? 0),
    total: amountOf(total ?? { timeMs: 0, inBytes: 0, outBytes: 0, sent: 0 }),
    steps: [
      ...steps.map((row) => ({ timeMs: row.timeMs, row: null, ...amountOf(row) })),
      ...ofRows.map((row) => ({ timeMs: row.timeMs, row: row.place, ...amountOf(row) })),
    ],
    observed: stepSeconds === null ? [] : await listObserved(sources, asked, stepSeconds, limitMs),
    grains: ['minutes'],
  };
}

/** `keyed`: the pieces with their step and keys. */
async function keyedPieces(sources: Sources, asked: Exploration): Promise<Fragment> {
  const { by, stepSeconds } = asked;
  const step = stepSeconds === null ? plain('toFloat64(0)') : stepMs(plain('minute'), stepSeconds);
  return ch`${await pieces(sources, asked)},
    keyed as (select ${step} as step, ${keyColumn(by[0])} as k1, ${keyColumn(by[1])} as k2, inbound, outbound, packets
      from pieces ${joinsOf(asked)})`;
}

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

async function readRowSteps(
  sources: Sources,
  keyed: Fragment,
  keys: readonly Key[],
  limitMs: number,
): Promise<(AmountRow & { place: number })[]> {
  return await sources.engine.rows(
    ch`
    with ${keyed}
    select step as timeMs, indexOf(${markedKeys(keys)}, ${marks}) - 1 as place, ${sums}
    from keyed where place >= 0 group by timeMs, place order by place, timeMs`,
    limitMs,
  );
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
