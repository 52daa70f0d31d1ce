/** Columns of the explorer's tables. */
import type { RankedDimension, RankedValue } from '#operations/protect/index.ts';
import {
  changeText as changeTextOf,
  courseCell,
  dimensionTable,
  type Measure,
  nameOf,
  onlyHref,
  valueCell,
  withoutHref,
} from '#service-kit/explorer/index.ts';
import {
  age,
  type Content,
  formatBitRate,
  formatBytes,
  formatCount,
  html,
  isoTime,
  link,
  shareBar,
} from '#service-kit/pages/index.ts';
import type { DataColumn } from '#service-kit/web/index.ts';
import type { ExplorerPlace } from './place.ts';
import type { TrafficView } from './traffic-view.ts';

/** A row, or what is left of all. */
export interface Line {
  row: RankedValue | null;
  label: string;
  inboundBytes: number;
  outboundBytes: number;
  packets: number | null;
  share: number | null;
  rates: readonly (number | null)[];
}

export const beforeOf = (row: RankedValue, measure: Measure) =>
  measure === 'packets' ? row.previousPackets : row.previousBytes;

export type Amount = Pick<Line, 'inboundBytes' | 'outboundBytes' | 'packets'>;

export const sizeOf = ({ inboundBytes, outboundBytes, packets }: Amount, measure: Measure) =>
  measure === 'packets' ? packets : inboundBytes + outboundBytes;

export function nameColumn(
  place: ExplorerPlace,
  view: TrafficView,
  dimension: RankedDimension,
  peersOf: (row: RankedValue) => Content,
): DataColumn<Line> {
  return {
    key: 'name',
    header: nameOf(dimension),
    sortable: true,
    value: (line) => line.row?.label ?? line.label,
    field: dimension === 'service' ? 'application' : dimension,
    cell: ({ row, label }) => {
      if (row?.value === null || row === null) return html`<span class="hint">${label}</span>`;
      const text = dimensionTable[dimension].isCode ? html`<code>${label}</code>` : label;
      const hrefs = {
        only: onlyHref(view, dimension, row.value),
        without: withoutHref(view, dimension, row.value),
      };
      const href = place.hrefOf(row, view.range.name === 'custom' ? undefined : view.range.name);
      const page = href && link(href, 'Open', { kind: 'quiet', label: `Open ${label}` });
      return valueCell({ text, label }, hrefs, {
        onlyLabel: `Only ${dimensionTable[dimension].word} ${label}`,
        more: [page, peersOf(row)],
      });
    },
  };
}

export const serviceColumn: DataColumn<Line> = {
  key: 'service',
  header: 'Port',
  kind: 'code',
  cell: ({ row }) => row?.service ?? '',
  value: ({ row }) => row?.service,
};

export const shareColumn: DataColumn<Line> = {
  key: 'share',
  header: 'Share',
  kind: 'figure',
  sortable: true,
  cell: (line) => shareBar(line.share),
  value: (line) => line.share,
};

function bytesColumn(key: 'in' | 'out', header: string, of: (line: Line) => number): DataColumn<Line> {
  return {
    key,
    header,
    kind: 'figure',
    sortable: true,
    cell: (line) => formatBytes(of(line)),
    value: of,
    field: key === 'in' ? 'inbound_bytes' : 'outbound_bytes',
  };
}

export const bytesColumns: DataColumn<Line>[] = [
  bytesColumn('in', 'In', (line) => line.inboundBytes),
  bytesColumn('out', 'Out', (line) => line.outboundBytes),
];

export const packetsColumn: DataColumn<Line> = {
  key: 'packets',
  header: 'Packets',
  kind: 'figure',
  sortable: true,
  // The cell of what is null is drawn as unknown.
  cell: ({ packets }) => (packets === null ? null : formatCount(packets)),
  value: ({ packets }) => packets,
};

export function changeColumn(measure: Measure): DataColumn<Line> {
  return {
    key: 'change',
    header: 'Change',
    kind: 'figure',
    sortable: true,
    cell: ({ row }) => {
      const size = row && sizeOf(row, measure);
      return row === null ? '' : size === null ? null : changeText(size, beforeOf(row, measure));
    },
    value: ({ row }) => row && beforeOf(row, measure),
    field: measure === 'packets' ? 'previous_packets' : 'previous_bytes',
  };
}

/** Against the period before: `+14 %`, `−3 %`, `new`, `× 12`; null where it is not known. */
export const changeText = (now: number, before: number | null): string | null =>
  changeTextOf(now, before, (count) => `× ${count}`);

const rateText = (rate: number | null | undefined) =>
  rate === null || rate === undefined ? '' : formatBitRate(rate);

export const percentileColumns: DataColumn<Line>[] = [
  {
    key: 'p95in',
    header: 'In, 95th percentile',
    kind: 'figure',
    cell: ({ row }) => rateText(row?.inboundP95),
    value: ({ row }) => row?.inboundP95,
    field: 'inbound_p95_bps',
  },
  {
    key: 'p95',
    header: 'Out, 95th percentile',
    kind: 'figure',
    sortable: true,
    cell: ({ row }) => rateText(row?.outboundP95),
    value: ({ row }) => row?.outboundP95,
    field: 'outbound_p95_bps',
  },
];

export function sentColumn(nowMs: number): DataColumn<Line> {
  return {
    key: 'last',
    header: 'Last sent',
    sortable: true,
    cell: ({ row }) => (row?.lastSentAt ? age(row.lastSentAt.getTime() + 60_000, nowMs) : ''),
    value: ({ row }) => isoTime(row?.lastSentAt?.getTime()),
    field: 'last_sent_at',
  };
}

export const courseColumn: DataColumn<Line> = {
  key: 'course',
  header: 'Course',
  kind: 'picture',
  cell: ({ label, rates }) => courseCell(label, rates),
};

export function fieldsOf(dimension: RankedDimension) {
  const server = { field: 'server_id', value: ({ row }: Line) => row?.serverId };
  const customer = { field: 'customer_id', value: ({ row }: Line) => row?.tenantId };
  if (dimension === 'server' || dimension === 'address') return [server, customer];
  return dimension === 'customer' ? [customer] : [];
}
