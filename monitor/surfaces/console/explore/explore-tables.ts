/** The explorer's tables: the largest values of a dimension with share, change and course. */
import type { FastifyRequest } from 'fastify';
import type { Amount, Answer, Dimension, Row } from '#monitor/explorer/index.ts';
import {
  changeText as changeTextOf,
  courseCell,
  dimensionTable,
  manyOf,
  nameOf,
  nothingIn,
  onlyHref,
  sortNames,
  valueCell,
  withoutHref,
} from '#service-kit/explorer/index.ts';
import {
  type Content,
  code,
  formatBytes,
  formatCount,
  html,
  type Sort,
  shareBar,
} from '#service-kit/pages/index.ts';
import { dataTable } from '#service-kit/web/index.ts';
import type { ExploreView } from './explore-view.ts';

/** A row, what is left of all, or all. */
interface Line extends Pick<Row, 'amount' | 'share' | 'previous' | 'rates'> {
  label: string;
  /** Null: unknown, the rest, or all. */
  value: string | null;
  isRest: boolean;
}

export function exploreTable(
  request: FastifyRequest,
  view: ExploreView,
  dimension: Dimension,
  given: Answer,
  whole: Answer,
): Content {
  const answer = withUnattributed(given, whole);
  const hasPrevious = answer.previousTotal !== null;
  const isPackets = answer.measure === 'packets';
  const sort = view.sorts[dimension]!;
  return dataTable<Line>(request, {
    id: dimension,
    url: view.url,
    sort,
    sortParameters: sortNames(dimension),
    caption: `${manyOf(dimension)} by ${answer.measure}`,
    card: { line: ['in', 'out', 'share', 'change'] },
    captionVisible: true,
    rows: sortLines(linesOf(answer), sort, isPackets),
    totals: totalOf(answer),
    columns: [
      {
        key: 'name',
        header: nameOf(dimension),
        cell: (row) => nameCell(view, dimension, row),
        value: (row) => row.value ?? row.label,
        field: dimension,
        sortable: true,
      },
      bytesColumn('in', 'In', (amount) => amount.inBytes),
      bytesColumn('out', 'Out', (amount) => amount.outBytes),
      ...(isPackets ? [packetsColumn] : []),
      {
        key: 'share',
        header: 'Share',
        kind: 'figure',
        cell: (row) => shareBar(row.share),
        value: (row) => row.share,
        sortable: true,
      },
      ...(hasPrevious ? [changeColumn(isPackets)] : []),
      {
        key: 'course',
        header: 'Course',
        kind: 'picture' as const,
        cell: (row) => courseCell(row.label, row.rates),
      },
    ],
    empty: {
      title: `No ${manyOf(dimension).toLowerCase()}`,
      text: answer.limits.find((one) => one.dimension === dimension)?.message ?? nothingIn(view),
    },
  });
}

/**
 * A table of usage that says what the counters of addresses hold beside it: under an attack sensors do not attribute most packets, and
 * port scans are no application. The row has no steps, and the total is that of the counters.
 */
function withUnattributed(answer: Answer, whole: Answer): Answer & { unattributed?: Line } {
  if (answer.source !== 'applications' || whole.source !== 'addresses') return answer;
  const isPackets = answer.measure === 'packets';
  const amount = minus(whole.total, answer.total);
  const size = sizeOf(whole.total, isPackets);
  if (sizeOf(amount, isPackets) <= 0) return answer;
  const scale = sizeOf(answer.total, isPackets) / size;
  const { previousTotal } = answer;
  const previous = previousTotal && whole.previousTotal && minus(whole.previousTotal, previousTotal);
  return {
    ...answer,
    rows: answer.rows.map((row) => ({ ...row, share: row.share * scale })),
    rest: answer.rest && { ...answer.rest, share: answer.rest.share * scale },
    total: whole.total,
    previousTotal: whole.previousTotal,
    unattributed: {
      ...{ label: 'unattributed, as most packets of an attack', value: null, isRest: true },
      ...{ amount, share: 1 - scale, previous, rates: [] },
    },
  };
}

function minus(whole: Amount, part: Amount): Amount {
  const left = (of: (amount: Amount) => number) => Math.max(0, of(whole) - of(part));
  return {
    inBytes: left((one) => one.inBytes),
    outBytes: left((one) => one.outBytes),
    packets: whole.packets === null ? null : left((one) => one.packets ?? 0),
  };
}

function linesOf(answer: Answer & { unattributed?: Line }): Line[] {
  const rows = answer.rows.map((row) => {
    const { label, value } = row.key[0]!;
    return { ...row, label, value, isRest: false };
  });
  const { rest, unattributed } = answer;
  const label = `the rest, ${formatCount(rest?.groups ?? 0)} more`;
  return [
    ...rows,
    ...(rest && rest.groups > 0 ? [{ ...rest, label, value: null, isRest: true }] : []),
    ...(unattributed ? [unattributed] : []),
  ];
}

function totalOf({ rows, total, previousTotal }: Answer): Line {
  const share = rows.length === 0 ? 0 : 1;
  return {
    label: 'Total',
    value: null,
    isRest: true,
    amount: total,
    share,
    previous: previousTotal,
    rates: [],
  };
}

/** What is left stays the last, and so do rows of which nothing is known. */
export function sortLines<T extends SortedLine>(lines: readonly T[], sort: Sort, isPackets: boolean): T[] {
  const sign = sort.direction === 'asc' ? 1 : -1;
  const figure = ({ amount, share, previous }: SortedLine): number | null => {
    switch (sort.by) {
      case 'in':
        return amount.inBytes;
      case 'out':
        return amount.outBytes;
      case 'packets':
        return amount.packets;
      case 'change':
        return previous === null ? null : changeOf(sizeOf(amount, isPackets), sizeOf(previous, isPackets));
      default:
        return share;
    }
  };
  return lines.toSorted((a, b) => {
    if (a.isRest !== b.isRest) return a.isRest ? 1 : -1;
    if (sort.by === 'name') return sign * a.label.localeCompare(b.label, 'en', { numeric: true });
    const [x, y] = [figure(a), figure(b)];
    if (x === null || y === null) return x === y ? 0 : x === null ? 1 : -1;
    return x === y ? 0 : sign * (x < y ? -1 : 1);
  });
}

type SortedLine = Pick<Line, 'label' | 'isRest' | 'amount' | 'share' | 'previous'>;

function nameCell(view: ExploreView, dimension: Dimension, row: Line): Content {
  const text = dimensionTable[dimension].isCode ? code(row.label) : row.label;
  if (row.value === null) return html`<span class="hint">${row.label}</span>`;
  const hrefs = {
    only: onlyHref(view, dimension, row.value),
    without: withoutHref(view, dimension, row.value),
  };
  return valueCell({ text, label: row.label }, hrefs);
}

function bytesColumn(key: string, header: string, of: (amount: Amount) => number) {
  return {
    key,
    header,
    kind: 'figure' as const,
    cell: (row: Line) => formatBytes(of(row.amount)),
    field: `${key}_bytes`,
    value: (row: Line) => of(row.amount),
    sortable: true,
  };
}

const packetsColumn = {
  key: 'packets',
  header: 'Packets',
  kind: 'figure' as const,
  cell: (row: Line) => (row.amount.packets === null ? null : formatCount(row.amount.packets)),
  value: (row: Line) => row.amount.packets,
  sortable: true,
};

export const sizeOf = (amount: Amount, isPackets: boolean): number =>
  isPackets ? (amount.packets ?? 0) : amount.inBytes + amount.outBytes;

function changeColumn(isPackets: boolean) {
  const before = (row: Line) => (row.previous === null ? null : sizeOf(row.previous, isPackets));
  return {
    key: 'change',
    header: 'Change',
    kind: 'figure' as const,
    cell: (row: Line) => changeText(sizeOf(row.amount, isPackets), before(row)),
    field: isPackets ? 'previous_packets' : 'previous_bytes',
    value: before,
    sortable: true,
  };
}

/** How many times as much as before; what is new comes before everything, what was and is nothing is not known. */
const changeOf = (now: number, before: number): number | null =>
  before === 0 && now === 0 ? null : now / before;

/** Against the period before: `+14 %`, `−3 %`, `new`, `12 times`; nothing where it is not known. */
export const changeText = (now: number, before: number | null): string | null =>
  changeTextOf(now, before, (count) => `${count} times`);
