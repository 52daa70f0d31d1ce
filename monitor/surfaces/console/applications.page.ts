/** `/sites/{id}/applications`: what was used, by evidence, in four views (NET-2.2.1). */
import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import {
  type ApplicationRow,
  type ApplicationUse,
  type ApplicationView,
  applicationViews,
  describeService,
} from '#monitor/applications/index.ts';
import type { Collection } from '#monitor/traffic/index.ts';
import type { App } from '#service-kit/http/index.ts';
import {
  age,
  badge,
  type ChartData,
  chart,
  chartJson,
  code,
  formatBytes,
  formatCount,
  formatPercent,
  html,
  isoTime,
  notice,
  pageHeader,
  type Range,
  rangePicker,
  readRange,
  refreshing,
  stat,
  stats,
  tabs,
  withQuery,
} from '#service-kit/pages/index.ts';
import { dataTable, rowsLimit } from './data-table.ts';
import { SiteParams, sendConsolePage, siteOf } from './frame.ts';
import type { ConsoleDeps } from './index.ts';

const Query = Type.Object({
  range: Type.Optional(Type.String()),
  from: Type.Optional(Type.String()),
  to: Type.Optional(Type.String()),
  view: Type.Optional(Type.String()),
});
const rowsMax = 100;
const gapsMax = 100;
/** Applications with a line of their own; the palette has eight colours. */
const linesMax = 5;

const evidenceWords: Readonly<Record<string, string>> = {
  ip_protocol: 'IP protocol',
  tls_sni: 'TLS name',
  tls_outer: 'TLS outer name',
  http_host: 'HTTP host',
  http_connect: 'HTTP CONNECT',
  dns: 'DNS answer',
};

export function registerApplicationsPage(app: App, deps: ConsoleDeps): void {
  app.get(
    '/sites/:siteId/applications',
    { schema: { params: SiteParams, querystring: Query } },
    async (request, reply) => {
      const nowMs = Date.now();
      const site = await siteOf(deps.sites, request.params.siteId);
      const range = readRange(request.query, nowMs, '1h');
      const view = readView(request.query.view);
      const [use, collection, gaps] = await Promise.all([
        deps.applications.list(site.id, view, range.fromMs, range.toMs, rowsLimit(request, rowsMax)),
        deps.traffic.readCollection(site.id, range.fromMs, range.toMs),
        deps.traffic.listGaps(site.id, range.fromMs, range.toMs, gapsMax),
      ]);
      const data = await readChart(deps, site.id, view, range, chartNames(use));
      const content = [
        pageHeader({
          title: 'Applications',
          state: collectionState(collection, gaps.length),
          actions: rangePicker({ url: request.url, range, nowMs }),
        }),
        tabs(
          'Views',
          (Object.keys(applicationViews) as ApplicationView[]).map((name) => ({
            label: applicationViews[name].label,
            href: withQuery(request.url, { view: name }),
            current: name === view,
          })),
        ),
        refreshing({ id: 'applications', url: request.url, everySeconds: 60 }, [
          collectionNotices(collection),
          attributionStats(use, collection),
          applicationChart(request.url, site.id, data, use),
          applicationTable(request, use, nowMs),
        ]),
      ];
      return sendConsolePage(
        request,
        reply,
        { title: 'Applications', site: { site, page: 'applications' } },
        content,
      );
    },
  );

  app.get(
    '/sites/:siteId/applications.json',
    { schema: { params: SiteParams, querystring: Query } },
    async (request) => {
      const site = await siteOf(deps.sites, request.params.siteId);
      const range = readRange(request.query, Date.now(), '1h');
      const view = readView(request.query.view);
      const use = await deps.applications.list(site.id, view, range.fromMs, range.toMs, rowsMax);
      return chartJson('bit/s', await readChart(deps, site.id, view, range, chartNames(use)));
    },
  );
}

/** The largest names; services of one name share a line. */
function chartNames(use: ApplicationUse): string[] {
  const names = use.rows.filter((row) => row.inboundBytes !== null).map((row) => row.name);
  return [...new Set(names)].slice(0, linesMax);
}

async function readChart(
  deps: ConsoleDeps,
  siteId: number,
  view: ApplicationView,
  range: Range,
  names: readonly string[],
): Promise<ChartData> {
  const { fromMs, toMs, stepSeconds } = range;
  const [traffic, steps] = await Promise.all([
    deps.traffic.readSiteTraffic(siteId, fromMs, toMs, stepSeconds),
    deps.applications.listSteps({ siteId, view, fromMs, toMs, stepSeconds, names }),
  ]);
  const bytes = new Map(steps.map((step) => [`${step.timeMs} ${step.name ?? ''}`, step.bytes]));
  const hasRest = steps.some((step) => step.name === null);
  const line = (label: string, name: string) => ({
    label,
    values: traffic.timesMs.map((timeMs, i) => {
      const seconds = traffic.minutes[i]! * 60;
      return seconds === 0 ? null : ((bytes.get(`${timeMs} ${name}`) ?? 0) * 8) / seconds;
    }),
  });
  const series = names.map((name) => line(name, name));
  if (hasRest) series.push(line('all others', ''));
  return { timesMs: traffic.timesMs, stepMs: stepSeconds * 1000, series };
}

function applicationChart(url: string, siteId: number, data: ChartData, use: ApplicationUse) {
  if (use.rows.length === 0) return '';
  const query = url.split('?')[1];
  return chart({
    id: 'site-applications',
    title: 'Largest applications',
    unit: 'bit/s',
    data,
    dataUrl: `/sites/${siteId}/applications.json${query ? `?${query}` : ''}`,
    refreshSeconds: 60,
    canZoom: true,
    source: 'both directions together, each minute at one vantage; gaps are not filled',
  });
}

function readView(text: string | undefined): ApplicationView {
  return text !== undefined && Object.hasOwn(applicationViews, text) ? (text as ApplicationView) : 'outbound';
}

function collectionState(collection: Collection, gaps: number) {
  if (collection.captureMinutes === 0)
    return { tone: 'neutral', text: 'Nothing was collected in this range.' } as const;
  if (collection.parserDropped > 0)
    return { tone: 'warn', text: 'Partial: packets were lost before they could be named.' } as const;
  if (gaps > 0) {
    const count = gaps >= gapsMax ? `${gapsMax} or more` : formatCount(gaps);
    return { tone: 'warn', text: `Partial: ${count} ${gaps === 1 ? 'gap' : 'gaps'} in this range.` } as const;
  }
  return { tone: 'good', text: 'Every packet that reached a capture was counted.' } as const;
}

/** What is known to be missing (NET-2.2.6). */
function collectionNotices(collection: Collection) {
  return [
    collection.parserDropped > 0 &&
      notice({
        tone: 'warn',
        title: `${formatCount(collection.parserDropped)} packets could not be parsed`,
        text: 'This window is partial. Their bytes are in no row below and are not estimated.',
      }),
    collection.kernelDropped > 0 &&
      notice({
        tone: 'warn',
        title: `${formatCount(collection.kernelDropped)} packets were dropped before the sensor saw them`,
        text: 'The host was too busy. Give its capture a larger ring, or the sensor more time.',
      }),
    collection.detailTruncated > 0 &&
      notice({
        tone: 'info',
        title: `${formatCount(collection.detailTruncated)} packets found no room in the detail`,
        text: 'More services were used at once than a sensor lists in a minute. Totals of addresses are exact all the same.',
      }),
  ];
}

function attributionStats(use: ApplicationUse, collection: Collection) {
  const seen = collection.packets + collection.kernelDropped;
  return stats(
    stat({ label: 'Applications', value: formatCount(use.total), source: 'in this view and range' }),
    stat({ label: 'Traffic', value: formatBytes(use.bytes), source: 'both directions, at one vantage' }),
    stat({
      label: 'Named',
      value: use.bytes > 0 ? formatPercent((use.domainBytes + use.portBytes) / use.bytes) : undefined,
      source: 'of bytes, by evidence or port',
    }),
    stat({
      label: 'Packet coverage',
      value: seen > 0 ? formatPercent(collection.packets / seen, 2) : undefined,
      source: 'of packets at all captures',
    }),
  );
}

function applicationTable(request: FastifyRequest, use: ApplicationUse, nowMs: number) {
  return dataTable<ApplicationRow>(request, {
    id: 'applications',
    isComplete: use.total <= use.rows.length,
    caption: 'Applications by bytes',
    rows: use.rows,
    columns: [
      {
        key: 'name',
        header: 'Application',
        cell: (row) => (row.isAttributed ? row.name : code(row.name)),
        value: (row) => row.name,
      },
      {
        key: 'service',
        header: 'Service',
        kind: 'code',
        cell: (row) => describeService(row.protocol, row.serverPort),
        value: (row) => describeService(row.protocol, row.serverPort),
      },
      {
        key: 'evidence',
        header: 'Evidence',
        cell: (row) =>
          evidenceWords[row.evidence] ??
          (row.isAttributed ? 'port' : html`<span class="unknown">none</span>`),
        value: (row) => row.evidence,
      },
      {
        key: 'in',
        header: 'In',
        kind: 'figure',
        cell: (row) => bytesCell(row, row.inboundBytes),
        field: 'in_bytes',
        value: (row) => row.inboundBytes,
      },
      {
        key: 'out',
        header: 'Out',
        kind: 'figure',
        cell: (row) => bytesCell(row, row.outboundBytes),
        field: 'out_bytes',
        value: (row) => row.outboundBytes,
      },
      {
        key: 'addresses',
        header: 'Local addresses',
        kind: 'figure',
        cell: (row) => formatCount(row.addresses),
        field: 'local_addresses',
        value: (row) => row.addresses,
      },
      {
        key: 'top',
        header: 'Top connection',
        cell: (row) => topConnection(row),
        field: 'top_connection',
        value: ({ topConnection: top }) => top && `${top.client} to ${top.server}`,
      },
      {
        key: 'sent',
        header: 'Last sent',
        kind: 'figure',
        cell: (row) => age(row.lastSentMs, nowMs),
        field: 'last_sent',
        value: (row) => isoTime(row.lastSentMs),
      },
    ],
    pages:
      use.total > use.rows.length
        ? { label: `The ${formatCount(use.rows.length)} largest of ${formatCount(use.total)}` }
        : undefined,
    empty: {
      title: 'No applications in this view',
      text: 'They appear a minute or two after a sensor sees traffic of local addresses.',
    },
  });
}

/** A name that only the bridge saw has no bytes of its own: the uplink's count. */
function bytesCell(row: ApplicationRow, bytes: number | null) {
  return bytes === null ? badge('neutral', `${row.vantage} only`) : formatBytes(bytes);
}

function topConnection(row: ApplicationRow) {
  const top = row.topConnection;
  if (!top) return html`<span class="unknown">not kept</span>`;
  const more = top.pairs > 1 && html` <span class="hint">and ${formatCount(top.pairs - 1)} more</span>`;
  return html`${code(top.client)} → ${code(top.server)}${more}`;
}
