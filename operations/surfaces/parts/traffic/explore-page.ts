/** The explorer: the traffic of everything that the reader reaches, by any dimension. */
import type { FastifyRequest } from 'fastify';
import type { Exploration, Ranking } from '#operations/protect/index.ts';
import type { SavedView } from '#operations/saved-views/index.ts';
import { manyOf, nothingIn, pictureTabs } from '#service-kit/explorer/index.ts';
import {
  banner,
  type Content,
  chart,
  emptyState,
  formatBitRate,
  formatBytes,
  formatCount,
  formatPacketRate,
  formatTime,
  type Html,
  html,
  isoTime,
  pageHeader,
  rangePicker,
  refreshing,
  stat,
  stats,
  type Tone,
} from '#service-kit/pages/index.ts';
import { fileHref, offerData } from '#service-kit/web/index.ts';
import { type ChartInput, chartUnit, exploreChartData } from './explore-chart.ts';
import { changeText } from './explore-columns.ts';
import { exploreFlows, type readFlows } from './explore-flows.ts';
import { trafficForm } from './explore-form.ts';
import { type ExplorerTable, exploreTable } from './explore-tables.ts';
import { eventsByStep } from './flags.ts';
import { type Explorer, type ExplorerPlace, isOfApplications, type PeerLink } from './place.ts';
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
  const tableOf = (one: ExplorerTable) =>
    exploreTable(request, place, view, one, {
      nowMs,
      peersOf: (row) => page.peerLink?.(row, one.ranking.dimension, explored) ?? '',
    });
  // Files are of the tables, so these are made also where the page shows none.
  const tables = page.tables.map(tableOf);
  const isWide = view.by !== null;
  const header = refreshing({ id: 'traffic-state', url: view.url, everySeconds: 60 }, [
    pageHeader({ title: 'Traffic', state: stateOf(page) }),
  ]);
  if (countAll(page) === 0)
    return [
      header,
      html`<div class="card">${emptyState({
        title: 'No servers yet',
        text: 'The traffic of a server appears here one or two minutes after it was deployed.',
        ...(place.deploy && { action: place.deploy }),
      })}</div>`,
      savedLinks(place, view, views),
      savedSection(place, view, views, who),
    ];
  return [
    header,
    html`<div class="toolbar">${rangePicker({ url: view.url, range: view.range, nowMs })}</div>`,
    savedLinks(place, view, views),
    trafficForm(place, view, explored),
    refreshing({ id: 'explore', url: view.url, everySeconds: 60 }, [
      limitBanner(page),
      packetsBanner(page),
      totals(page),
      pictureTabs(view),
      page.flows ? exploreFlows(place, view, page.flows) : timeChart(request, page),
      isWide && tables[0],
      html`<div class="side-by-side">${isWide ? tables.slice(1) : tables}</div>`,
    ]),
    savedSection(place, view, views, who),
  ];
}

const countAll = ({ explored }: Pick<ExplorePage, 'explored'>): number =>
  explored.reached.length + explored.hiddenCount;

function stateOf({ explored, leading, view }: ExplorePage): { tone: Tone; text: string } {
  const { servers, hiddenCount } = explored;
  const all = countAll({ explored });
  if (all === 0) return { tone: 'neutral', text: 'No servers yet.' };
  const hidden =
    hiddenCount === 0 ? '' : ` ${formatCount(hiddenCount)} with protection views off not counted.`;
  const counted = `${formatCount(servers.length)} of ${formatCount(all)} servers`;
  if (servers.length === 0)
    return { tone: 'neutral', text: `None of ${formatCount(all)} servers passes the filters.${hidden}` };
  const first = leading?.rows[0];
  if (first === undefined) return { tone: 'neutral', text: `Nothing observed of ${counted}.${hidden}` };
  const packets = view.measure === 'packets' ? `${formatCount(first.packets)} packets, ` : '';
  const bytes = `${packets}${formatBytes(first.inboundBytes)} in, ${formatBytes(first.outboundBytes)} out`;
  return { tone: 'good', text: `${first.label} used the most: ${bytes}. ${counted}.${hidden}` };
}

function limitBanner({ explored, view, flows }: ExplorePage): Content {
  const isAbout = flows !== null || explored.isOfApplications || view.shown.some(isOfApplications);
  if (explored.applicationsFromMs === null || !isAbout) return '';
  return banner({
    tone: 'info',
    title: 'Applications of the last 24 hours',
    text: `Applications are kept no longer: what is of them begins at ${formatTime(explored.applicationsFromMs)}.`,
  });
}

/** What is there of packets, where that is not all. */
function packetsBanner({ view, chart: { total } }: ExplorePage): Content {
  if (view.measure === 'bytes' || !total.arePacketsPartial) return '';
  return banner({
    tone: 'info',
    title: total.packets === null ? 'No packets known of this range' : 'Packets of a part of this range',
    text: 'Some observed minutes have no count of packets: none was sent for them, or they were summed before packets were counted. Bytes are complete.',
  });
}

function totals({ view: { measure }, chart: { total, course } }: ExplorePage): Content {
  const isPackets = measure === 'packets';
  const minutes = course.minutes.reduce((sum, each) => sum + each, 0);
  const observed = minutes === 1 ? '1 minute observed' : `${formatCount(minutes)} minutes observed`;
  const bytes = (label: string, value: number) =>
    stat({ label, value: minutes === 0 ? undefined : formatBytes(value), source: observed });
  const rates =
    total.percentileSeconds === 60
      ? 'of the minutes'
      : `of means of ${total.percentileSeconds < 3600 ? `${total.percentileSeconds / 60} minutes` : `${total.percentileSeconds / 3600} h`}`;
  const percentile = (label: string, value: number | null, format: (value: number) => string) =>
    stat({ label, value: value === null ? undefined : format(value), source: rates });
  const part = total.arePacketsPartial ? 'of a part of the minutes' : 'in and out together';
  return stats(
    ...(isPackets
      ? [
          stat({
            label: 'Packets, whole range',
            value: total.packets === null ? undefined : formatCount(total.packets),
            source: total.packets === null ? undefined : part,
          }),
        ]
      : []),
    bytes('In, whole range', total.inboundBytes),
    bytes('Out, whole range', total.outboundBytes),
    ...(isPackets
      ? [percentile('Packets, 95th percentile', total.packetsP95, formatPacketRate)]
      : [
          percentile('In, 95th percentile', total.inboundP95, formatBitRate),
          percentile('Out, 95th percentile', total.outboundP95, formatBitRate),
        ]),
    isPackets
      ? before(total.packets, total.previousPackets, formatCount)
      : before(total.inboundBytes + total.outboundBytes, total.previousBytes, formatBytes),
  );
}

function before(now: number | null, previous: number | null, format: (value: number) => string): Html {
  return stat({
    label: 'Before',
    value: previous === null ? undefined : format(previous),
    source: previous === null || now === null ? undefined : `${changeText(now, previous)} since`,
  });
}

function timeChart(request: FastifyRequest, page: ExplorePage): Content {
  const { place, view, chart: input } = page;
  const drawn = chart({
    id: 'traffic',
    title: titleOf(view),
    unit: chartUnit(view),
    data: exploreChartData(view, input),
    dataUrl: view.url.replace(place.path, `${place.path}chart.json`),
    refreshSeconds: 60,
    canZoom: true,
    source: `${stepText(input.stepSeconds)}, observed at the hypervisors; gaps stay empty`,
    csvHref: fileHref(request, 'steps', 'csv'),
    emptyText: nothingIn(view),
  });
  const { note } = input.flags;
  return [drawn, note !== null && html`<p class="hint">${note}</p>`];
}

function titleOf({ by, measure }: TrafficView): string {
  if (by !== null) return `${manyOf(by)} over time`;
  return measure === 'packets' ? 'Packets, in and out together' : 'In and out';
}

export function stepText(seconds: number): string {
  if (seconds === 60) return 'each minute';
  return seconds < 3600 ? `means of ${seconds / 60} minutes` : `means of ${seconds / 3600} h`;
}

/** The chart's points as a file; a point without a value was not observed. What happened in a step is beside its values. */
function offerSteps(request: FastifyRequest, { view, chart: input }: ExplorePage): void {
  const data = exploreChartData(view, input);
  const unit = view.measure === 'packets' ? 'pps' : 'bps';
  const main = data.series.filter((series) => !series.isPrevious);
  const places = new Map(data.timesMs.map((ms, index) => [ms, index]));
  const events = eventsByStep(data);
  offerData(request, {
    id: 'steps',
    rows: [...new Set([...places.keys(), ...events.keys()])].sort((a, b) => a - b),
    fields: [
      { field: 'time', value: (ms) => isoTime(ms) },
      ...main.map((series) => ({
        field: `${series.label}_${unit}`,
        value: (ms: number) => series.values[places.get(ms) ?? -1] ?? null,
      })),
      { field: 'events', value: (ms) => events.get(ms) ?? null },
    ],
    isComplete: true,
  });
}
