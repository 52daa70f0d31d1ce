/** `/client/traffic/`: what all servers of the person did in a range, and what used the most of it. */
import type { Rank, Usage } from '#operations/protect/index.ts';
import {
  type ChartData,
  chart,
  formatBitRate,
  formatBytes,
  formatCount,
  type Html,
  html,
  pageHeader,
  rangePicker,
  refreshing,
  section,
  stat,
  stats,
  type Tone,
  withQuery,
} from '#service-kit/pages/index.ts';
import { portalFrame } from '../frame.ts';
import type { Visitor } from '../guard.ts';
import { filterBar } from './filter-bar.ts';
import {
  type ApplicationRank,
  applicationsTable,
  bytesText,
  portsSection,
  type ServerRank,
  serversSection,
} from './rank-tables.ts';
import { stepOf, trafficPath } from './traffic.page.ts';
import { type TrafficAsk, urlOf } from './traffic-url.ts';

export interface AllTrafficOptions {
  visitor: Visitor;
  ask: TrafficAsk;
  /** Servers that the view counts, and all that there are. */
  serverCount: number;
  allCount: number;
  /** Servers whose protection views are off: not counted. */
  hiddenCount: number;
  usage: Usage;
  chartData: ChartData;
  servers: readonly ServerRank[];
  applications: readonly ApplicationRank[];
  ports: readonly Rank[];
  applicationsFromMs: number | null;
}

export const allTrafficPath = '/client/traffic/';
export const allLines = ['server', 'app', 'port', 'direction'] as const;

export function allTrafficPage(options: AllTrafficOptions): Html {
  const { visitor, ask, usage } = options;
  const url = urlOf(allTrafficPath, ask, 'server');
  const context = { url, filters: ask.filters, nowMs: usage.nowMs };
  return portalFrame({ visitor, title: 'Traffic', current: 'traffic', breadcrumb: [{ label: 'Traffic' }] }, [
    refreshing({ id: 'all-traffic-state', url, everySeconds: 30 }, [
      pageHeader({ title: 'Traffic', state: stateOf(options) }),
    ]),
    html`<div class="toolbar">${rangePicker({ url, range: ask.range, nowMs: usage.nowMs })}</div>`,
    filterBar({
      url,
      filters: ask.filters,
      faults: ask.faults,
      by: ask.by,
      choices: allLines,
      example: 'server:web-1 port:443',
    }),
    chart({
      id: 'all-traffic',
      title: 'Traffic',
      unit: 'bit/s',
      data: options.chartData,
      dataUrl: url.replace(allTrafficPath, `${allTrafficPath}chart.json`),
      refreshSeconds: 30,
      canZoom: true,
      source: `${stepOf(ask.range)}, observed at the hypervisors`,
      emptyText: 'No traffic was observed in this range.',
    }),
    refreshing({ id: 'all-traffic-tables', url, everySeconds: 30 }, [
      totals(options),
      serversSection(options.servers, context, filesOf(url, 'servers'), (row) =>
        withQuery(trafficPath(row.serverId), {
          range: ask.range.name === 'custom' ? undefined : ask.range.name,
        }),
      ),
      section(
        {
          title: 'Applications',
          id: 'applications',
          description: `Applications the servers used or hosted. ${options.applicationsFromMs === null ? 'Of the range above.' : 'Of the last 24 hours: applications are kept no longer.'}`,
        },
        applicationsTable(options.applications, context, filesOf(url, 'applications')),
      ),
      portsSection(options.ports, context),
    ]),
  ]);
}

const filesOf = (url: string, name: string) => ({
  csvHref: url.replace(allTrafficPath, `${allTrafficPath}${name}.csv`),
  jsonHref: url.replace(allTrafficPath, `${allTrafficPath}${name}.json`),
});

function stateOf({ servers, serverCount, allCount, hiddenCount }: AllTrafficOptions): {
  tone: Tone;
  text: string;
} {
  if (allCount === 0) return { tone: 'neutral', text: 'No servers yet.' };
  const hidden =
    hiddenCount === 0 ? '' : ` ${formatCount(hiddenCount)} with protection views off not counted.`;
  const first = servers[0];
  const counted = `${formatCount(serverCount)} of ${formatCount(allCount)} servers`;
  if (first === undefined) return { tone: 'neutral', text: `Nothing observed of ${counted}.${hidden}` };
  return { tone: 'good', text: `${first.value} used the most: ${bytesText(first)}. ${counted}.${hidden}` };
}

function totals({ usage: { total } }: AllTrafficOptions): Html {
  const observed = total === null ? undefined : `${formatCount(total.minutes)} minutes observed`;
  const figure = (label: string, value: number | null | undefined, format: (value: number) => string) =>
    stat({
      label,
      value: value === null || value === undefined ? undefined : format(value),
      source: observed,
    });
  return stats(
    figure('In, whole range', total?.inboundBytes, formatBytes),
    figure('Out, whole range', total?.outboundBytes, formatBytes),
    figure('In, 95th percentile', total?.inboundP95, formatBitRate),
    figure('Out, 95th percentile', total?.outboundP95, formatBitRate),
  );
}
