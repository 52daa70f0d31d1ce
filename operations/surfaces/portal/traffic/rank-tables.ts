/** Tables of what used the most: applications, ports and servers of a range, each value a filter by one click. */
import { bytesOf, type Rank } from '#operations/protect/index.ts';
import { type Dimension, dimensionTable, type Filter } from '#service-kit/explorer/index.ts';
import {
  age,
  type Column,
  type Content,
  formatBytes,
  formatCount,
  formatPercent,
  type Html,
  html,
  link,
  section,
  shareBar,
  type TableOptions,
  table,
} from '#service-kit/pages/index.ts';
import { filterHref } from './traffic-url.ts';

export interface RankContext {
  /** This page with its range and filters. */
  url: string;
  filters: readonly Filter[];
  nowMs: number;
}

/** Against the same length of time before: `+12 %`, `new`, or that it is not known. */
export function changeOf(rank: Pick<Rank, 'inboundBytes' | 'outboundBytes' | 'previousBytes'>): Content {
  if (rank.previousBytes === null) return html`<span class="unknown">unknown</span>`;
  const bytes = bytesOf(rank);
  if (rank.previousBytes === 0) return bytes === 0 ? 'none' : 'new';
  const change = (bytes - rank.previousBytes) / rank.previousBytes;
  if (Math.abs(change) < 0.005) return '±0 %';
  if (change >= 10) return `× ${formatCount(Math.round(change + 1))}`;
  return `${change > 0 ? '+' : '−'}${formatPercent(Math.abs(change), 0)}`;
}

function bytesColumns<Row extends Rank>(): Column<Row>[] {
  const bytes = (key: string, header: string, pick: (row: Row) => number): Column<Row> => ({
    key,
    header,
    unit: 'bytes',
    kind: 'figure',
    cell: (row) => formatCount(pick(row)),
  });
  return [
    bytes('in', 'In', (row) => row.inboundBytes),
    bytes('out', 'Out', (row) => row.outboundBytes),
    { key: 'share', header: 'Share', kind: 'figure', cell: (row) => shareBar(row.share) },
    { key: 'change', header: 'Change', kind: 'figure', cell: changeOf },
  ];
}

/** A name that adds itself to the filters. */
function filterLink(context: RankContext, dimension: Dimension, value: string, text = value): Content {
  return link(filterHref(context.url, context.filters, dimension, value), text, {
    kind: 'quiet',
    label: `Only ${dimensionTable[dimension].word} ${text}`,
  });
}

/** An application with its service, as one row. */
export interface ApplicationRank extends Rank {
  name: string;
  service: string;
  /** Whether the service is a port that can be filtered by. */
  hasPort: boolean;
}

/** The provider's own port scans, as a row of their own: they are no application. */
const ownScansRow = (bytes: Pick<Rank, 'inboundBytes' | 'outboundBytes'>): ApplicationRank => ({
  ...{ ...bytes, name: 'Port scans by your provider', value: '', service: '', hasPort: false },
  ...{ share: null, previousBytes: null, lastSentAt: null },
});
/** In its place by bytes: of a new server it is nearly everything, and the table is long. */
function withOwnScans(
  ranks: readonly ApplicationRank[],
  ownScans: Pick<Rank, 'inboundBytes' | 'outboundBytes'>,
) {
  const bytes = bytesOf(ownScans);
  if (bytes === 0) return ranks;
  const place = ranks.findIndex((rank) => bytesOf(rank) < bytes);
  return ranks.toSpliced(place < 0 ? ranks.length : place, 0, ownScansRow(ownScans));
}

/** An application has sent; our scans are no sending. */
const isOwnScans = (row: ApplicationRank) => row.lastSentAt === null;

export function applicationsTable(
  ranks: readonly ApplicationRank[],
  ownScans: Pick<Rank, 'inboundBytes' | 'outboundBytes'>,
  context: RankContext,
  files: Pick<TableOptions<ApplicationRank>, 'csvHref' | 'jsonHref'>,
): Html {
  return table<ApplicationRank>({
    caption: 'Applications',
    card: { line: ['in', 'out', 'share', 'service'] },
    refreshSeconds: 60,
    columns: [
      {
        key: 'name',
        header: 'Name',
        cell: (row) => (isOwnScans(row) ? row.name : filterLink(context, 'application', row.name)),
      },
      {
        key: 'service',
        header: 'Service',
        kind: 'code',
        cell: (row) => (row.hasPort ? filterLink(context, 'port', row.service) : row.service),
      },
      ...bytesColumns<ApplicationRank>().map((column) =>
        column.key === 'share' || column.key === 'change'
          ? { ...column, cell: (row: ApplicationRank) => (isOwnScans(row) ? '' : column.cell(row)) }
          : column,
      ),
      {
        key: 'last',
        header: 'Last sent',
        cell: (row) => (row.lastSentAt === null ? '' : age(row.lastSentAt.getTime() + 60_000, context.nowMs)),
      },
    ],
    rows: withOwnScans(ranks, ownScans),
    ...files,
    empty: {
      title: 'No applications in this range',
      text: 'An application appears here when a server sends traffic, for example a web request or an answer to a visitor.',
    },
  });
}

export function portsSection(ranks: readonly Rank[], context: RankContext): Html {
  return section(
    { title: 'Ports', id: 'traffic-ports', description: 'Server ports of the same applications.' },
    table<Rank>({
      caption: 'Ports by traffic',
      card: { line: ['in', 'out', 'share'] },
      refreshSeconds: 60,
      columns: [
        {
          key: 'port',
          header: 'Service',
          kind: 'code',
          cell: (row) => (/\d$/.test(row.value) ? filterLink(context, 'port', row.value) : row.value),
        },
        ...bytesColumns<Rank>(),
      ],
      rows: ranks,
      empty: { title: 'No ports in this range', text: 'The ports of the applications above appear here.' },
    }),
  );
}

/** `12.4 GB in, 3.1 GB out`. */
export function bytesText(of: Pick<Rank, 'inboundBytes' | 'outboundBytes'>): string {
  return `${formatBytes(of.inboundBytes)} in, ${formatBytes(of.outboundBytes)} out`;
}
