/** The explorer's tables: the largest values of a dimension with share, change and course. Each obeys the range and the filters. */
import type { FastifyRequest } from 'fastify';
import type {
  Exploration,
  ExploredLines,
  RankedDimension,
  RankedValue,
  Ranking,
} from '#operations/protect/index.ts';
import { type Measure, manyOf, nothingIn, sortNames } from '#service-kit/explorer/index.ts';
import { type Content, formatCount } from '#service-kit/pages/index.ts';
import { dataTable, rowsLimit, wantedFile } from '#service-kit/web/index.ts';
import { tableRows, thinned } from './explore-chart.ts';
import {
  type Amount,
  beforeOf,
  bytesColumns,
  changeColumn,
  courseColumn,
  fieldsOf,
  type Line,
  nameColumn,
  packetsColumn,
  percentileColumns,
  sentColumn,
  serviceColumn,
  shareColumn,
  sizeOf,
} from './explore-columns.ts';
import { type ExplorerPlace, isOfApplications } from './place.ts';
import { orderOf, type TrafficView } from './traffic-view.ts';

/** One table, read. */
export interface ExplorerTable {
  ranking: Ranking;
  lines: ExploredLines | null;
  /** Of the lines. */
  stepMs: number;
}

/** Reads the rankings of a page's tables; for a file the wanted one alone, with all its rows. */
export async function readRankings(
  explored: Exploration,
  view: TrafficView,
  request: FastifyRequest,
): Promise<Ranking[]> {
  const wanted = wantedFile(request);
  const dimensions = wanted ? view.shown.filter((one) => one === wanted.id) : view.shown;
  return Promise.all(
    dimensions.map((dimension) => {
      const { order, isAscending } = orderOf(view, dimension);
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
  { ranking, lines, stepMs }: ExplorerTable,
  { nowMs, peersOf }: { nowMs: number; peersOf: (row: RankedValue) => Content },
): Content {
  const { dimension } = ranking;
  const isOfServers = dimension === 'server';
  const measure = measureOf(view, dimension);
  const hasChange = ranking.rows.some((row) => beforeOf(row, measure) !== null);
  // Beside another table there is room for what is asked most.
  const isAlone = dimension === view.by;
  const hasSent = ranking.rows.some((row) => row.lastSentAt !== null) && (isAlone || wantedFile(request));
  const hasPercentiles = ranking.rows.some((row) => row.outboundP95 !== null);
  const isPackets = measure === 'packets';
  const hasBytes = !isPackets || isAlone || wantedFile(request) !== null;
  return dataTable<Line>(request, {
    id: dimension,
    caption: `${manyOf(dimension)} by ${isPackets ? 'packets' : 'traffic'}`,
    captionVisible: true,
    card: { line: [...(isPackets ? ['packets'] : []), ...(hasBytes ? ['in', 'out'] : []), 'share'] },
    url: view.url,
    sort: view.sorts[dimension]!,
    sortParameters: sortNames(dimension),
    rows: linesOf(place, view, measure, ranking, lines, stepMs),
    isComplete: ranking.others.count === 0,
    columns: [
      nameColumn(place, view, dimension, peersOf),
      ...(dimension === 'service' ? [serviceColumn] : []),
      ...(hasBytes ? bytesColumns : []),
      ...(isPackets ? [packetsColumn] : []),
      shareColumn,
      ...(hasChange || wantedFile(request) ? [changeColumn(measure)] : []),
      ...(isOfServers && hasPercentiles && (isAlone || wantedFile(request)) ? percentileColumns : []),
      ...(hasSent ? [sentColumn(nowMs)] : []),
      ...(lines === null ? [] : [courseColumn]),
    ],
    fields: fieldsOf(dimension),
    empty: {
      title: `No ${manyOf(dimension).toLowerCase()}`,
      text: nothingIn(view),
    },
  });
}

/** Packets are known of addresses: a table of applications stays one of bytes. */
const measureOf = (view: TrafficView, dimension: RankedDimension): Measure =>
  isOfApplications(dimension) ? 'bytes' : view.measure;

function linesOf(
  place: ExplorerPlace,
  view: TrafficView,
  measure: Measure,
  ranking: Ranking,
  lines: ExploredLines | null,
  stepMs: number,
): Line[] {
  const range = { fromMs: view.range.fromMs, toMs: view.range.toMs, stepMs };
  const rates = lines?.lines.map((line) => thinned(lines.times, line.rates, range)) ?? [];
  const rows: Line[] = ranking.rows.map((row, index) => ({
    ...{ row, label: row.label, inboundBytes: row.inboundBytes, outboundBytes: row.outboundBytes },
    ...{ packets: row.packets, share: row.share, rates: rates[index] ?? [] },
  }));
  const { others } = ranking;
  const unnamed = ranking.unnamed && { ...ranking.unnamed, packets: null };
  const ownScans = ranking.ownScans && { ...ranking.ownScans, packets: null };
  const all: Amount[] = [...ranking.rows, others, ...[unnamed, ownScans].filter((one) => one !== null)];
  const whole = all.reduce((sum, of) => sum + (sizeOf(of, measure) ?? 0), 0);
  const left = (label: string, { inboundBytes, outboundBytes, packets }: Amount): Line[] => {
    const size = sizeOf({ inboundBytes, outboundBytes, packets }, measure);
    const share = size === null || whole === 0 ? null : size / whole;
    return inboundBytes + outboundBytes === 0
      ? []
      : [{ row: null, label, inboundBytes, outboundBytes, packets, share, rates: [] }];
  };
  return [
    ...rows,
    ...(others.count > 0 ? left(`the rest, ${formatCount(others.count)} more`, others) : []),
    ...(ownScans === null ? [] : left(place.ownScans, ownScans)),
    ...(unnamed === null ? [] : left('without an application', unnamed)),
  ];
}
