/** The table of sites on the overview. */
import type { FastifyRequest } from 'fastify';
import type { Episode } from '#monitor/alerts/index.ts';
import type { Collection } from '#monitor/facts/index.ts';
import { silentAfterSeconds } from '#monitor/sensors/index.ts';
import type { Site } from '#monitor/sites/index.ts';
import type { SiteTraffic } from '#monitor/traffic/index.ts';
import {
  badge,
  type Content,
  formatAge,
  formatBitRate,
  formatCount,
  formatPercent,
  html,
  isoTime,
  link,
  spark,
  withQuery,
} from '#service-kit/pages/index.ts';
import { type DataColumn, dataTable, figureColumn } from '#service-kit/web/index.ts';
import type { ConsoleDeps } from '../deps.ts';

export function sitesTable(
  request: FastifyRequest,
  lines: readonly SiteLine[],
  { page, shown, total }: { page: number; shown: number; total: number },
  nowMs: number,
): Content {
  const first = (page - 1) * shown;
  const to = (other: number) => withQuery(request.url, { page: other });
  return dataTable<SiteLine>(request, {
    id: 'sites',
    caption: 'Sites',
    card: { line: ['state', 'in', 'out'] },
    rows: lines,
    columns: [...identityColumns, ...trafficColumns, ...stateColumns(nowMs)],
    pages:
      total > shown
        ? {
            label: `${first + 1}–${first + lines.length} of ${total}`,
            previousHref: page > 1 ? to(page - 1) : undefined,
            nextHref: page * shown < total ? to(page + 1) : undefined,
          }
        : undefined,
    empty: {
      title: 'No sites yet',
      text: 'A site is a location with hypervisors. Create one with “New site”; its settings show the command that enrols each sensor.',
      command: 'SVC_MONITOR_URL=… SVC_SENSOR_ENROLMENT_TOKEN=… ./svc sensor run',
    },
  });
}

const identityColumns: DataColumn<SiteLine>[] = [
  {
    key: 'name',
    header: 'Site',
    field: 'site',
    cell: ({ site }) => {
      const name = link(`/sites/${site.id}/traffic`, site.name);
      return site.isSimulated ? html`${name} ${badge('info', 'simulated')}` : name;
    },
    value: ({ site }) => site.name,
  },
  { key: 'state', header: 'State', cell: stateBadge, field: 'silent_sensors', value: (row) => row.silent },
  {
    key: 'day',
    header: '24 hours',
    kind: 'picture',
    cell: ({ day, site }) =>
      spark({ in: day.inBps, out: day.outBps }, `In and out of ${site.name} over the last 24 hours`),
  },
];

/** The newest minute, and what is missing. */
const trafficColumns: DataColumn<SiteLine>[] = [
  figureColumn('in', 'In', ({ inBps }) => inBps, rateCell, { field: 'in_bps' }),
  figureColumn('out', 'Out', ({ outBps }) => outBps, rateCell, { field: 'out_bps' }),
  {
    key: 'loss',
    header: 'Lost packets',
    unit: '1 h',
    kind: 'figure',
    cell: (row) => {
      const loss = lossOf(row);
      return loss === null ? null : loss === 0 ? 'none' : badge('warn', formatPercent(loss, 2));
    },
    field: 'lost_packets_share_1h',
    value: lossOf,
  },
  {
    key: 'gaps',
    header: 'Gaps',
    unit: '24 h',
    kind: 'figure',
    cell: ({ gaps, site }) =>
      gaps === 0
        ? 'none'
        : link(
            `/sites/${site.id}/traffic?range=24h#gaps`,
            gaps >= gapsMax ? `${gapsMax} or more` : formatCount(gaps),
          ),
    field: 'gaps_24h',
    value: ({ gaps }) => gaps,
  },
];

const stateColumns = (nowMs: number): DataColumn<SiteLine>[] => [
  {
    key: 'sensors',
    header: 'Sensors',
    kind: 'figure',
    cell: ({ site, sensors }) => link(`/sites/${site.id}/sensors`, formatCount(sensors)),
    value: ({ sensors }) => sensors,
  },
  figureColumn(
    'alerts',
    'Alerts',
    ({ alerts }) => alerts,
    (alerts) => (alerts === 0 ? 'none' : link('/alerts', badge('bad', `${formatCount(alerts)} open`))),
    { field: 'open_alerts' },
  ),
  {
    key: 'newest',
    header: 'Newest minute',
    kind: 'figure',
    cell: ({ newestMinuteMs }) =>
      newestMinuteMs === undefined
        ? html`<span class="unknown">none yet</span>`
        : `ended ${formatAge(newestMinuteMs + 60_000, nowMs)}`,
    field: 'newest_minute',
    value: ({ newestMinuteMs }) => isoTime(newestMinuteMs),
  },
];

/** Part of the last hour's packets that was lost; unknown without captures. */
function lossOf({ lastHour: { packets, kernelDropped, parserDropped } }: SiteLine): number | null {
  const all = packets + kernelDropped + parserDropped;
  return all === 0 ? null : (kernelDropped + parserDropped) / all;
}

function stateBadge({ sensors, silent, waiting }: SiteLine) {
  if (sensors === 0) return badge('neutral', 'no sensor');
  if (sensors === waiting) return badge('neutral', 'no contact yet');
  if (silent === 0) return badge('good', 'reporting');
  return silent === sensors ? badge('bad', 'silent') : badge('warn', `${silent} silent`);
}

function rateCell(bps: number | null): Content {
  return bps === null ? null : formatBitRate(bps);
}

// What the overview shows of each site, read from the features.

export interface SiteLine {
  site: Site;
  sensors: number;
  silent: number;
  /** Enrolled moments ago and not heard yet. */
  waiting: number;
  newestMinuteMs: number | undefined;
  /** The last 24 hours in steps of ten minutes, and the newest minute. */
  day: SiteTraffic;
  inBps: number | null;
  outBps: number | null;
  lastHour: Collection;
  gaps: number;
  /** Open alerts. */
  alerts: number;
}

/** A newest minute that is older says nothing about the present. */
export const recentMs = 15 * 60_000;
const hourMs = 3_600_000;
const dayMs = 86_400_000;
export const stepSeconds = 600;
/** Gaps of a site are counted up to this number. */
const gapsMax = 100;
/** Open alerts are counted up to this number. */
export const alertsMax = 1_000;

export interface SitesOverview {
  lines: SiteLine[];
  /** Of all sites, as all below. */
  sensors: number;
  silent: number;
  /** Enrolled moments ago and not heard yet. */
  waiting: number;
  newestMinuteMs: number | undefined;
  /** Open alerts. */
  open: Episode[];
}

/** Lines of the sites given, and what is known of all. */
export async function readSiteLines(
  deps: ConsoleDeps,
  sites: readonly Site[],
  nowMs: number,
): Promise<SitesOverview> {
  const [newest, summaries, open] = await Promise.all([
    deps.traffic.newestMinutes(),
    deps.sensors.summarize(nowMs - silentAfterSeconds * 1000),
    deps.alerts.listOpen(null, alertsMax),
  ]);
  const alerts = Map.groupBy(open, (episode) => episode.siteId);
  const bySite = new Map(summaries.map((summary) => [summary.siteId, summary]));
  const lines = await Promise.all(
    sites.map((site) => {
      const { sensors = 0, silent = 0, waiting = 0 } = bySite.get(site.id) ?? {};
      const known = { site, sensors, silent, waiting, alerts: alerts.get(site.id)?.length ?? 0 };
      return readLine(deps, { ...known, newestMinuteMs: newest.get(site.id) }, nowMs);
    }),
  );
  return {
    lines,
    open,
    sensors: summaries.reduce((sum, one) => sum + one.sensors, 0),
    silent: summaries.reduce((sum, one) => sum + one.silent, 0),
    waiting: summaries.reduce((sum, one) => sum + one.waiting, 0),
    newestMinuteMs: newest.size > 0 ? Math.max(...newest.values()) : undefined,
  };
}

async function readLine(
  deps: ConsoleDeps,
  known: Pick<SiteLine, 'site' | 'sensors' | 'silent' | 'waiting' | 'alerts' | 'newestMinuteMs'>,
  nowMs: number,
): Promise<SiteLine> {
  const { site, newestMinuteMs } = known;
  const toMs = Math.ceil(nowMs / (stepSeconds * 1000)) * stepSeconds * 1000;
  const isRecent = newestMinuteMs !== undefined && newestMinuteMs >= nowMs - recentMs;
  const [gaps, day, newest, lastHour] = await Promise.all([
    deps.traffic.listGaps(site.id, nowMs - dayMs, nowMs, gapsMax),
    deps.traffic.readSiteTraffic(site.id, toMs - dayMs, toMs, stepSeconds),
    isRecent ? deps.traffic.readSiteTraffic(site.id, newestMinuteMs, newestMinuteMs + 60_000, 60) : null,
    deps.traffic.readCollection(site.id, nowMs - hourMs, nowMs),
  ]);
  return {
    ...known,
    day,
    inBps: newest?.inBps[0] ?? null,
    outBps: newest?.outBps[0] ?? null,
    lastHour,
    gaps: gaps.length,
  };
}
