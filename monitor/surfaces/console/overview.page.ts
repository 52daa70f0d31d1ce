/** `/`: every site with its state, and the form that makes one. */
import { Type } from 'typebox';
import type { SensorState } from '#monitor/sensors/index.ts';
import type { Site } from '#monitor/sites/index.ts';
import type { App } from '#service-kit/http/index.ts';
import {
  badge,
  drawer,
  field,
  form,
  formatAge,
  formatBitRate,
  formatCount,
  html,
  isoTime,
  link,
  pageHeader,
  refreshing,
} from '#service-kit/pages/index.ts';
import { dataTable } from './data-table.ts';
import { faultText, sendConsolePage } from './frame.ts';
import { viewerOf } from './guard.ts';
import type { ConsoleDeps } from './index.ts';
import { isLate, siteState } from './site-state.ts';

interface SiteLine {
  site: Site;
  sensors: SensorState[];
  newestMinuteMs: number | undefined;
  inBps: number | null;
  outBps: number | null;
  gaps: number;
}

const recentMs = 15 * 60_000;
const dayMs = 86_400_000;

export function registerOverviewPage(app: App, deps: ConsoleDeps): void {
  app.get('/', async (request, reply) => showOverview(deps, request, reply));

  app.post(
    '/sites',
    { schema: { body: Type.Object({ name: Type.String({ maxLength: 200 }) }) } },
    async (request, reply) => {
      try {
        const site = await deps.sites.create(viewerOf(request).actor, request.body.name);
        return reply.redirect(`/sites/${site.id}/settings`, 303);
      } catch (error) {
        const fault = faultText(error, 'sites.invalid', 'sites.name_taken');
        return showOverview(deps, request, reply, fault);
      }
    },
  );
}

async function showOverview(
  deps: ConsoleDeps,
  request: Parameters<typeof viewerOf>[0],
  reply: Parameters<typeof sendConsolePage>[1],
  fault?: string,
) {
  const nowMs = Date.now();
  const viewer = viewerOf(request);
  const newest = await deps.traffic.newestMinutes();
  const lines = await Promise.all(
    (await deps.sites.list()).map((site) => readLine(deps, site, newest.get(site.id), nowMs)),
  );
  const newSite = form(
    { action: '/sites', csrfToken: viewer.csrfToken, submit: 'Create site', error: fault },
    [field({ name: 'name', label: 'Name', required: true, maxLength: 80, hint: 'Such as “Frankfurt 1”.' })],
  );
  const content = [
    pageHeader({
      title: 'Sites',
      state: overallState(lines, nowMs),
      actions: viewer.canChange && drawer({ id: 'new-site', open: 'New site', title: 'New site' }, newSite),
    }),
    fault && newSite,
    refreshing({ id: 'sites', url: '/', everySeconds: 15 }, sitesTable(request, lines, nowMs)),
  ];
  return sendConsolePage(request, reply, { title: 'Sites', status: fault ? 422 : 200 }, content);
}

async function readLine(
  deps: ConsoleDeps,
  site: Site,
  newestMinuteMs: number | undefined,
  nowMs: number,
): Promise<SiteLine> {
  const [sensors, gaps, traffic] = await Promise.all([
    deps.sensors.list(site.id),
    deps.traffic.listGaps(site.id, nowMs - dayMs, nowMs, 100),
    newestMinuteMs === undefined || newestMinuteMs < nowMs - recentMs
      ? null
      : deps.traffic.readSiteTraffic(site.id, newestMinuteMs, newestMinuteMs + 60_000, 60),
  ]);
  return {
    site,
    sensors,
    newestMinuteMs,
    inBps: traffic?.inBps[0] ?? null,
    outBps: traffic?.outBps[0] ?? null,
    gaps: gaps.length,
  };
}

function overallState(lines: readonly SiteLine[], nowMs: number) {
  if (lines.length === 0) return undefined;
  if (lines.length === 1) return siteState(lines[0]!.sensors, lines[0]!.newestMinuteMs, nowMs);
  const sensors = lines.flatMap((line) => line.sensors);
  const newest = Math.max(...lines.map((line) => line.newestMinuteMs ?? 0));
  return siteState(sensors, newest > 0 ? newest : undefined, nowMs);
}

function sitesTable(request: Parameters<typeof viewerOf>[0], lines: readonly SiteLine[], nowMs: number) {
  return dataTable<SiteLine>(request, {
    id: 'sites',
    caption: 'Sites',
    rows: lines,
    columns: [
      {
        key: 'name',
        header: 'Site',
        cell: ({ site }) => link(`/sites/${site.id}/traffic`, site.name),
        value: ({ site }) => site.name,
      },
      {
        key: 'state',
        header: 'State',
        cell: ({ sensors }) => {
          const late = sensors.filter((sensor) => isLate(sensor, nowMs)).length;
          if (sensors.length === 0) return badge('neutral', 'no sensor');
          if (late === 0) return badge('good', 'reporting');
          return late === sensors.length ? badge('bad', 'silent') : badge('warn', `${late} silent`);
        },
        field: 'silent_sensors',
        value: ({ sensors }) => sensors.filter((sensor) => isLate(sensor, nowMs)).length,
      },
      {
        key: 'sensors',
        header: 'Sensors',
        kind: 'figure',
        cell: ({ sensors }) => formatCount(sensors.length),
        value: ({ sensors }) => sensors.length,
      },
      {
        key: 'in',
        header: 'In',
        kind: 'figure',
        cell: ({ inBps }) => formatBitRate(inBps),
        field: 'in_bps',
        value: ({ inBps }) => inBps,
      },
      {
        key: 'out',
        header: 'Out',
        kind: 'figure',
        cell: ({ outBps }) => formatBitRate(outBps),
        field: 'out_bps',
        value: ({ outBps }) => outBps,
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
      {
        key: 'gaps',
        header: 'Gaps in 24 h',
        kind: 'figure',
        cell: ({ gaps }) => (gaps >= 100 ? '100 or more' : formatCount(gaps)),
        field: 'gaps_24h',
        value: ({ gaps }) => gaps,
      },
    ],
    empty: {
      title: 'No sites yet',
      text: 'A site is a place with sensors. Create one, then enrol the sensor of each hypervisor in its settings.',
    },
  });
}
