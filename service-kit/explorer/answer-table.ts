/** An answer as a table, and as the files that have its rows: the largest values of a dimension with share, change and trend. */
import type { FastifyRequest } from 'fastify';
import {
  age,
  type Content,
  code,
  formatBitRate,
  formatBytes,
  formatCount,
  formatPercent,
  html,
  isoTime,
  link,
  type Sort,
  shareBar,
  sparkLine,
} from '#service-kit/pages/index.ts';
import { type DataColumn, dataTable, wantedFile } from '#service-kit/web/index.ts';
import { type Amount, type Answer, orderOf, type Remainder, type RowDetails, sizeOf } from './answer.ts';
import { type Dimension, dimensionTable, manyOf, nameOf } from './dimensions.ts';
import { type ExploreView, type Measure, nothingIn, onlyHref, sortNames, withoutHref } from './view.ts';

/** What differs from program to program. */
export interface TableOptions {
  /** Names of bytes in files. */
  fields: { in: string; out: string };
  /** What else there is of a row, beside the link that leaves it out. */
  moreOf?: (row: Line, dimension: Dimension) => Content;
  nowMs: number;
  /** Stands alone, with room for more columns. */
  isWide: boolean;
}

/** A row, what is left of all, or all. */
export interface Line extends Remainder {
  label: string;
  /** Null: unknown, the rest, or all. */
  value: string | null;
  isRest: boolean;
  details: RowDetails | null;
}

/** Of a table beside another one, the others on demand. */
const firstRows = 5;

export function answerTable(
  request: FastifyRequest,
  view: ExploreView,
  dimension: Dimension,
  answer: Answer,
  options: TableOptions,
): Content {
  const { measure } = answer;
  const isFile = wantedFile(request) !== null;
  const isPackets = measure === 'packets';
  const hasRoom = options.isWide || isFile;
  const hasDetail = (name: keyof RowDetails) => answer.rows.some(({ details }) => details?.[name] != null);
  const hasChange = isFile || answer.rows.some(({ previous }) => previous !== null);
  const sort = view.sorts[dimension]!;
  const columns: DataColumn<Line>[] = [
    {
      key: 'name',
      header: nameOf(dimension),
      cell: (row) => nameCell(view, dimension, row, options),
      // A name that does not say which one it is has its id beside it.
      value: (row) => (row.details ? row.label : (row.value ?? row.label)),
      field: dimension === 'service' ? 'application' : dimension,
      sortable: true,
    },
    ...(dimension === 'service' ? [serviceColumn] : []),
    ...(!isPackets || hasRoom ? bytesColumns(options) : []),
    ...(isPackets ? [packetsColumn] : []),
    shareColumn,
    ...(hasChange ? [changeColumn(measure)] : []),
    ...(hasRoom && hasDetail('percentile95Out') ? percentileColumns : []),
    ...(hasRoom && hasDetail('lastSentMs') ? [sentColumn(options.nowMs)] : []),
    trendColumn(answer),
  ];
  return dataTable<Line>(request, {
    id: dimension,
    url: view.url,
    sort,
    sortParameters: sortNames(dimension),
    caption: `${manyOf(dimension)} by ${isPackets ? 'packets' : 'traffic'}`,
    card: { line: [...(isPackets ? ['packets'] : ['in', 'out']), 'share', 'change'] },
    captionVisible: true,
    rows: sortLines(linesOf(answer), sort, measure),
    ...(!options.isWide && { isFirst: (row: Line, index: number) => index < firstRows || row.isRest }),
    totals: totalOf(answer),
    isComplete: (answer.rest?.groups ?? 0) === 0,
    columns,
    fields: idFields.filter(({ name }) => hasDetail(name)),
    empty: {
      title: `No ${manyOf(dimension).toLowerCase()}`,
      text: answer.limits.find((one) => one.dimension === dimension)?.message ?? nothingIn(view),
    },
  });
}

function linesOf({ rows, rest, apart }: Answer): Line[] {
  const left = { value: null, isRest: true, details: null };
  return [
    ...rows.map((row) => ({ ...row, ...row.key[0]!, isRest: false, details: row.details ?? null })),
    ...(rest && rest.groups > 0
      ? [{ ...rest, ...left, label: `the rest, ${formatCount(rest.groups)} more` }]
      : []),
    ...apart.map((one) => ({ ...one, ...left })),
  ];
}

const totalOf = ({ rows, apart, total, previousTotal }: Answer): Line => ({
  ...{ label: 'Total', value: null, isRest: true, amount: total, previous: previousTotal, rates: [] },
  ...{ share: rows.length + apart.length === 0 ? 0 : 1, details: null },
});

/** What is left stays the last, in its order. */
function sortLines<T extends Pick<Line, 'label' | 'isRest' | 'amount' | 'previous'>>(
  lines: readonly T[],
  sort: Sort,
  measure: Measure,
): T[] {
  const order = orderOf<T>(sort, measure, ({ label }) => label);
  return lines.toSorted((a, b) => (a.isRest || b.isRest ? Number(a.isRest) - Number(b.isRest) : order(a, b)));
}

/** A value that leads to itself alone, with a quiet minus that leaves it out, and what else there is of it. */
function nameCell(view: ExploreView, dimension: Dimension, row: Line, { moreOf }: TableOptions): Content {
  const { word, isCode } = dimensionTable[dimension];
  if (row.value === null) return html`<span class="hint">${row.label}</span>`;
  const only = link(onlyHref(view, dimension, row.value), isCode ? code(row.label) : row.label, {
    label: `Only ${word} ${row.label}`,
  });
  const without = link(withoutHref(view, dimension, row.value), '−', {
    ...{ kind: 'quiet', label: `Leave out ${row.label}` },
  });
  return html`${only} <span class="leave-out">${without}${moreOf?.(row, dimension) ?? ''}</span>`;
}

const serviceColumn: DataColumn<Line> = {
  key: 'service',
  header: 'Port',
  kind: 'code',
  cell: ({ details }) => details?.service ?? '',
  value: ({ details }) => details?.service,
};

function bytesColumns({ fields }: TableOptions): DataColumn<Line>[] {
  const column = (key: 'in' | 'out', header: string, of: (amount: Amount) => number): DataColumn<Line> => ({
    key,
    header,
    kind: 'figure',
    cell: (row) => formatBytes(of(row.amount)),
    field: fields[key],
    value: (row) => of(row.amount),
    sortable: true,
  });
  return [column('in', 'In', (amount) => amount.inBytes), column('out', 'Out', (amount) => amount.outBytes)];
}

const packetsColumn: DataColumn<Line> = {
  key: 'packets',
  header: 'Packets',
  kind: 'figure',
  // The cell of what is null is drawn as unknown.
  cell: ({ amount: { packets } }) => (packets === null ? null : formatCount(packets)),
  value: ({ amount }) => amount.packets,
  sortable: true,
};

const shareColumn: DataColumn<Line> = {
  key: 'share',
  header: 'Share',
  kind: 'figure',
  cell: (row) => shareBar(row.share),
  value: (row) => row.share,
  sortable: true,
};

function changeColumn(measure: Measure): DataColumn<Line> {
  const before = ({ previous }: Line) => previous && sizeOf(previous, measure);
  return {
    key: 'change',
    header: 'Change',
    kind: 'figure',
    cell: (row) => {
      const size = sizeOf(row.amount, measure);
      return size === null ? null : changeText(size, before(row));
    },
    field: measure === 'packets' ? 'previous_packets' : 'previous_bytes',
    value: before,
    sortable: true,
  };
}

const rateText = (rate: number | null | undefined) =>
  rate === null || rate === undefined ? '' : formatBitRate(rate);

const percentileColumns: DataColumn<Line>[] = [
  {
    key: 'p95in',
    header: 'In, 95th percentile',
    kind: 'figure',
    cell: ({ details }) => rateText(details?.percentile95In),
    value: ({ details }) => details?.percentile95In,
    field: 'inbound_p95_bps',
  },
  {
    key: 'p95',
    header: 'Out, 95th percentile',
    kind: 'figure',
    sortable: true,
    cell: ({ details }) => rateText(details?.percentile95Out),
    value: ({ details }) => details?.percentile95Out,
    field: 'outbound_p95_bps',
  },
];

const sentColumn = (nowMs: number): DataColumn<Line> => ({
  key: 'last',
  header: 'Last sent',
  sortable: true,
  cell: ({ details }) => (details?.lastSentMs ? age(details.lastSentMs + 60_000, nowMs) : ''),
  value: ({ details }) => isoTime(details?.lastSentMs),
  field: 'last_sent_at',
});

/** A small picture of the whole range; nothing for what has no line of its own. */
const trendColumn = (answer: Answer): DataColumn<Line> => ({
  key: 'trend',
  header: 'Trend',
  kind: 'picture',
  cell: ({ label, rates }) =>
    rates.length > 0 ? sparkLine(thinned(answer, rates), `${label} over the range`) : '',
});

/** Points of a small picture. */
const pointsMax = 48;

/** Means of what was observed, with its gaps. */
function thinned({ from, to, stepSeconds, timesMs }: Answer, rates: readonly (number | null)[]) {
  const count = Math.max(1, Math.min(pointsMax, Math.round((to - from) / (stepSeconds ?? to - from))));
  const points = Array.from({ length: count }, () => ({ sum: 0, steps: 0 }));
  rates.forEach((rate, index) => {
    const at = Math.floor(((timesMs[index]! / 1000 - from) / (to - from)) * count);
    const point = points[Math.min(count - 1, Math.max(0, at))];
    if (rate === null || point === undefined) return;
    point.sum += rate;
    point.steps += 1;
  });
  return points.map(({ sum, steps }) => (steps === 0 ? null : sum / steps));
}

const idFields = (
  [
    ['server_id', 'serverId'],
    ['customer_id', 'customerId'],
  ] as const
).map(([field, name]) => ({ field, name, value: ({ details }: Line) => details?.[name] }));

// How a value changed against the period before.

/** `+14 %`, `−3 %`, `new`, `× 12` from ten times on; null where the value before is not known. */
export function changeText(now: number, before: number | null): string | null {
  if (before === null) return null;
  if (before === 0) return now === 0 ? 'none' : 'new';
  const change = now / before - 1;
  if (Math.abs(change) < 0.005) return '±0 %';
  if (change >= 9) return `× ${formatCount(Math.round(now / before))}`;
  return `${change < 0 ? '−' : '+'}${formatPercent(Math.abs(change), 0)}`;
}
