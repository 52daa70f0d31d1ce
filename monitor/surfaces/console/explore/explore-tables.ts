/** The explorer's tables: the largest values of a dimension with share, change and course. */
import type { FastifyRequest } from 'fastify';
import type { Amount, Answer, Dimension, Row } from '#monitor/explorer/index.ts';
import {
  type Content,
  code,
  formatBytes,
  formatCount,
  formatPercent,
  html,
  link,
  shareBar,
  sparkLine,
} from '#service-kit/pages/index.ts';
import { dataTable } from '#service-kit/web/index.ts';
import { type ExploreView, manyOf, nameOf, onlyHref, withoutHref } from './explore-view.ts';

/** Values that are written as they are typed. */
const codes: readonly Dimension[] = ['address', 'peer', 'port'];

/** A row, or what is left of all. */
interface Line extends Pick<Row, 'amount' | 'share' | 'previous' | 'rates'> {
  label: string;
  /** Null: unknown, or the rest. */
  value: string | null;
}

export function exploreTable(
  request: FastifyRequest,
  view: ExploreView,
  dimension: Dimension,
  answer: Answer,
): Content {
  const hasPrevious = answer.previousTotal !== null;
  const isPackets = answer.measure === 'packets';
  return dataTable<Line>(request, {
    id: dimension,
    caption: `${manyOf(dimension)} by ${answer.measure}`,
    captionVisible: true,
    rows: linesOf(answer),
    columns: [
      {
        key: 'name',
        header: nameOf(dimension),
        cell: (row) => nameCell(view, dimension, row),
        value: (row) => row.value ?? row.label,
        field: dimension,
      },
      bytesColumn('in', 'In', (amount) => amount.inBytes),
      bytesColumn('out', 'Out', (amount) => amount.outBytes),
      ...(isPackets ? [packetsColumn] : []),
      {
        key: 'share',
        header: 'Share',
        cell: (row) => shareBar(row.share),
        value: (row) => row.share,
      },
      ...(hasPrevious ? [changeColumn(isPackets)] : []),
      {
        key: 'course',
        header: 'Course',
        kind: 'picture' as const,
        cell: (row) => (row.rates.length > 0 ? sparkLine(row.rates, `${row.label} over the range`) : ''),
      },
    ],
    empty: {
      title: `No ${manyOf(dimension).toLowerCase()}`,
      text:
        answer.limits.find((one) => one.dimension === dimension)?.message ??
        'No traffic of this range matches the filters. Remove a filter or choose a longer range.',
    },
  });
}

function linesOf(answer: Answer): Line[] {
  const rows = answer.rows.map((row) => ({ ...row, label: row.key[0]!.label, value: row.key[0]!.value }));
  const { rest } = answer;
  if (!rest || rest.groups === 0) return rows;
  const label = `the rest, ${formatCount(rest.groups)} more`;
  return [...rows, { ...rest, label, value: null }];
}

function nameCell(view: ExploreView, dimension: Dimension, row: Line): Content {
  const text = codes.includes(dimension) ? code(row.label) : row.label;
  if (row.value === null) return html`<span class="hint">${row.label}</span>`;
  const without = link(withoutHref(view, dimension, row.value), '−', {
    kind: 'quiet',
    label: `Leave out ${row.label}`,
  });
  return html`${link(onlyHref(view, dimension, row.value), text)} <span class="leave-out">${without}</span>`;
}

function bytesColumn(key: string, header: string, of: (amount: Amount) => number) {
  return {
    key,
    header,
    kind: 'figure' as const,
    cell: (row: Line) => formatBytes(of(row.amount)),
    field: `${key}_bytes`,
    value: (row: Line) => of(row.amount),
  };
}

const packetsColumn = {
  key: 'packets',
  header: 'Packets',
  kind: 'figure' as const,
  cell: (row: Line) => (row.amount.packets === null ? null : formatCount(row.amount.packets)),
  value: (row: Line) => row.amount.packets,
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
  };
}

/** Against the period before: `+14 %`, `−3 %`, `new`; nothing where it is not known. */
export function changeText(now: number, before: number | null): string | null {
  if (before === null) return null;
  if (before === 0) return now === 0 ? 'none' : 'new';
  const change = now / before - 1;
  if (change >= 9) return `${formatCount(Math.round(now / before))} times`;
  return `${change < 0 ? '−' : '+'}${formatPercent(Math.abs(change), 0)}`;
}
