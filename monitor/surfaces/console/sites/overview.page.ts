/** `/`: every site with its state and recent traffic, and the form for a new site. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { Episode } from '#monitor/alerts/index.ts';
import type { Site } from '#monitor/sites/index.ts';
import type { Collection, SiteTraffic } from '#monitor/traffic/index.ts';
import type { App } from '#service-kit/http/index.ts';
import {
  actionButton,
  badge,
  type Content,
  codeBlock,
  drawer,
  field,
  form,
  formatAge,
  formatBitRate,
  formatCount,
  formatPercent,
  html,
  isoTime,
  link,
  pageHeader,
  refreshing,
  section,
  spark,
  stat,
  stats,
  type Tone,
  withQuery,
} from '#service-kit/pages/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { faultText, sendConsolePage } from '../frame.ts';
import { viewerOf } from '../guard.ts';
import { dataTable } from '../parts/data-table.ts';
import { enrolCommand } from '../parts/enrol-command.ts';
import { collectionSentence, lateMs } from '../parts/site-state.ts';

interface SiteLine {
  site: Site;
  sensors: number;
  silent: number;
  newestMinuteMs: number | undefined;
  /** The last six hours in steps of ten minutes, and the newest minute. */
  hours: SiteTraffic;
  inBps: number | null;
  outBps: number | null;
  lastHour: Collection;
  gaps: number;
  /** Open alerts. */
  alerts: number;
}

const recentMs = 15 * 60_000;
const hourMs = 3_600_000;
const dayMs = 86_400_000;
const stepSeconds = 600;
const sitesShown = 50;
const gapsMax = 100;
const alertsMax = 1_000;

const Query = Type.Object({ page: Type.Optional(Type.Integer({ minimum: 1, maximum: 10_000 })) });

export function registerOverviewPage(app: App, deps: ConsoleDeps): void {
  app.get('/', { schema: { querystring: Query } }, async (request, reply) =>
    showOverview(deps, request, reply, request.query.page ?? 1),
  );

  app.post(
    '/sites',
    { schema: { body: Type.Object({ name: Type.String({ maxLength: 200 }) }) } },
    async (request, reply) => {
      const { name } = request.body;
      try {
        const site = await deps.sites.create(viewerOf(request).actor, name);
        return reply.redirect(`/sites/${site.id}/settings#enrol`, 303);
      } catch (error) {
        const fault = faultText(error, 'sites.invalid', 'sites.name_taken');
        return showOverview(deps, request, reply, 1, { name, fault });
      }
    },
  );
}

async function showOverview(
  deps: ConsoleDeps,
  request: FastifyRequest,
  reply: FastifyReply,
  page: number,
  refused?: { name: string; fault: string },
) {
  const nowMs = Date.now();
  const viewer = viewerOf(request);
  const first = (page - 1) * sitesShown;
  const [newest, summaries, open] = await Promise.all([
    deps.traffic.newestMinutes(),
    deps.sensors.summarize(nowMs - lateMs),
    deps.alerts.listOpen(null, alertsMax),
  ]);
  const alerts = Map.groupBy(open, (episode) => episode.siteId);
  const bySite = new Map(summaries.map((summary) => [summary.siteId, summary]));
  const lines = await Promise.all(
    viewer.sites.slice(first, first + sitesShown).map((site) => {
      const { sensors = 0, silent = 0 } = bySite.get(site.id) ?? {};
      const known = { site, sensors, silent, alerts: alerts.get(site.id)?.length ?? 0 };
      return readLine(deps, { ...known, newestMinuteMs: newest.get(site.id) }, nowMs);
    }),
  );
  const total = {
    sensors: summaries.reduce((sum, one) => sum + one.sensors, 0),
    silent: summaries.reduce((sum, one) => sum + one.silent, 0),
  };
  const newestMs = newest.size > 0 ? Math.max(...newest.values()) : undefined;
  const newSite = newSiteForm(viewer.csrfToken, refused);
  const content = [
    pageHeader({
      title: 'Sites',
      state: viewer.sites.length > 0 ? stateOf(total, newestMs, open, nowMs) : undefined,
      actions: viewer.canChange && drawer({ id: 'new-site', open: 'New site', title: 'New site' }, newSite),
    }),
    refused && newSite,
    viewer.sites.length > 0 && total.sensors === 0 && firstSensor(deps, request),
    refreshing({ id: 'sites', url: request.url, everySeconds: 15 }, [
      total.sensors > 0 && overallStats(lines, { ...total, alerts: open.length }, nowMs),
      sitesTable(request, lines, page, nowMs),
    ]),
  ];
  return sendConsolePage(request, reply, { title: 'Overview', status: refused ? 422 : 200 }, content);
}

/** Alerts first: they matter more than the age of the data. */
function stateOf(
  total: { sensors: number; silent: number },
  newestMs: number | undefined,
  open: readonly Episode[],
  nowMs: number,
): { tone: Tone; text: string } {
  const collection = collectionSentence(total, newestMs, nowMs);
  if (open.length === 0) return collection;
  const count = open.length === 1 ? '1 alert is open.' : `${formatCount(open.length)} alerts are open.`;
  const isTaken = open.every((episode) => episode.acknowledgedAtMs !== null);
  const tone = isTaken && collection.tone !== 'bad' ? 'warn' : 'bad';
  return { tone, text: `${count} ${collection.text}` };
}

async function readLine(
  deps: ConsoleDeps,
  known: Pick<SiteLine, 'site' | 'sensors' | 'silent' | 'alerts' | 'newestMinuteMs'>,
  nowMs: number,
): Promise<SiteLine> {
  const { site, newestMinuteMs } = known;
  const toMs = Math.ceil(nowMs / (stepSeconds * 1000)) * stepSeconds * 1000;
  const isRecent = newestMinuteMs !== undefined && newestMinuteMs >= nowMs - recentMs;
  const [gaps, hours, newest, lastHour] = await Promise.all([
    deps.traffic.listGaps(site.id, nowMs - dayMs, nowMs, gapsMax),
    deps.traffic.readSiteTraffic(site.id, toMs - 6 * hourMs, toMs, stepSeconds),
    isRecent ? deps.traffic.readSiteTraffic(site.id, newestMinuteMs, newestMinuteMs + 60_000, 60) : null,
    deps.traffic.readCollection(site.id, nowMs - hourMs, nowMs),
  ]);
  return {
    ...known,
    hours,
    inBps: newest?.inBps[0] ?? null,
    outBps: newest?.outBps[0] ?? null,
    lastHour,
    gaps: gaps.length,
  };
}

function newSiteForm(csrfToken: string, refused?: { name: string; fault: string }) {
  return form({ action: '/sites', csrfToken, submit: 'Create site' }, [
    field({
      ...(refused ? { id: 'field-name-refused', value: refused.name, error: refused.fault } : {}),
      name: 'name',
      label: 'Name',
      required: true,
      maxLength: 80,
      hint: 'A location with hypervisors, such as “Frankfurt 1”.',
    }),
  ]);
}

/** How to enrol the first sensor. */
function firstSensor(deps: ConsoleDeps, request: FastifyRequest): Content {
  const viewer = viewerOf(request);
  const site = viewer.sites[0]!;
  return section(
    {
      title: 'Enrol the first sensor',
      description:
        'Each hypervisor runs a sensor. It needs a one-time token of its site and reports within two minutes.',
    },
    [
      codeBlock({
        label: 'On the hypervisor',
        code: enrolCommand(deps.monitorUrl(), request, 'TOKEN'),
      }),
      viewer.canChange &&
        actionButton({
          action: `/sites/${site.id}/settings/enrolment-tokens`,
          csrfToken: viewer.csrfToken,
          label: `Create a token for ${site.name}`,
          kind: 'primary',
        }),
    ],
  );
}

function overallStats(
  lines: readonly SiteLine[],
  { sensors, silent, alerts }: { sensors: number; silent: number; alerts: number },
  nowMs: number,
) {
  const sum = (values: (number | null)[]) =>
    values.every((value) => value === null) ? null : values.reduce<number>((all, one) => all + (one ?? 0), 0);
  const watched = lines.filter((line) => line.sensors > 0);
  const known = watched.filter((line) => line.inBps !== null).length;
  const source =
    watched.length === 1
      ? 'newest minute'
      : `newest minutes of ${known}${known < watched.length ? ` of ${watched.length}` : ''} sites`;
  const rate = (values: (number | null)[]) => {
    const total = sum(values);
    return total === null ? undefined : formatBitRate(total);
  };
  const late = lines.filter(
    (line) => (line.newestMinuteMs ?? 0) < nowMs - recentMs && line.sensors > 0,
  ).length;
  return stats(
    stat({ label: 'In', value: rate(lines.map((line) => line.inBps)), source }),
    stat({ label: 'Out', value: rate(lines.map((line) => line.outBps)), source }),
    stat({
      label: 'Sensors reporting',
      value: `${formatCount(sensors - silent)} of ${formatCount(sensors)}`,
      source: 'contact within 3 min',
      tone: silent > 0 ? 'warn' : undefined,
    }),
    stat({
      label: 'Open alerts',
      value: alerts >= alertsMax ? `${formatCount(alertsMax)} or more` : formatCount(alerts),
      source: 'at all sites',
      tone: alerts > 0 ? 'bad' : undefined,
      href: '/alerts',
    }),
    stat({
      label: 'Sites without a fresh minute',
      value: formatCount(late),
      source: 'older than 15 min',
      tone: late > 0 ? 'warn' : undefined,
    }),
  );
}

/** Part of the last hour's packets that was lost; unknown without captures. */
function lossOf({ lastHour: { packets, kernelDropped, parserDropped } }: SiteLine): number | null {
  const all = packets + kernelDropped + parserDropped;
  return all === 0 ? null : (kernelDropped + parserDropped) / all;
}

function stateBadge({ sensors, silent }: SiteLine) {
  if (sensors === 0) return badge('neutral', 'no sensor');
  if (silent === 0) return badge('good', 'reporting');
  return silent === sensors ? badge('bad', 'silent') : badge('warn', `${silent} silent`);
}

function sitesTable(request: FastifyRequest, lines: readonly SiteLine[], page: number, nowMs: number) {
  const total = viewerOf(request).sites.length;
  const shown = `${(page - 1) * sitesShown + 1}–${(page - 1) * sitesShown + lines.length} of ${total}`;
  const to = (other: number) => withQuery(request.url, { page: other });
  return dataTable<SiteLine>(request, {
    id: 'sites',
    caption: 'Sites',
    rows: lines,
    columns: [
      {
        key: 'name',
        header: 'Site',
        field: 'site',
        cell: ({ site }) => link(`/sites/${site.id}/traffic`, site.name),
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
        key: 'hours',
        header: 'Last 6 h',
        kind: 'picture',
        cell: ({ hours, site }) =>
          spark({ in: hours.inBps, out: hours.outBps }, `In and out of ${site.name} over the last six hours`),
      },
      {
        key: 'in',
        header: 'In',
        kind: 'figure',
        cell: ({ inBps }) => rateCell(inBps),
        field: 'in_bps',
        value: ({ inBps }) => inBps,
      },
      {
        key: 'out',
        header: 'Out',
        kind: 'figure',
        cell: ({ outBps }) => rateCell(outBps),
        field: 'out_bps',
        value: ({ outBps }) => outBps,
      },
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
      {
        key: 'sensors',
        header: 'Sensors',
        kind: 'figure',
        cell: ({ site, sensors }) => link(`/sites/${site.id}/sensors`, formatCount(sensors)),
        value: ({ sensors }) => sensors,
      },
      {
        key: 'alerts',
        header: 'Alerts',
        kind: 'figure',
        cell: ({ alerts }) =>
          alerts === 0 ? 'none' : link('/alerts', badge('bad', `${formatCount(alerts)} open`)),
        field: 'open_alerts',
        value: ({ alerts }) => alerts,
      },
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
    ],
    pages:
      total > sitesShown
        ? {
            label: shown,
            previousHref: page > 1 ? to(page - 1) : undefined,
            nextHref: page * sitesShown < total ? to(page + 1) : undefined,
          }
        : undefined,
    empty: {
      title: 'No sites yet',
      text: 'A site is a location with hypervisors. Create one with “New site”; its settings show the command that enrols each sensor.',
      command: 'SVC_MONITOR_URL=… SVC_SENSOR_ENROLMENT_TOKEN=… ./svc sensor run',
    },
  });
}

function rateCell(bps: number | null): Content {
  return bps === null ? null : formatBitRate(bps);
}
