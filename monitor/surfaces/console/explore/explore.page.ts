/** The explorer: any traffic of a site, by any dimension. */
import type { FastifyRequest } from 'fastify';
import type { Answer, Dimension } from '#monitor/explorer/index.ts';
import { exploreForm, manyOf, nothingIn, pictureTabs } from '#service-kit/explorer/index.ts';
import {
  banner,
  type ChartData,
  type Content,
  chart,
  formatAge,
  formatBitRate,
  formatBytes,
  formatCount,
  formatDuration,
  formatPacketRate,
  html,
  isoTime,
  pageHeader,
  type Range,
  rangePicker,
  refreshing,
  stat,
  stats,
} from '#service-kit/pages/index.ts';
import { fileHref, offerData } from '#service-kit/web/index.ts';
import { type OperationsLink, placeOfFilters } from '../parts/operations-link.ts';
import { chartUnit, exploreChartData } from './explore-chart.ts';
import { exploreFlows, type Flows } from './explore-flows.ts';
import { formOf } from './explore-form.ts';
import { changeText, exploreTable, sizeOf } from './explore-tables.ts';
import type { ExploreView } from './explore-view.ts';
import { type SavedViewsPart, savedLinks, savedSection } from './saved-views.ts';

export interface ExplorePage {
  view: ExploreView;
  range: Range;
  answer: Answer;
  /** The same by nothing. */
  whole: Answer;
  /** The two further tables. */
  tables: readonly { dimension: Dimension; answer: Answer }[];
  /** Null: the chart is shown. */
  flows: Flows | null;
  around: Pick<ChartData, 'reasons' | 'flags'>;
  /** What can be grouped by here. */
  offered: readonly Dimension[];
  /** Of the servers that the filters name, by their value. */
  serverNames: ReadonlyMap<string, string>;
  saved: SavedViewsPart;
  inOperations: OperationsLink;
  nowMs: number;
}

export function explorePage(request: FastifyRequest, page: ExplorePage): Content {
  const { view, answer, range, nowMs } = page;
  offerSteps(request, answer);
  const place = placeOfFilters(view.query.filters);
  return [
    pageHeader({
      title: 'Explorer',
      state: stateOf(page),
      actions: [rangePicker({ url: view.url, range, nowMs }), place !== null && page.inOperations(place)],
    }),
    savedLinks(view, page.saved),
    exploreForm(view, formOf(page.offered, view, page.serverNames)),
    refreshing({ id: 'explore', url: view.url, everySeconds: 60 }, [
      limitBanners(page),
      totals(answer),
      ownScansNote(page),
      pictureTabs(view),
      page.flows ? exploreFlows(view, page.flows) : exploreChart(request, page),
      view.by !== null && exploreTable(request, view, view.by, answer, page.whole),
      html`<div class="side-by-side">${page.tables.map(({ dimension, answer: one }) =>
        exploreTable(request, view, dimension, one, page.whole),
      )}</div>`,
    ]),
    savedSection(view, page.saved),
  ];
}

function stateOf({ answer, nowMs }: ExplorePage) {
  const isPackets = answer.measure === 'packets';
  const size = sizeOf(answer.total, isPackets);
  const amount = isPackets ? `${formatCount(size)} packets` : formatBytes(size);
  const change =
    answer.previousTotal === null ? null : changeText(size, sizeOf(answer.previousTotal, isPackets));
  const span = formatDuration(answer.to - answer.from);
  if (answer.newestMs === null) {
    return { tone: 'neutral', text: 'No minute of this site has arrived yet.' } as const;
  }
  const fresh = `Newest minute ${formatAge(answer.newestMs + 60_000, nowMs)}`;
  const against = change === null ? '' : `, ${change} against the ${span} before`;
  return { tone: 'info', text: `${amount} in ${span}${against}. ${fresh}.` } as const;
}

/** Each limit once, although every table asked. */
function limitBanners({ answer, tables, flows }: ExplorePage): Content {
  const all = [answer, ...tables.map((one) => one.answer), ...(flows ? [flows.right] : [])];
  const messages = new Set(all.flatMap((one) => one.limits.map(({ message }) => message)));
  return [...messages].map((message) =>
    banner({ tone: 'info', title: 'Not everything can be answered', text: message }),
  );
}

/** Counters of addresses hold the sensors' own port scans, sums of applications do not. */
function ownScansNote({ whole: { ownScans, measure } }: ExplorePage): Content {
  if (!ownScans) return '';
  const text = measure === 'packets' ? `${formatCount(ownScans)} packets` : formatBytes(ownScans);
  return html`<p class="hint">Port scans by the sensors are ${text} of the counters of addresses. They are no application.</p>`;
}

const sources = {
  addresses: 'counters of addresses',
  applications: 'usage by application',
  pairs: 'connections between exact addresses',
} as const;

function totals(answer: Answer) {
  const { total } = answer;
  const isPackets = answer.measure === 'packets';
  const source = sources[answer.source];
  const rate = (value: number | null) =>
    value === null ? undefined : isPackets ? formatPacketRate(value) : formatBitRate(value);
  const before = answer.previousTotal;
  // A site of which no minute has arrived has not had no traffic.
  const known = (text: string) => (answer.newestMs === null ? undefined : text);
  return stats(
    stat({ label: 'In', value: known(formatBytes(total.inBytes)), source }),
    stat({ label: 'Out', value: known(formatBytes(total.outBytes)), source }),
    ...(isPackets
      ? [
          stat({
            label: 'Packets',
            value: total.packets === null ? undefined : formatCount(total.packets),
            source: 'both directions',
          }),
        ]
      : []),
    stat({ label: '95th percentile', value: rate(answer.percentile95), source: 'of the steps, in and out' }),
    ...(before === null
      ? []
      : [
          stat({
            label: 'Before',
            value: isPackets ? formatCount(sizeOf(before, true)) : formatBytes(sizeOf(before, false)),
            source: `${changeText(sizeOf(total, isPackets), sizeOf(before, isPackets)) ?? ''} since`,
          }),
        ]),
  );
}

function exploreChart(request: FastifyRequest, page: ExplorePage) {
  const { view, answer } = page;
  const query = view.url.split('?')[1];
  return chart({
    id: 'explore-chart',
    title: view.by === null ? 'In and out' : `${manyOf(view.by)} over time`,
    unit: chartUnit(answer),
    data: exploreChartData(page),
    dataUrl: `/sites/${view.siteId}/explore.json${query ? `?${query}` : ''}`,
    refreshSeconds: 60,
    canZoom: true,
    source: `${sources[answer.source]}, each minute from one capture; gaps stay empty`,
    csvHref: fileHref(request, 'steps', 'csv'),
    emptyText: nothingIn(view),
  });
}

/** The chart's points as a file; a point without a value was not observed. */
function offerSteps(request: FastifyRequest, answer: Answer): void {
  offerData(request, {
    id: 'steps',
    rows: answer.timesMs.map((_, index) => index),
    fields: [
      { field: 'time', value: (i) => isoTime(answer.timesMs[i]) },
      { field: 'in_bps', value: (i) => answer.series.inBps[i] },
      { field: 'out_bps', value: (i) => answer.series.outBps[i] },
      ...answer.rows.map((row) => ({
        field: row.key[0]?.label ?? 'all',
        value: (i: number) => row.rates[i],
      })),
      { field: 'minutes_observed', value: (i) => answer.series.minutes[i] },
    ],
  });
}
