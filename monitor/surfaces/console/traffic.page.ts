/** `/sites/{id}/traffic`: what the site's addresses exchanged, over time and by address, with its gaps. */
import { Type } from 'typebox';
import type { GapRow, SiteTraffic, TopAddress } from '#monitor/traffic/index.ts';
import type { App } from '#service-kit/http/index.ts';
import {
  type ChartData,
  chart,
  chartJson,
  code,
  formatAge,
  formatBitRate,
  formatBytes,
  formatCount,
  formatPacketRate,
  formatTime,
  pageHeader,
  type Range,
  rangePicker,
  readRange,
  refreshing,
  section,
  stat,
  stats,
  table,
} from '#service-kit/pages/index.ts';
import { SiteParams, sendConsolePage, siteOf } from './frame.ts';
import type { ConsoleDeps } from './index.ts';
import { siteState } from './site-state.ts';

const Query = Type.Object({
  range: Type.Optional(Type.String()),
  from: Type.Optional(Type.String()),
  to: Type.Optional(Type.String()),
});
const dayMs = 86_400_000;

export function registerTrafficPage(app: App, deps: ConsoleDeps): void {
  app.get('/sites/:siteId', { schema: { params: SiteParams } }, async (request, reply) =>
    reply.redirect(`/sites/${request.params.siteId}/traffic`, 303),
  );

  app.get(
    '/sites/:siteId/traffic',
    { schema: { params: SiteParams, querystring: Query } },
    async (request, reply) => {
      const nowMs = Date.now();
      const site = await siteOf(deps.sites, request.params.siteId);
      const range = readRange(request.query, nowMs, '1h');
      const topFromMs = Math.max(range.fromMs, range.toMs - dayMs);
      const [{ traffic, data, gaps }, top, sensors, newest] = await Promise.all([
        readChart(deps, site.id, range),
        deps.traffic.listTopAddresses(site.id, topFromMs, range.toMs, 50),
        deps.sensors.list(site.id),
        deps.traffic.newestMinutes(),
      ]);
      const content = [
        pageHeader({
          title: site.name,
          state: siteState(sensors, newest.get(site.id), nowMs),
          actions: rangePicker({ url: request.url, range }),
        }),
        refreshing({ id: 'traffic', url: request.url, everySeconds: 60 }, [
          newestStats(traffic, range),
          trafficChart(request.url, site.id, data),
          section(
            {
              title: 'Addresses',
              description:
                topFromMs > range.fromMs
                  ? 'By bytes, over the last 24 hours of the range.'
                  : 'By bytes in this range.',
            },
            addressTable(top, nowMs),
          ),
          section(
            {
              title: 'Gaps',
              description: 'Minutes that were not, or not wholly, collected. Nothing is estimated in them.',
            },
            gapTable(gaps),
          ),
        ]),
      ];
      return sendConsolePage(request, reply, { title: 'Traffic', site: { site, page: 'traffic' } }, content);
    },
  );

  app.get(
    '/sites/:siteId/traffic.json',
    { schema: { params: SiteParams, querystring: Query } },
    async (request) => {
      const site = await siteOf(deps.sites, request.params.siteId);
      const { data } = await readChart(deps, site.id, readRange(request.query, Date.now(), '1h'));
      return chartJson('bit/s', data);
    },
  );

  app.get(
    '/sites/:siteId/traffic.csv',
    { schema: { params: SiteParams, querystring: Query } },
    async (request, reply) => {
      const site = await siteOf(deps.sites, request.params.siteId);
      const { traffic } = await readChart(deps, site.id, readRange(request.query, Date.now(), '1h'));
      return reply.type('text/csv; charset=utf-8').send(trafficCsv(traffic));
    },
  );
}

async function readChart(
  deps: ConsoleDeps,
  siteId: number,
  range: Range,
): Promise<{ traffic: SiteTraffic; data: ChartData; gaps: GapRow[] }> {
  const traffic = await deps.traffic.readSiteTraffic(siteId, range.fromMs, range.toMs, range.stepSeconds);
  const gaps = await deps.traffic.listGaps(siteId, range.fromMs, range.toMs, 50);
  const data: ChartData = {
    areas: gaps.map((gap) => ({
      fromMs: Math.max(gap.fromMinute * 1000, range.fromMs),
      toMs: Math.min((gap.toMinute + 60) * 1000, range.toMs),
      label: 'gap',
      tone: 'warn',
    })),
    timesMs: traffic.timesMs,
    stepMs: range.stepSeconds * 1000,
    range,
    series: [
      { label: 'In', role: 'in', values: traffic.inBps },
      { label: 'Out', role: 'out', values: traffic.outBps },
    ],
  };
  return { traffic, data, gaps };
}

function trafficChart(url: string, siteId: number, data: ChartData) {
  const query = url.split('?')[1];
  const suffix = query ? `?${query}` : '';
  return chart({
    id: 'site-traffic',
    title: 'Traffic of local addresses',
    unit: 'bit/s',
    data,
    dataUrl: `/sites/${siteId}/traffic.json${suffix}`,
    refreshSeconds: 30,
    source: 'each address and minute at its one strongest capture; gaps are not filled',
    csvHref: `/sites/${siteId}/traffic.csv${suffix}`,
    emptyText: 'No minute of this range has been collected.',
  });
}

function newestStats(traffic: SiteTraffic, range: Range) {
  const last = traffic.inBps.findLastIndex((value) => value !== null);
  const timeMs = traffic.timesMs[last];
  const source =
    timeMs === undefined
      ? 'nothing in this range'
      : `${range.stepSeconds === 60 ? 'minute' : 'step'} from ${formatTime(timeMs).slice(11)}`;
  const figure = (value: number | null | undefined, format: (known: number) => string) =>
    value === null || value === undefined ? undefined : format(value);
  const observed = traffic.minutes.reduce((sum, minutes) => sum + minutes, 0);
  return stats(
    stat({ label: 'In', value: figure(traffic.inBps[last], formatBitRate), source }),
    stat({ label: 'Out', value: figure(traffic.outBps[last], formatBitRate), source }),
    stat({ label: 'Packets', value: figure(traffic.pps[last], formatPacketRate), source }),
    stat({ label: 'Addresses', value: figure(traffic.addresses[last], formatCount), source }),
    stat({ label: 'Minutes observed', value: formatCount(observed), source: 'in this range' }),
  );
}

function addressTable(rows: readonly TopAddress[], nowMs: number) {
  return table<TopAddress>({
    caption: 'Addresses by bytes',
    rows,
    columns: [
      { key: 'address', header: 'Address', kind: 'code', cell: (row) => code(row.address) },
      { key: 'in', header: 'In', kind: 'figure', cell: (row) => formatBytes(row.rxBytes) },
      { key: 'out', header: 'Out', kind: 'figure', cell: (row) => formatBytes(row.txBytes) },
      { key: 'packets', header: 'Packets', kind: 'figure', cell: (row) => formatCount(row.packets) },
      {
        key: 'seen',
        header: 'Last seen',
        kind: 'figure',
        cell: (row) => formatAge(row.lastSeenMinute * 1000, nowMs),
      },
    ],
    empty: {
      title: 'No address seen',
      text: 'Addresses appear here when a sensor sees traffic of an address within the site’s local prefixes.',
    },
  });
}

const reasons: Readonly<Record<string, string>> = {
  sensor_down: 'the sensor did not run',
  capture_failed: 'the capture did not run',
  storage_full: 'the sensor’s spool was full',
  refused: 'the upload was refused',
  spool_damaged: 'the sensor’s spool was damaged',
  clock_step: 'the host’s clock jumped',
  rejected: 'the upload could not be applied',
};

function gapTable(rows: readonly GapRow[]) {
  return table<GapRow>({
    caption: 'Gaps',
    rows,
    columns: [
      { key: 'from', header: 'From', cell: (row) => formatTime(row.fromMinute * 1000) },
      {
        key: 'minutes',
        header: 'Minutes',
        kind: 'figure',
        cell: (row) => formatCount((row.toMinute - row.fromMinute) / 60 + 1),
      },
      { key: 'sensor', header: 'Sensor', cell: (row) => row.hostName },
      { key: 'capture', header: 'Capture', cell: (row) => (row.capture === '' ? 'all' : row.capture) },
      { key: 'reason', header: 'Reason', cell: (row) => reasons[row.reason] ?? row.reason },
    ],
    empty: { title: 'No gaps', text: 'Every minute that the sensors were to collect in this range arrived.' },
  });
}

function trafficCsv(traffic: SiteTraffic): string {
  const cell = (value: number | null | undefined) =>
    value === null || value === undefined ? '' : String(value);
  const lines = traffic.timesMs.map((timeMs, i) =>
    [
      new Date(timeMs).toISOString(),
      cell(traffic.inBps[i]),
      cell(traffic.outBps[i]),
      cell(traffic.pps[i]),
      cell(traffic.addresses[i]),
      cell(traffic.minutes[i]),
    ].join(','),
  );
  return `${['time,in_bps,out_bps,pps,addresses,minutes_observed', ...lines].join('\r\n')}\r\n`;
}
