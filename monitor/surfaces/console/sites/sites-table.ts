/** The table of sites on the overview. */
import type { FastifyRequest } from 'fastify';
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
import { gapsMax, type SiteLine } from './read-site-lines.ts';

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
  {
    key: 'state',
    header: 'State',
    cell: stateBadge,
    field: 'silent_sensors',
    value: (row) => row.silent,
  },
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
