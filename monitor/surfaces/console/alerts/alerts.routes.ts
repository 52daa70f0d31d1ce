/** `/alerts`: the request for open and resolved alerts. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import { keptText } from '#contracts/retention.ts';
import { Id } from '#contracts/scalars.ts';
import {
  type Channel,
  diskShare,
  downMinutes,
  type Episode,
  lossMinutes,
  lossShare,
  measuredOf,
  missingSeconds,
  refusedSeconds,
  skewSeconds,
  spoolShare,
  titleOf,
  waitingSeconds,
} from '#monitor/alerts/index.ts';
import { silentAfterSeconds } from '#monitor/sensors/index.ts';
import type { Site } from '#monitor/sites/index.ts';
import type { App } from '#service-kit/http/index.ts';
import {
  banner,
  type Content,
  codeBlock,
  definitionList,
  formatCount,
  formatDuration,
  formatPercent,
  isoTime,
  link,
  moment,
  pageHeader,
  refreshing,
  section,
  type Tone,
  toast,
} from '#service-kit/pages/index.ts';
import { diskLimits } from '#service-kit/system/index.ts';
import {
  ageColumn,
  dataTable,
  linkColumn,
  rowsLimit,
  textColumn,
  timeColumn,
} from '#service-kit/web/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { sendConsolePage } from '../frame.ts';
import { type Viewer, viewerOf } from '../guard.ts';
import { careOf, placeOf, registerAlert } from './alert.routes.ts';
import { channelsSection, registerChannels } from './channel.routes.ts';

const openShown = 200;
const pastShown = 50;
const Query = Type.Object({ site: Type.Optional(Id), saved: Type.Optional(Type.String()) });
export function registerAlerts(app: App, deps: ConsoleDeps): void {
  app.get('/alerts', { schema: { querystring: Query } }, (_request, reply) => showAlerts(deps, reply, {}));
  registerAlert(app, deps);
  registerChannels(app, deps, (reply, secret) => showAlerts(deps, reply, { secret }));
}

async function showAlerts(deps: ConsoleDeps, reply: FastifyReply, shown: { secret?: string }) {
  const { request } = reply;
  const nowMs = Date.now();
  const viewer = viewerOf(request);
  const query = request.query as Static<typeof Query>;
  const siteId = query.site ?? null;
  const pastLimit = rowsLimit(request, pastShown);
  const [open, past, channels] = await Promise.all([
    deps.alerts.listOpen(siteId, rowsLimit(request, openShown)),
    deps.alerts.listResolved(siteId, pastLimit),
    deps.alerts.listChannels(),
  ]);
  const site = viewer.sites.find((one) => one.id === siteId) ?? null;
  const known = { siteId, site, open, past, pastLimit, channels };
  const content = alertsPage(request, { ...known, shown, viewer, nowMs });
  const options = { title: 'Alerts', ...(query.saved ? { toast: toast('good', 'Saved.') } : {}) };
  return sendConsolePage(reply, options, content);
}

interface AlertsPage {
  /** Alerts of this site alone; null: of all. */
  siteId: number | null;
  site: Site | null;
  open: readonly Episode[];
  past: readonly Episode[];
  /** How many resolved ones were asked for. */
  pastLimit: number;
  channels: readonly Channel[];
  shown: {
    /** Of a new webhook, shown only in this answer. */
    secret?: string;
  };
  viewer: Viewer;
  nowMs: number;
}

/** The page of open and resolved alerts, and of notification channels. */
function alertsPage(request: FastifyRequest, page: AlertsPage): Content {
  const { siteId, site, open, shown, viewer, nowMs } = page;
  return [
    pageHeader({
      title: site ? `Alerts of ${site.name}` : 'Alerts',
      state: stateOf(open, nowMs),
      actions: siteId !== null && link('/alerts', 'All sites', { kind: 'button' }),
    }),
    shown.secret && secretBanner(shown.secret),
    refreshing(
      { id: 'alerts-open', url: request.method === 'GET' ? request.url : '/alerts', everySeconds: 20 },
      [section({ title: 'Open' }, openTable(request, open, viewer, nowMs))],
    ),
    section(
      { title: 'Resolved', description: `Kept for ${keptText('alerts')}.` },
      pastTable(request, page.past, page.pastLimit),
    ),
    channelsSection(request, { channels: page.channels, viewer, nowMs }),
    rulesSection(),
  ];
}

function stateOf(open: readonly Episode[], nowMs: number): { tone: Tone; text: Content } {
  if (open.length === 0) return { tone: 'good', text: 'All clear: no open alerts.' };
  const since = Math.min(...open.map((one) => one.openedAtMs));
  const unseen = open.filter((one) => one.acknowledgedAtMs === null).length;
  const count = open.length === 1 ? '1 alert is open' : `${formatCount(open.length)} alerts are open`;
  const taken =
    unseen === 0
      ? open.length === 1
        ? 'acknowledged'
        : 'all acknowledged'
      : `${formatCount(unseen)} not acknowledged`;
  const age = formatDuration((nowMs - since) / 1000);
  return { tone: unseen > 0 ? 'bad' : 'warn', text: `${count}, the oldest for ${age}; ${taken}.` };
}

function secretBanner(secret: string): Content {
  return [
    banner({
      tone: 'info',
      title: 'Signing secret of the webhook, shown only now',
      text: 'Store it in the receiver, which verifies each delivery with it as in Standard Webhooks. If it is lost, delete the channel and add a new one.',
    }),
    codeBlock({ code: secret, label: 'Signing secret' }),
  ];
}

function openTable(request: FastifyRequest, open: readonly Episode[], viewer: Viewer, nowMs: number) {
  return dataTable<Episode>(request, {
    id: 'open',
    caption: 'Open alerts',
    card: { line: ['site', 'opened', 'state'] },
    isStacked: true,
    rows: open,
    rowTone: (row) => (row.acknowledgedAtMs === null ? 'bad' : 'warn'),
    columns: [
      linkColumn('title', 'Alert', (row) => [titleOf(row), placeOf(row)]),
      { key: 'site', header: 'Site', cell: (row) => row.siteName, value: (row) => row.siteName },
      ageColumn('opened', 'Opened', (row) => row.openedAtMs, nowMs, { field: 'opened_at' }),
      textColumn('measured', 'Measured', measuredOf, { kind: 'prose' }),
      {
        key: 'state',
        header: 'State',
        kind: 'prose',
        cell: (row) => careOf(row, nowMs),
        value: (row) => row.acknowledgedBy,
      },
      ...(viewer.canChange
        ? [
            {
              key: 'actions',
              header: 'Actions',
              kind: 'actions' as const,
              cell: (row: Episode) => link(`/alerts/${row.id}`, 'Handle', { kind: 'button' }),
            },
          ]
        : []),
    ],
    empty: {
      title: 'No open alerts',
      text: 'Silent sensors, captures that lose packets, failing probes and sensors that run out of storage appear here. The channels below are notified.',
    },
  });
}

function pastTable(request: FastifyRequest, past: readonly Episode[], limit: number) {
  return dataTable<Episode>(request, {
    id: 'resolved',
    caption: 'Resolved alerts',
    card: { line: ['site', 'opened', 'lasted'] },
    rows: past,
    isComplete: past.length < limit,
    columns: [
      linkColumn('title', 'Alert', (row) => [titleOf(row), placeOf(row)]),
      { key: 'site', header: 'Site', cell: (row) => row.siteName, value: (row) => row.siteName },
      timeColumn('opened', 'Opened', (row) => row.openedAtMs, { field: 'opened_at' }),
      {
        key: 'resolved',
        header: 'Resolved',
        field: 'resolved_at',
        cell: (row) => moment(row.resolvedAtMs, Date.now()),
        value: (row) => isoTime(row.resolvedAtMs),
      },
      {
        key: 'lasted',
        header: 'Lasted',
        kind: 'figure',
        field: 'seconds',
        cell: (row) => formatDuration((row.resolvedAtMs! - row.openedAtMs) / 1000),
        value: (row) => Math.round((row.resolvedAtMs! - row.openedAtMs) / 1000),
      },
      textColumn('end', 'End', (row) => row.resolution, { field: 'resolution' }),
      textColumn('by', 'Acknowledged by', (row) => row.acknowledgedBy, {
        field: 'acknowledged_by',
        show: (acknowledgedBy) => acknowledgedBy ?? '–',
      }),
    ],
    empty: { title: 'No resolved alerts yet', text: `Resolved alerts are kept for ${keptText('alerts')}.` },
  });
}

function rulesSection() {
  const share = (one: { badFrom: number; goodBelow: number }) =>
    `from ${formatPercent(one.badFrom)}; recovered below ${formatPercent(one.goodBelow)}`;
  return section(
    {
      title: 'When an alert opens',
      description:
        'It is resolved after one or two minutes of good values without a break. Unmeasured values change nothing.',
    },
    definitionList([
      { term: 'Sensor silent', value: `no contact for ${formatDuration(silentAfterSeconds)}` },
      { term: 'Capture down', value: 'the sensor has contact, but a capture does not listen' },
      {
        term: 'Sensor clock wrong',
        value: `off by ${skewSeconds.badFrom} s or more; recovered below ${skewSeconds.goodBelow} s`,
      },
      {
        term: 'Sensor sends no minutes',
        value: `it has contact, but no minute arrived for ${formatDuration(missingSeconds.badFrom)}`,
      },
      {
        term: 'Minutes refused',
        value: `an upload was refused; recovered after ${formatDuration(refusedSeconds)} without a refusal`,
      },
      {
        term: 'Capture loses packets',
        value: `lost in the kernel or not parsed, of ${lossMinutes} min: ${share(lossShare)}`,
      },
      { term: 'Probe down', value: `${downMinutes} measured minutes in a row without an answer` },
      {
        term: 'Sensor storage low',
        value: `its spool ${share(spoolShare)}; its disk ${share(diskShare)}; or collection pauses`,
      },
      {
        term: 'Disk almost full',
        value: `of the monitor’s data: ${formatPercent(diskLimits.share.bad)} free, or full within ${diskLimits.hours.bad} h at the speed of the last hours`,
      },
      {
        term: 'Background task failing',
        value:
          'a loop of the monitor, such as a feed or retention, fails for 2 min, or has not run when it should',
      },
      {
        term: 'Uploads not applied',
        value: `the oldest waits for ${formatDuration(waitingSeconds.badFrom)}`,
      },
      { term: 'Hand-off failing', value: 'an action of a rule that is on fails, or waits for room' },
      {
        term: 'Database takes no writes',
        value:
          'for a minute; mailed to the addresses of all mail channels, because an alert could not be stored',
      },
    ]),
  );
}
