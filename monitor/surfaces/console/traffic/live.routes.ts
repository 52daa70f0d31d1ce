/** `/sites/{id}/live`: the requests for the traffic of the last minutes, and for the data of its charts. */
import type { FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import { canonicalAddress } from '#common/ip/index.ts';
import type { LiveAddress, LiveCapture, SiteLive } from '#monitor/live/index.ts';
import type { SensorState } from '#monitor/sensors/index.ts';
import { type DemoAttack, registerDemoAttack } from '#service-kit/demo/index.ts';
import type { App } from '#service-kit/http/index.ts';
import {
  badge,
  banner,
  type ChartData,
  type Content,
  chart,
  chartJson,
  code,
  formatAge,
  formatBitRate,
  formatCount,
  formatPacketRate,
  isoTime,
  link,
  pageHeader,
  refreshing,
  section,
  stat,
  stats,
  withQuery,
} from '#service-kit/pages/index.ts';
import {
  dataTable,
  figureColumn,
  linkColumn,
  offerData,
  pagedRows,
  rowsLimit,
  textColumn,
} from '#service-kit/web/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { SiteParams, sendConsolePage, siteOf } from '../frame.ts';
import { viewerOf } from '../guard.ts';
import { byLiveWindows, type ChartAround, readAround } from '../parts/chart-around.ts';

const shownMs = 900_000;
const Query = Type.Object({
  address: Type.Optional(Type.String({ maxLength: 64 })),
  chart: Type.Optional(Type.String({ maxLength: 20 })),
});
type Query = Static<typeof Query>;

export function registerLive(app: App, deps: ConsoleDeps): void {
  const schema = { params: SiteParams, querystring: Query };
  app.get('/sites/:siteId/live', { schema }, async (request, reply) => {
    const nowMs = Date.now();
    const site = await siteOf(deps.sites, request.params.siteId);
    const address = addressOf(request.query);
    const [read, sensors] = await Promise.all([
      readLive(deps, site.id, nowMs, address),
      deps.sensors.list(site.id),
    ]);
    const content = livePage(request, { siteId: site.id, address, ...read, sensors, nowMs });
    return sendConsolePage(reply, { title: 'Live', site: { site, page: 'live' } }, content);
  });

  app.get('/sites/:siteId/live.json', { schema }, async (request) => {
    const site = await siteOf(deps.sites, request.params.siteId);
    const read = await readLive(deps, site.id, Date.now(), addressOf(request.query));
    const role = captureRoles.find((one) => one === request.query.chart);
    if (role === undefined) return chartJson('bit/s', trafficData(read));
    return chartJson('bit/s', capturesData(read, await deps.sensors.list(site.id), role));
  });
}

function addressOf(query: Query): string | null {
  return query.address ? canonicalAddress(query.address.trim()) : null;
}

/** Without an answer of the store the page shows the reason. */
async function readLive(
  deps: ConsoleDeps,
  siteId: number,
  nowMs: number,
  address: string | null,
): Promise<LiveRead & { problem: string | null }> {
  const toMs = Math.floor(nowMs / windowMs) * windowMs;
  const range = { fromMs: toMs - shownMs, toMs };
  const addresses = address === null ? undefined : [address];
  const [problem, around] = await Promise.all([
    deps.live.findProblem(),
    readAround(deps, { siteId, addresses }, range, nowMs, byLiveWindows),
  ]);
  const nothing = { points: [], addresses: [], captures: [], isLimited: false };
  if (problem) return { live: nothing, problem, range, around };
  const live = await deps.live.readSite(siteId, range.fromMs, nowMs, address ?? undefined);
  return { live, problem, range, around };
}

/** The page of the last minutes' traffic in steps of ten seconds, and the top addresses. */
const windowMs = 10_000;
const addressesShown = 25;
/** Maximum number of lines in one chart. */
const capturesDrawn = 8;
const captureRoles = ['uplink', 'bridge'] as const;

/** What the charts of the page show. */
interface LiveRead {
  live: SiteLive;
  range: { fromMs: number; toMs: number };
  around: ChartAround;
}

interface LivePage extends LiveRead {
  siteId: number;
  /** Only this one; null: all of the site. */
  address: string | null;
  /** Why live windows are not stored. */
  problem: string | null;
  sensors: readonly SensorState[];
  nowMs: number;
}

function livePage(request: FastifyRequest, page: LivePage): Content {
  const { siteId, address, live, problem, sensors, nowMs } = page;
  const dataUrl = (name: string) =>
    withQuery(`/sites/${siteId}/live.json`, { chart: name, address: address ?? undefined });
  const content = [
    pageHeader({
      title: address ? ['Live: ', code(address)] : 'Live',
      state: stateOf(live, problem, nowMs),
      actions: address && link(`/sites/${siteId}/live`, 'All addresses', { kind: 'button' }),
    }),
    problem && banner({ tone: 'bad', title: 'Live windows are not stored', text: problem }),
    live.isLimited &&
      banner({
        tone: 'warn',
        title: 'Only the newest windows are shown',
        text: 'There are too many windows to read at once; older ones are left out.',
      }),
    refreshing({ id: 'live-now', url: request.url, everySeconds: 10 }, newestStats(live, nowMs)),
    chart({
      id: 'live-traffic',
      title: address ? `Traffic of ${address}` : 'Traffic of local addresses',
      unit: 'bit/s',
      data: trafficData(page),
      dataUrl: dataUrl('traffic'),
      refreshSeconds: 10,
      source: 'ten-second windows, each address from its strongest capture; gaps stay empty',
      emptyText: 'No live window has arrived in the last 15 minutes.',
    }),
    !address && captureRoles.map((role) => capturesChart(page, sensors, role, dataUrl(role))),
    refreshing({ id: 'live-tables', url: request.url, everySeconds: 10 }, [
      section(
        { title: 'Top addresses', description: 'By traffic of the newest window.' },
        addressTable(request, siteId, live, sensors),
      ),
      section(
        {
          title: 'Captures',
          description: 'Traffic of each interface. Captures overlap, so they are never added up.',
        },
        captureTable(request, live, sensors, nowMs),
      ),
    ]),
  ];
  offerPoints(request, live);
  return content;
}

function stateOf(live: SiteLive, problem: string | null, nowMs: number) {
  const newest = live.points.at(-1);
  if (problem)
    return {
      tone: 'bad',
      text: 'The live store does not accept windows. Minutes are not affected.',
    } as const;
  if (!newest)
    return { tone: 'neutral', text: 'No sensor has sent a live window in the last 15 minutes.' } as const;
  const endMs = newest.startedAtMs + windowMs;
  const captures = newest.captures === 1 ? '1 capture' : `${formatCount(newest.captures)} captures`;
  const isFresh = nowMs - endMs < 40_000;
  return {
    tone: isFresh ? ('good' as const) : ('warn' as const),
    text: `Newest window ended ${formatAge(endMs, nowMs)}, from ${captures}.`,
  };
}

function newestStats(live: SiteLive, nowMs: number) {
  const newest = live.points.at(-1);
  const source = newest ? `over 10 s, ${formatAge(newest.startedAtMs + windowMs, nowMs)}` : 'no window yet';
  const isSeen = newest !== undefined && newest.addresses > 0;
  const lost = live.points.reduce((sum, one) => sum + one.kernelDropped + one.parserDropped, 0);
  return stats(
    stat({ label: 'In', value: isSeen ? formatBitRate(newest.inBps) : undefined, source }),
    stat({ label: 'Out', value: isSeen ? formatBitRate(newest.outBps) : undefined, source }),
    stat({ label: 'Packets', value: isSeen ? formatPacketRate(newest.pps) : undefined, source }),
    stat({ label: 'Addresses', value: isSeen ? formatCount(newest.addresses) : undefined, source }),
    stat({
      label: 'Lost packets',
      value: live.points.length > 0 ? formatCount(lost) : undefined,
      source: 'in the kernel or not parsed, 15 min',
      tone: lost > 0 ? 'warn' : 'neutral',
    }),
  );
}

function trafficData({ live, range, around }: LiveRead): ChartData {
  // A window without addresses is unknown: a missing address was idle or had no room.
  const value = (known: number, addresses: number) => (addresses > 0 ? known : null);
  return {
    timesMs: live.points.map((one) => one.startedAtMs),
    stepMs: windowMs,
    range,
    ...around,
    series: [
      { label: 'In', role: 'in', values: live.points.map((one) => value(one.inBps, one.addresses)) },
      { label: 'Out', role: 'out', values: live.points.map((one) => value(one.outBps, one.addresses)) },
    ],
  };
}

/** Bridges carry the same traffic as uplinks, so their lines in one chart would cover each other. */
function capturesChart(
  read: LiveRead,
  sensors: readonly SensorState[],
  role: LiveCapture['role'],
  dataUrl: string,
) {
  const captures = read.live.captures.filter((one) => one.role === role);
  if (captures.length === 0) return null;
  return chart({
    id: `live-${role}`,
    title: role === 'uplink' ? 'Through each uplink' : 'Through each bridge',
    unit: 'bit/s',
    size: 'small',
    data: capturesData(read, sensors, role),
    dataUrl,
    refreshSeconds: 10,
    source:
      captures.length > capturesDrawn
        ? `the ${capturesDrawn} busiest of ${captures.length} captures`
        : 'both directions',
  });
}

function capturesData(
  { live, range, around }: LiveRead,
  sensors: readonly SensorState[],
  role: LiveCapture['role'],
): ChartData {
  const times = live.points.map((one) => one.startedAtMs);
  const total = (one: LiveCapture) => [...one.bps.values()].reduce((sum, bps) => sum + bps, 0);
  const busiest = live.captures
    .filter((one) => one.role === role)
    .sort((a, b) => total(b) - total(a))
    .slice(0, capturesDrawn);
  return {
    timesMs: times,
    stepMs: windowMs,
    range,
    ...around,
    series: busiest.map((one) => ({
      label: `${one.capture} of ${hostOf(one, sensors)}`,
      values: times.map((time) => one.bps.get(time) ?? null),
    })),
  };
}

function hostOf(one: { sensorId: number }, sensors: readonly SensorState[]): string {
  return sensors.find((sensor) => sensor.id === one.sensorId)?.hostName ?? 'a removed sensor';
}

function addressTable(
  request: FastifyRequest,
  siteId: number,
  live: SiteLive,
  sensors: readonly SensorState[],
) {
  const limit = rowsLimit(request, addressesShown);
  return dataTable<LiveAddress>(request, {
    id: 'addresses',
    caption: 'Top addresses',
    card: { line: ['in', 'out', 'pps'] },
    rows: live.addresses.slice(0, limit),
    isComplete: live.addresses.length <= limit,
    columns: [
      linkColumn(
        'address',
        'Address',
        (row) => [row.address, withQuery(`/sites/${siteId}/live`, { address: row.address })],
        { kind: 'code', show: code },
      ),
      figureColumn('in', 'In', (row) => row.inBps, formatBitRate, { field: 'in_bps' }),
      figureColumn('out', 'Out', (row) => row.outBps, formatBitRate, { field: 'out_bps' }),
      figureColumn('pps', 'Packets', (row) => row.pps, formatPacketRate, { field: 'packets_per_second' }),
      {
        key: 'capture',
        header: 'Strongest capture',
        cell: (row) => `${row.capture} of ${hostOf(row, sensors)}`,
        value: (row) => `${hostOf(row, sensors)} ${row.capture}`,
      },
    ],
    empty: {
      title: 'No addresses in the newest window',
      text: 'Addresses appear here within seconds when a sensor captures their traffic.',
    },
  });
}

function captureTable(
  request: FastifyRequest,
  live: SiteLive,
  sensors: readonly SensorState[],
  nowMs: number,
) {
  return dataTable<LiveCapture>(request, {
    ...pagedRows(request, 'captures', live.captures, addressesShown),
    caption: 'Captures',
    card: { line: ['role', 'rate', 'newest'] },
    columns: [
      textColumn('capture', 'Capture', (row) => row.capture, { kind: 'code' }),
      textColumn('host', 'Host', (row) => hostOf(row, sensors)),
      { key: 'role', header: 'Role', cell: (row) => row.role, value: (row) => row.role },
      {
        key: 'rate',
        header: 'Rate',
        kind: 'figure',
        field: 'bps',
        cell: (row) => formatBitRate(row.bps.get(row.newestMs)),
        value: (row) => row.bps.get(row.newestMs) ?? null,
      },
      {
        key: 'newest',
        header: 'Newest window',
        kind: 'figure',
        cell: (row) => `ended ${formatAge(row.newestMs + windowMs, nowMs)}`,
        value: (row) => isoTime(row.newestMs),
      },
      figureColumn('lost', 'Lost, 15 min', (row) => row.kernelDropped + row.parserDropped, lostText, {
        field: 'lost_packets',
      }),
    ],
    empty: {
      title: 'No reporting captures',
      text: 'Sensors send a window every ten seconds. Check the sensors of this site.',
    },
  });
}

function lostText(lost: number) {
  return lost > 0 ? badge('warn', formatCount(lost)) : '0';
}

/** The chart's points as a file. */
function offerPoints(request: FastifyRequest, live: SiteLive): void {
  offerData(request, {
    id: 'windows',
    rows: live.points,
    fields: [
      { field: 'time', value: (row) => isoTime(row.startedAtMs) },
      { field: 'in_bps', value: (row) => (row.addresses > 0 ? row.inBps : null) },
      { field: 'out_bps', value: (row) => (row.addresses > 0 ? row.outBps : null) },
      { field: 'packets_per_second', value: (row) => (row.addresses > 0 ? row.pps : null) },
      { field: 'addresses', value: (row) => row.addresses },
      { field: 'kernel_dropped', value: (row) => row.kernelDropped },
      { field: 'parser_dropped', value: (row) => row.parserDropped },
    ],
  });
}

const shownMax = 20;
export const attackPath = '/demo/attack';

/** `/demo/attack` of a demo: the servers of its hypervisor. */
export function registerAttack(app: App, { inventory, demoPlace }: ConsoleDeps, attack: DemoAttack): void {
  registerDemoAttack(app, {
    ...{ attack, path: attackPath, href: attackPath },
    async targetsOf(request) {
      const site = viewerOf(request).sites.find(({ isSimulated }) => !isSimulated);
      if (!site || !demoPlace?.node) return [];
      const servers = await inventory.listNodeServers([demoPlace.clusterId], demoPlace.node, shownMax);
      return servers.flatMap(({ name, addresses }) =>
        addresses
          .slice(0, 1)
          .map((address) => ({ address, name, href: `/sites/${site.id}/live?address=${address}` })),
      );
    },
    csrfTokenOf(request) {
      const { canChange, csrfToken } = viewerOf(request);
      return canChange ? csrfToken : null;
    },
    send: (_request, reply, content, status) =>
      sendConsolePage(reply, { title: 'Attack a server', isNarrow: true, status }, content),
  });
}
