/** The explorer's tables: the largest values of a dimension with share, change and course. Each obeys the range and the filters. */
import type { FastifyRequest } from 'fastify';
import type {
  Exploration,
  ExploredLines,
  RankedDimension,
  RankedValue,
  Ranking,
} from '#operations/protect/index.ts';
import {
  age,
  type Content,
  formatBitRate,
  formatBytes,
  formatCount,
  formatPercent,
  html,
  isoTime,
  link,
  shareBar,
  sparkLine,
} from '#service-kit/pages/index.ts';
import { type DataColumn, dataTable, rowsLimit, wantedFile } from '#service-kit/web/index.ts';
import { tableRows, thinned } from './explore-chart.ts';
import { type ExplorerPlace, manyOf, nameOf } from './place.ts';
import { onlyHref, type TrafficView, withoutHref } from './traffic-view.ts';

/** One table, read. */
export interface ExplorerTable {
  /** 1 is that of the chart's dimension. */
  place: number;
  ranking: Ranking;
  lines: ExploredLines | null;
  /** Of the lines. */
  stepMs: number;
}

/** A row, or what is left of all. */
interface Line {
  row: RankedValue | null;
  label: string;
  inboundBytes: number;
  outboundBytes: number;
  share: number | null;
  rates: readonly (number | null)[];
}

/** Reads the rankings of a page's tables; for a file the wanted one alone, with all its rows. */
export async function readRankings(
  explored: Exploration,
  view: TrafficView,
  request: FastifyRequest,
): Promise<Ranking[]> {
  const wanted = wantedFile(request);
  const dimensions = wanted ? view.tables.filter((one) => one === wanted.id) : view.tables;
  return Promise.all(
    dimensions.map((dimension) => {
      const { order, isAscending } = view.sorts[view.tables.indexOf(dimension)]!;
      const limit = rowsLimit(request, dimension === view.by ? Math.max(tableRows, view.top) : tableRows);
      return explored.rank(dimension, { limit, order, isAscending, hasPercentiles: dimension === 'server' });
    }),
  );
}

/** The pictures of a table's rows: lines of the chart where it has all of them. */
export async function readTableLines(
  explored: Exploration,
  ranking: Ranking,
  ofChart: ExploredLines | null,
): Promise<ExploredLines> {
  const keyOf = (value: string | null, label: string) => JSON.stringify([value, label]);
  const known = new Map(ofChart?.lines.map((line) => [keyOf(line.value, line.label), line]));
  const found = ranking.rows.flatMap((row) => known.get(keyOf(row.value, row.label)) ?? []);
  if (ofChart !== null && found.length === ranking.rows.length) return { times: ofChart.times, lines: found };
  return explored.lines(ranking, { count: ranking.rows.length, hasRest: false });
}

export function exploreTable(
  request: FastifyRequest,
  place: ExplorerPlace,
  view: TrafficView,
  { ranking, lines, place: number, stepMs }: ExplorerTable,
  { nowMs, peersOf }: { nowMs: number; peersOf: (row: RankedValue) => Content },
): Content {
  const { dimension } = ranking;
  const isOfServers = dimension === 'server';
  const hasChange = ranking.rows.some((row) => row.previousBytes !== null);
  // Beside another table there is room for what is asked most.
  const isAlone = number === 1 && view.by !== 'direction';
  const hasSent = ranking.rows.some((row) => row.lastSentAt !== null) && (isAlone || wantedFile(request));
  const hasPercentiles = ranking.rows.some((row) => row.outboundP95 !== null);
  return dataTable<Line>(request, {
    id: dimension,
    caption: `${manyOf(dimension)} by traffic`,
    captionVisible: true,
    card: { line: ['in', 'out', 'total'] },
    url: view.url,
    sort: sortOf(view, number),
    sortParameters: { by: `sort${number}`, direction: `dir${number}` },
    rows: linesOf(view, ranking, lines, stepMs),
    isComplete: ranking.others.count === 0,
    columns: [
      nameColumn(place, view, dimension, peersOf),
      ...(dimension === 'service' ? [serviceColumn] : []),
      bytesColumn('in', 'In', (line) => line.inboundBytes),
      bytesColumn('out', 'Out', (line) => line.outboundBytes),
      {
        key: 'total',
        header: 'Share',
        kind: 'figure',
        sortable: true,
        cell: (line) => shareBar(line.share),
        value: (line) => line.share,
        field: 'share',
      },
      ...(hasChange || wantedFile(request) ? [changeColumn] : []),
      ...(isOfServers && hasPercentiles && (isAlone || wantedFile(request)) ? percentileColumns : []),
      ...(hasSent ? [sentColumn(nowMs)] : []),
      ...(lines === null ? [] : [courseColumn]),
    ],
    fields: fieldsOf(dimension),
    empty: {
      title: `No ${manyOf(dimension).toLowerCase()}`,
      text: 'No traffic of this range passes the filters. Remove a filter or choose a longer range.',
    },
  });
}

const sortOf = (view: TrafficView, number: number) => {
  const { order, isAscending } = view.sorts[number - 1]!;
  return { by: order, direction: isAscending ? 'asc' : 'desc' } as const;
};

function linesOf(view: TrafficView, ranking: Ranking, lines: ExploredLines | null, stepMs: number): Line[] {
  const range = { fromMs: view.range.fromMs, toMs: view.range.toMs, stepMs };
  const rates = lines?.lines.map((line) => thinned(lines.times, line.rates, range)) ?? [];
  const rows: Line[] = ranking.rows.map((row, index) => ({
    ...{ row, label: row.label, inboundBytes: row.inboundBytes, outboundBytes: row.outboundBytes },
    ...{ share: row.share, rates: rates[index] ?? [] },
  }));
  const { others, unnamed } = ranking;
  const all = [...ranking.rows, others, ...(unnamed === null ? [] : [unnamed])];
  const bytes = all.reduce((sum, of) => sum + of.inboundBytes + of.outboundBytes, 0);
  const left = (
    label: string,
    { inboundBytes, outboundBytes }: typeof others | NonNullable<typeof unnamed>,
  ) => {
    const share = (inboundBytes + outboundBytes) / bytes;
    return inboundBytes + outboundBytes === 0
      ? []
      : [{ row: null, label, inboundBytes, outboundBytes, share, rates: [] }];
  };
  return [
    ...rows,
    ...(others.count > 0 ? left(`the rest, ${formatCount(others.count)} more`, others) : []),
    ...(unnamed === null ? [] : left('without an application', unnamed)),
  ];
}

/** Dimensions whose values are written as they are typed. */
const codes: readonly RankedDimension[] = ['address', 'port', 'node'];

function nameColumn(
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
    field: dimension === 'app' || dimension === 'service' ? 'application' : dimension,
    cell: ({ row, label }) => {
      if (row?.value === null || row === null) return html`<span class="hint">${label}</span>`;
      const text = codes.includes(dimension) ? html`<code>${label}</code>` : label;
      const only = link(onlyHref(view, dimension, row.value), text, { label: `Only ${dimension} ${label}` });
      const without = link(withoutHref(view, dimension, row.value), '−', {
        kind: 'quiet',
        label: `Leave out ${label}`,
      });
      const href = place.hrefOf(row, view.range.name === 'custom' ? undefined : view.range.name);
      const page = href && link(href, 'Open', { kind: 'quiet', label: `Open ${label}` });
      return html`${only} <span class="leave-out">${without}${page}${peersOf(row)}</span>`;
    },
  };
}

const serviceColumn: DataColumn<Line> = {
  key: 'service',
  header: 'Port',
  kind: 'code',
  cell: ({ row }) => row?.service ?? '',
  value: ({ row }) => row?.service,
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

const changeColumn: DataColumn<Line> = {
  key: 'change',
  header: 'Change',
  kind: 'figure',
  sortable: true,
  cell: ({ row }) =>
    row === null ? '' : changeText(row.inboundBytes + row.outboundBytes, row.previousBytes),
  value: ({ row }) => row?.previousBytes,
  field: 'previous_bytes',
};

/** Against the period before: `+14 %`, `−3 %`, `new`; null where it is not known. */
export function changeText(now: number, before: number | null): string | null {
  if (before === null) return null;
  if (before === 0) return now === 0 ? 'none' : 'new';
  const change = now / before - 1;
  if (Math.abs(change) < 0.005) return '±0 %';
  if (change >= 9) return `× ${formatCount(Math.round(now / before))}`;
  return `${change < 0 ? '−' : '+'}${formatPercent(Math.abs(change), 0)}`;
}

const rateText = (rate: number | null | undefined) =>
  rate === null || rate === undefined ? '' : formatBitRate(rate);

const percentileColumns: DataColumn<Line>[] = [
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

function sentColumn(nowMs: number): DataColumn<Line> {
  return {
    key: 'last',
    header: 'Last sent',
    sortable: true,
    cell: ({ row }) => (row?.lastSentAt ? age(row.lastSentAt.getTime() + 60_000, nowMs) : ''),
    value: ({ row }) => isoTime(row?.lastSentAt?.getTime()),
    field: 'last_sent_at',
  };
}

const courseColumn: DataColumn<Line> = {
  key: 'course',
  header: 'Course',
  kind: 'picture',
  cell: ({ label, rates }) => (rates.length > 0 ? sparkLine(rates, `${label} over the range`) : ''),
};

function fieldsOf(dimension: RankedDimension) {
  const server = { field: 'server_id', value: ({ row }: Line) => row?.serverId };
  const customer = { field: 'customer_id', value: ({ row }: Line) => row?.tenantId };
  if (dimension === 'server' || dimension === 'address') return [server, customer];
  return dimension === 'customer' ? [customer] : [];
}
