/** The explorer: the traffic of everything that the reader reaches, by any dimension. */
import type { FastifyRequest } from 'fastify';
import type { Exploration, FilterDimension, Ranking } from '#operations/protect/index.ts';
import type { SavedView } from '#operations/saved-views/index.ts';
import {
  banner,
  type Content,
  chart,
  formatBitRate,
  formatBytes,
  formatCount,
  formatTime,
  html,
  isoTime,
  pageHeader,
  rangePicker,
  refreshing,
  stat,
  stats,
  type Tone,
  tabs,
  withQuery,
} from '#service-kit/pages/index.ts';
import { fileHref, offerData } from '#service-kit/web/index.ts';
import { type ChartInput, exploreChartData } from './explore-chart.ts';
import { exploreFlows, type readFlows } from './explore-flows.ts';
import { exploreForm } from './explore-form.ts';
import { changeText, type ExplorerTable, exploreTable } from './explore-tables.ts';
import { type Explorer, type ExplorerPlace, manyOf, type PeerLink } from './place.ts';
import { savedLinks, savedSection } from './saved-views.ts';
import type { TrafficView } from './traffic-view.ts';

export interface ExplorePage {
  place: ExplorerPlace;
  who: Explorer;
  explored: Exploration;
  view: TrafficView;
  chart: ChartInput;
  tables: readonly ExplorerTable[];
  /** What the page says first: the ranking of the chart, or of servers. */
  leading: Ranking | null;
  /** Null: the chart is shown. */
  flows: Awaited<ReturnType<typeof readFlows>> | null;
  views: readonly SavedView[];
  peerLink: PeerLink | null;
}

export function explorePage(request: FastifyRequest, page: ExplorePage): Content {
  const { place, view, explored, views, who } = page;
  const { nowMs } = explored;
  offerSteps(request, page);
  const [first, ...others] = page.tables;
  const tableOf = (one: ExplorerTable) =>
    exploreTable(request, place, view, one, {
      nowMs,
      peersOf: (row) => page.peerLink?.(row, one.ranking.dimension, explored) ?? '',
    });
  const isWide = view.by !== 'direction';
  return [
    refreshing({ id: 'traffic-state', url: view.url, everySeconds: 60 }, [
      pageHeader({ title: 'Traffic', state: stateOf(page) }),
    ]),
    html`<div class="toolbar">${rangePicker({ url: view.url, range: view.range, nowMs })}</div>`,
    savedLinks(place, view, views),
    exploreForm(place, view, (dimension, value) => nameIn(explored, dimension, value)),
    refreshing({ id: 'explore', url: view.url, everySeconds: 60 }, [
      limitBanner(page),
      totals(page),
      tabs('Pictures', [
        { label: 'Over time', href: withQuery(view.url, { tab: undefined }), current: view.tab === 'time' },
        { label: 'Flows', href: withQuery(view.url, { tab: 'flows' }), current: view.tab === 'flows' },
      ]),
      page.flows ? exploreFlows(place, view, page.flows) : timeChart(request, page),
      isWide && first && tableOf(first),
      html`<div class="side-by-side">${(isWide ? others : page.tables).map(tableOf)}</div>`,
    ]),
    savedSection(place, view, views, who),
  ];
}

/** The name of what is filtered by its number. */
function nameIn({ reached }: Exploration, dimension: FilterDimension, value: string): string {
  if (!/^\d+$/.test(value)) return value;
  if (dimension === 'server') return reached.find(({ id }) => String(id) === value)?.name ?? value;
  if (dimension !== 'customer') return value;
  return reached.find(({ tenantId }) => String(tenantId) === value)?.tenantName ?? value;
}

function stateOf({ explored, leading }: ExplorePage): { tone: Tone; text: string } {
  const { servers, reached, hiddenCount } = explored;
  const all = reached.length + hiddenCount;
  if (all === 0) return { tone: 'neutral', text: 'No servers yet.' };
  const hidden =
    hiddenCount === 0 ? '' : ` ${formatCount(hiddenCount)} with protection views off not counted.`;
  const counted = `${formatCount(servers.length)} of ${formatCount(all)} servers`;
  if (servers.length === 0)
    return { tone: 'neutral', text: `None of ${formatCount(all)} servers passes the filters.${hidden}` };
  const first = leading?.rows[0];
  if (first === undefined) return { tone: 'neutral', text: `Nothing observed of ${counted}.${hidden}` };
  const bytes = `${formatBytes(first.inboundBytes)} in, ${formatBytes(first.outboundBytes)} out`;
  return { tone: 'good', text: `${first.label} used the most: ${bytes}. ${counted}.${hidden}` };
}

function limitBanner({ explored, view, flows }: ExplorePage): Content {
  const isAbout = flows !== null || explored.isOfApplications || view.tables.some(isOfApplications);
  if (explored.applicationsFromMs === null || !isAbout) return '';
  return banner({
    tone: 'info',
    title: 'Applications of the last 24 hours',
    text: `Applications are kept no longer: what is of them begins at ${formatTime(explored.applicationsFromMs)}.`,
  });
}

const isOfApplications = (dimension: string) => ['app', 'service', 'port', 'transport'].includes(dimension);

function totals({ chart: { total, course } }: ExplorePage): Content {
  const minutes = course.minutes.reduce((sum, each) => sum + each, 0);
  const observed = minutes === 1 ? '1 minute observed' : `${formatCount(minutes)} minutes observed`;
  const bytes = total.inboundBytes + total.outboundBytes;
  const rates =
    total.percentileSeconds === 60
      ? 'of the minutes'
      : `of means of ${total.percentileSeconds < 3600 ? `${total.percentileSeconds / 60} minutes` : `${total.percentileSeconds / 3600} h`}`;
  const rate = (value: number | null) => (value === null ? undefined : formatBitRate(value));
  return stats(
    stat({
      label: 'In, whole range',
      value: minutes === 0 ? undefined : formatBytes(total.inboundBytes),
      source: observed,
    }),
    stat({
      label: 'Out, whole range',
      value: minutes === 0 ? undefined : formatBytes(total.outboundBytes),
      source: observed,
    }),
    stat({ label: 'In, 95th percentile', value: rate(total.inboundP95), source: rates }),
    stat({ label: 'Out, 95th percentile', value: rate(total.outboundP95), source: rates }),
    stat({
      label: 'Before',
      value: total.previousBytes === null ? undefined : formatBytes(total.previousBytes),
      source: total.previousBytes === null ? undefined : `${changeText(bytes, total.previousBytes)} since`,
    }),
  );
}

function timeChart(request: FastifyRequest, page: ExplorePage): Content {
  const { place, view, chart: input } = page;
  return chart({
    id: 'traffic',
    title: view.by === 'direction' ? 'In and out' : `${manyOf(view.by)} over time`,
    unit: 'bit/s',
    data: exploreChartData(view, input),
    dataUrl: view.url.replace(place.path, `${place.path}chart.json`),
    refreshSeconds: 60,
    canZoom: true,
    source: `${stepText(input.stepSeconds)}, observed at the hypervisors; gaps stay empty`,
    csvHref: fileHref(request, 'steps', 'csv'),
    emptyText: 'No traffic of this range passes the filters.',
  });
}

function stepText(seconds: number): string {
  if (seconds === 60) return 'each minute';
  return seconds < 3600 ? `means of ${seconds / 60} minutes` : `means of ${seconds / 3600} h`;
}

/** The chart's points as a file; a point without a value was not observed. */
function offerSteps(request: FastifyRequest, { view, chart: input }: ExplorePage): void {
  const data = exploreChartData(view, input);
  const main = data.series.filter((series) => !series.isPrevious);
  offerData(request, {
    id: 'steps',
    rows: data.timesMs.map((_, index) => index),
    fields: [
      { field: 'time', value: (index) => isoTime(data.timesMs[index]) },
      ...main.map((series) => ({
        field: `${series.label}_bps`,
        value: (index: number) => series.values[index] ?? null,
      })),
    ],
    isComplete: true,
  });
}
