/** `/sites/{id}/traffic`: the requests for a site's traffic, and for the data of its chart. */

import type { FastifyRequest } from 'fastify';
import { describeService } from '#monitor/applications/index.ts';
import type { ApplicationRow, TopAddress } from '#monitor/facts/index.ts';
import type { OpenCounts } from '#monitor/incidents/index.ts';
import type { SensorState } from '#monitor/sensors/index.ts';
import type { GapRow, SiteTraffic } from '#monitor/traffic/index.ts';
import type { App } from '#service-kit/http/index.ts';
import {
  type ChartData,
  type Content,
  chart,
  chartJson,
  formatAge,
  formatBitRate,
  formatBytes,
  formatCount,
  formatPacketRate,
  formatTime,
  html,
  isoTime,
  link,
  pageHeader,
  type Range,
  rangePicker,
  readRange,
  refreshing,
  section,
  stat,
  stats,
  withQuery,
} from '#service-kit/pages/index.ts';
import {
  countColumn,
  dataTable,
  figureColumn,
  fileHref,
  linkColumn,
  offerData,
  rowsLimit,
  textColumn,
  timeColumn,
} from '#service-kit/web/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { RangeQuery, SiteParams, sendConsolePage, siteOf } from '../frame.ts';
import { addressHref, addressText, exploreButton } from '../parts/address-link.ts';
import { readAround } from '../parts/chart-around.ts';
import { attackBanner } from '../parts/incident-text.ts';
import { minuteText } from '../parts/origin.ts';
import { siteState } from '../parts/site-state.ts';
import { bytesColumns } from '../parts/usage-columns.ts';
import { gapReason } from '../parts/words.ts';

const dayMs = 86_400_000;
const rowsShown = 50;

export function registerTraffic(app: App, deps: ConsoleDeps): void {
  app.get('/sites/:siteId', { schema: { params: SiteParams } }, async (request, reply) =>
    reply.redirect(`/sites/${request.params.siteId}/traffic`, 303),
  );

  app.get(
    '/sites/:siteId/traffic',
    { schema: { params: SiteParams, querystring: RangeQuery } },
    async (request, reply) => {
      const nowMs = Date.now();
      const site = await siteOf(deps.sites, request.params.siteId);
      const range = readRange(request.query, nowMs, '1h');
      const topFromMs = Math.max(range.fromMs, range.toMs - dayMs);
      const limit = rowsLimit(request, rowsShown);
      const [chart, top, sensors, newest, use, open] = await Promise.all([
        readChart(deps, site.id, range, limit, nowMs),
        deps.traffic.listTopAddresses(site.id, topFromMs, range.toMs, limit),
        deps.sensors.list(site.id),
        deps.traffic.newestMinutes(),
        readUse(deps, site.id, range, topFromMs),
        deps.incidents.countOpen(),
      ]);
      const known = { siteId: site.id, range, topFromMs, ...chart, top, use };
      const newestMinuteMs = newest.get(site.id);
      const attacks = open.find(({ siteId }) => siteId === site.id);
      const content = trafficPage(request, { ...known, sensors, newestMinuteMs, attacks, nowMs });
      return sendConsolePage(reply, { title: 'Traffic', site: { site, page: 'traffic' } }, content);
    },
  );

  app.get(
    '/sites/:siteId/traffic.json',
    { schema: { params: SiteParams, querystring: RangeQuery } },
    async (request) => {
      const site = await siteOf(deps.sites, request.params.siteId);
      const nowMs = Date.now();
      const range = readRange(request.query, nowMs, '1h');
      const { traffic, around } = await readChart(deps, site.id, range, rowsShown, nowMs);
      return chartJson('bit/s', chartData(traffic, around, range));
    },
  );
}

/** A range of about a day that ends now is already ranked (NET-8.8). */
async function readUse(
  deps: ConsoleDeps,
  siteId: number,
  range: Range,
  fromMs: number,
): Promise<ApplicationRow[]> {
  const isDay = range.name !== 'custom' && range.toMs - fromMs >= dayMs;
  const ranking = isDay ? await deps.applications.ranking(siteId, 'all') : null;
  const use =
    ranking?.use ?? (await deps.applications.list(siteId, 'all', fromMs, range.toMs, applicationsShown));
  return use.rows.slice(0, applicationsShown);
}

async function readChart(deps: ConsoleDeps, siteId: number, range: Range, gapsMax: number, nowMs: number) {
  const [traffic, gaps, around] = await Promise.all([
    deps.traffic.readSiteTraffic(siteId, range.fromMs, range.toMs, range.stepSeconds),
    deps.traffic.listGaps(siteId, range.fromMs, range.toMs, gapsMax),
    readAround(deps, { siteId }, range, nowMs),
  ]);
  return { traffic, gaps, around };
}

/** The page of a site's traffic, over time and by address, with its gaps. */
const applicationsShown = 10;

interface TrafficPage {
  siteId: number;
  range: Range;
  traffic: SiteTraffic;
  gaps: readonly GapRow[];
  /** Why values are missing, and what happened. */
  around: Pick<ChartData, 'reasons' | 'flags'>;
  /** Addresses and applications are of the time from here on. */
  topFromMs: number;
  top: readonly TopAddress[];
  use: readonly ApplicationRow[];
  sensors: readonly SensorState[];
  newestMinuteMs: number | undefined;
  /** Attacks of the site that are not over. */
  attacks: OpenCounts | undefined;
  nowMs: number;
}

function trafficPage(request: FastifyRequest, page: TrafficPage): Content {
  const { siteId, range, traffic, gaps, sensors, nowMs } = page;
  const isObserved = sensors.length > 0;
  offerPoints(request, traffic);
  return [
    pageHeader({
      title: 'Traffic',
      state: siteState(sensors, page.newestMinuteMs, nowMs),
      actions: [
        rangePicker({ url: request.url, range, nowMs }),
        exploreButton(request, siteId, {}, { by: 'none', rangeName: '1h' }),
      ],
    }),
    refreshing({ id: 'traffic', url: request.url, everySeconds: 60 }, [
      attackBanner(page.attacks),
      newestStats(traffic, range, siteId),
      trafficChart(request, siteId, chartData(traffic, page.around, range)),
      section(
        {
          title: 'Addresses',
          description:
            page.topFromMs > range.fromMs
              ? 'By bytes, over the last 24 hours of the range.'
              : 'By bytes in this range.',
          actions: link(`/sites/${siteId}/networks`, 'Find a network', { kind: 'button' }),
        },
        addressTable(request, siteId, page.top, nowMs, isObserved),
      ),
      section(
        {
          title: 'Applications',
          description: 'The largest of all directions, in the same time.',
          actions: link(applicationsHref(request, siteId), 'All applications', { kind: 'button' }),
        },
        topApplications(request, siteId, page.use),
      ),
      section(
        {
          id: 'gaps',
          title: 'Gaps',
          description: 'Minutes that were not or only partly collected. Nothing is estimated.',
        },
        gapTable(request, gaps, isObserved),
      ),
    ]),
  ];
}

function chartData(
  traffic: SiteTraffic,
  around: Pick<ChartData, 'reasons' | 'flags'>,
  range: Range,
): ChartData {
  return {
    ...around,
    timesMs: traffic.timesMs,
    stepMs: range.stepSeconds * 1000,
    range,
    series: [
      { label: 'In', role: 'in', values: traffic.inBps },
      { label: 'Out', role: 'out', values: traffic.outBps },
    ],
  };
}

function trafficChart(request: FastifyRequest, siteId: number, data: ChartData) {
  const query = request.url.split('?')[1];
  const suffix = query ? `?${query}` : '';
  return chart({
    id: 'site-traffic',
    title: 'Traffic of local addresses',
    unit: 'bit/s',
    data,
    dataUrl: `/sites/${siteId}/traffic.json${suffix}`,
    refreshSeconds: 30,
    canZoom: true,
    source: 'each address and minute from its strongest capture; gaps stay empty',
    csvHref: fileHref(request, 'points', 'csv'),
    emptyText: 'No minute of this range has been collected.',
  });
}

function newestStats(traffic: SiteTraffic, range: Range, siteId: number) {
  const last = traffic.inBps.findLastIndex((value) => value !== null);
  const timeMs = traffic.timesMs[last];
  const source =
    timeMs === undefined
      ? 'nothing in this range'
      : html`${formatTime(timeMs).slice(11)}, ${link(
          withQuery(`/sites/${siteId}/traffic/origin`, {
            from: minuteText(timeMs / 1000),
            to: minuteText(timeMs / 1000 + range.stepSeconds),
          }),
          'sources',
        )}`;
  const figure = (value: number | null | undefined, format: (known: number) => string) =>
    value === null || value === undefined ? undefined : format(value);
  const observed = traffic.minutes.reduce((sum, minutes) => sum + minutes, 0);
  return stats(
    stat({ label: 'In', value: figure(traffic.inBps[last], formatBitRate), source }),
    stat({ label: 'Out', value: figure(traffic.outBps[last], formatBitRate), source }),
    stat({ label: 'Packets', value: figure(traffic.pps[last], formatPacketRate), source }),
    stat({ label: 'Addresses', value: figure(traffic.addresses[last], formatCount), source }),
    stat({
      label: 'Minutes observed',
      value: formatCount(observed),
      source: `of ${formatCount((range.toMs - range.fromMs) / 60_000)} in this range`,
    }),
  );
}

function addressTable(
  request: FastifyRequest,
  siteId: number,
  rows: readonly TopAddress[],
  nowMs: number,
  isObserved: boolean,
) {
  return dataTable<TopAddress>(request, {
    id: 'addresses',
    caption: 'Addresses by bytes',
    card: { line: ['in', 'out', 'seen'] },
    rows,
    columns: [
      {
        key: 'address',
        header: 'Address',
        kind: 'code',
        cell: (row) => link(addressHref(siteId, row, rangeQuery(request)), addressText(row)),
        value: (row) => row.address,
      },
      ...bytesColumns,
      countColumn('packets', 'Packets', (row) => row.packets),
      {
        key: 'seen',
        header: 'Last seen',
        kind: 'figure',
        cell: (row) => formatAge(row.lastSeenMinute * 1000, nowMs),
        field: 'last_seen',
        value: (row) => isoTime(row.lastSeenMinute * 1000),
      },
    ],
    empty: {
      title: 'No addresses yet',
      text: 'Addresses within the site’s local prefixes appear here when a sensor captures their traffic.',
      ...(isObserved ? {} : { action: { label: 'Enrol a sensor', href: `/sites/${siteId}/settings#enrol` } }),
    },
  });
}

function gapTable(request: FastifyRequest, rows: readonly GapRow[], isObserved: boolean) {
  return dataTable<GapRow>(request, {
    id: 'gaps',
    caption: 'Gaps',
    card: { line: ['minutes', 'sensor', 'reason'] },
    rows,
    columns: [
      timeColumn('from', 'From', (row) => row.fromMinute * 1000),
      countColumn('minutes', 'Minutes', (row) => (row.toMinute - row.fromMinute) / 60 + 1),
      { key: 'sensor', header: 'Sensor', cell: (row) => row.hostName, value: (row) => row.hostName },
      {
        key: 'capture',
        header: 'Capture',
        cell: (row) => (row.capture === '' ? 'all' : row.capture),
        value: (row) => row.capture || 'all',
      },
      { key: 'reason', header: 'Reason', cell: gapReason, value: (row) => row.reason },
    ],
    empty: {
      title: 'No gaps',
      text: isObserved
        ? 'No sensor reported a gap in this range.'
        : 'No sensor is enrolled, so no minutes are expected.',
    },
  });
}

function applicationsHref(request: FastifyRequest, siteId: number): string {
  const { range, from, to } = request.query as Record<string, string | undefined>;
  return withQuery(`/sites/${siteId}/applications`, { view: 'all', range: range ?? '1h', from, to });
}

function topApplications(request: FastifyRequest, siteId: number, rows: readonly ApplicationRow[]) {
  return dataTable<ApplicationRow>(request, {
    id: 'applications',
    caption: 'Applications by bytes',
    card: { line: ['in', 'out', 'service'] },
    rows,
    isComplete: rows.length < applicationsShown,
    columns: [
      linkColumn('name', 'Application', (row) => [
        row.name,
        withQuery(applicationsHref(request, siteId), { name: row.name }),
      ]),
      textColumn('service', 'Service', (row) => describeService(row.protocol, row.serverPort), {
        kind: 'code',
      }),
      figureColumn(
        'in',
        'In',
        (row) => row.inboundBytes,
        (inboundBytes) => (inboundBytes === null ? null : formatBytes(inboundBytes)),
        { field: 'in_bytes' },
      ),
      figureColumn(
        'out',
        'Out',
        (row) => row.outboundBytes,
        (outboundBytes) => (outboundBytes === null ? null : formatBytes(outboundBytes)),
        { field: 'out_bytes' },
      ),
    ],
    empty: {
      title: 'No applications',
      text: 'Applications appear one or two minutes after a sensor captures traffic of local addresses.',
    },
  });
}

/** The same range, for the page of the address. */
function rangeQuery(request: FastifyRequest) {
  const { range, from, to } = request.query as Record<string, string | undefined>;
  return { range, from, to };
}

/** The chart's points as a file; a point without a value was not collected. */
function offerPoints(request: FastifyRequest, traffic: SiteTraffic): void {
  offerData(request, {
    id: 'points',
    rows: traffic.timesMs.map((_, index) => index),
    fields: [
      { field: 'time', value: (i) => isoTime(traffic.timesMs[i]) },
      { field: 'in_bps', value: (i) => traffic.inBps[i] },
      { field: 'out_bps', value: (i) => traffic.outBps[i] },
      { field: 'packets_per_second', value: (i) => traffic.pps[i] },
      { field: 'addresses', value: (i) => traffic.addresses[i] },
      { field: 'minutes_observed', value: (i) => traffic.minutes[i] },
    ],
  });
}
