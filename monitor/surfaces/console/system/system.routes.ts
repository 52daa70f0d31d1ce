/** `/system`: the request for the state of the monitor itself. */
import type { FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import type { Feeds } from '#monitor/feeds/index.ts';
import type { Health, HealthReport } from '#monitor/health/index.ts';
import { isSilentFor } from '#monitor/sensors/index.ts';
import type { App } from '#service-kit/http/index.ts';
import {
  age,
  badge,
  banner,
  type Content,
  formatBytes,
  formatCount,
  formatDuration,
  html,
  link,
  pageHeader,
  refreshing,
  section,
  stat,
  stats,
} from '#service-kit/pages/index.ts';
import { systemSections } from '#service-kit/system/index.ts';
import { ageColumn, countColumn, dataTable, figureColumn, textColumn } from '#service-kit/web/index.ts';
import { sendConsolePage } from '../frame.ts';

export function registerSystem(app: App, deps: { health: Health; feeds: Pick<Feeds, 'all'> }): void {
  const feedWork = deps.feeds.all.map(({ feed }): [string, string] => [feed.loop, feed.purpose]);
  app.get('/system', async (request, reply) => {
    const content = systemPage(request, await deps.health.read(), feedWork);
    return sendConsolePage(reply, { title: 'System' }, content);
  });
}

/** Maximum number of sensors in the table. */
const sensorsShown = 20;
/** Descriptions of loops; a loop without one is shown by its name. */
const ownLoopWork: Readonly<Record<string, string>> = {
  alerts: 'evaluates alerts and notifies channels',
  assess_vulnerabilities: 'compares services with the vulnerability database',
  import_inventory: 'imports the inventory of operations',
  incidents: 'marks attacks that no sensor reports any more',
  maintain_metrics: 'deletes expired data',
  note_application_names: 'indexes names for the search',
  rank_applications: 'ranks the applications of 24 hours',
  refresh_vulnerabilities: 'updates the copy of the vulnerability database',
  roll_up_hours: 'computes hourly sums',
};

/** `feedWork`: the loop of each feed, and what it does. */
function systemPage(
  request: FastifyRequest,
  report: HealthReport,
  feedWork: readonly (readonly [string, string])[],
): Content {
  const loopWork = new Map([...Object.entries(ownLoopWork), ...feedWork]);
  const workOf = (name: string) => loopWork.get(name) ?? (name.startsWith('inbox ') ? 'applies uploads' : '');
  return [
    pageHeader({ title: 'System', state: sentence(report) }),
    refreshing({ id: 'system', url: '/system', everySeconds: 15 }, [
      report.problems.map((problem) => banner({ tone: 'warn', title: problem })),
      report.factMove.text === null ? [] : banner({ tone: 'info', title: report.factMove.text }),
      figures(report),
      systemSections(request, report.system, workOf),
      feeds(request, report),
      facts(report),
      retention(request, report),
      section(
        {
          title: 'Vulnerability database',
          description: 'The copy of the NVD’s records that services are compared with.',
        },
        html`<p>${link('/system/vulnerability-database', 'Records, their age and the last error of each product')}</p>`,
      ),
      sensors(request, report),
    ]),
  ];
}

function sentence({ problems, inbox }: HealthReport) {
  if (problems.length > 0)
    return {
      tone: 'warn' as const,
      text: problems.length === 1 ? problems[0] : `${problems.length} problems need attention.`,
    };
  return {
    tone: 'good' as const,
    text:
      inbox.pending === 0
        ? 'All clear: all uploads are applied, and every feed and sensor works.'
        : 'All clear: uploads are applied as they arrive, and every feed and sensor works.',
  };
}

function figures({ inbox, system, sensors }: HealthReport): Content {
  const lag = Math.max(0, ...sensors.map(({ lagSeconds }) => lagSeconds ?? 0));
  const holders = new Set(
    system.loops
      .filter(({ name, isHeld }) => isHeld && name.startsWith('inbox '))
      .map(({ holder }) => holder),
  );
  return stats(
    stat({
      label: 'Uploads waiting',
      value: formatCount(inbox.pending),
      tone: (inbox.oldestSeconds ?? 0) > 60 ? 'warn' : 'neutral',
      source:
        inbox.oldestSeconds === null
          ? 'none waiting'
          : `the oldest for ${formatDuration(inbox.oldestSeconds)}`,
    }),
    stat({
      label: 'Applied in the last hour',
      value: formatCount(inbox.appliedLastHour),
      source:
        holders.size === 0
          ? 'no worker is busy now'
          : `${holders.size} busy ${holders.size === 1 ? 'worker' : 'workers'}`,
    }),
    stat({
      label: 'Given up in the last hour',
      value: formatCount(inbox.rejectedLastHour),
      tone: inbox.rejectedLastHour > 0 ? 'bad' : 'neutral',
      source:
        inbox.failing > 0
          ? `${inbox.failing} of the waiting uploads failed before`
          : 'after five attempts each',
    }),
    stat({
      label: 'Furthest behind',
      value: sensors.length === 0 ? undefined : formatDuration(lag),
      source: `${formatCount(sensors.length)} ${sensors.length === 1 ? 'sensor' : 'sensors'}`,
    }),
  );
}

/** Where the traffic facts have a server of their own. */
function facts({ facts: engine }: HealthReport): Content {
  if (engine === null) return [];
  const bytes = (value: number | null) => (value === null ? undefined : formatBytes(value));
  return section(
    { title: 'Traffic facts', description: `They are kept on ${engine.name}.` },
    stats(
      stat({
        label: 'Answers in',
        value: engine.answerMs === null ? undefined : `${Math.round(engine.answerMs)} ms`,
        tone: engine.problem === null ? 'neutral' : 'bad',
        source: engine.answerMs === null ? 'it does not answer' : 'a small question',
      }),
      stat({
        label: 'Stored',
        value: bytes(engine.bytes),
        source: engine.rows === null ? 'unknown' : `${formatCount(engine.rows)} rows`,
      }),
      stat({
        label: 'Parts',
        value: engine.parts === null ? undefined : formatCount(engine.parts),
        source: 'of all tables, which are merged in the background',
      }),
      stat({ label: 'Free on its disk', value: bytes(engine.freeBytes), source: 'merges need some of it' }),
    ),
  );
}

function feeds(request: FastifyRequest, report: HealthReport): Content {
  const table = dataTable<HealthReport['feeds'][number]>(request, {
    id: 'feeds',
    caption: 'Feeds',
    card: { line: ['run', 'success'] },
    rows: report.feeds,
    rowTone: ({ lastError }) => (lastError === null ? undefined : 'warn'),
    columns: [
      { key: 'feed', header: 'Feed', cell: ({ title }) => title, value: ({ feed }) => feed },
      ageColumn('run', 'Last run', ({ lastRunAtMs }) => lastRunAtMs, report.asOfMs),
      ageColumn('success', 'Last success', ({ lastSuccessAtMs }) => lastSuccessAtMs, report.asOfMs),
      textColumn('error', 'Last error', ({ lastError }) => lastError, {
        show: (lastError) => lastError ?? badge('good', 'none'),
      }),
    ],
    empty: { title: 'No feeds', text: 'Feeds run once a connection to operations is saved.' },
  });
  return section(
    {
      title: 'Feeds',
      description: html`Data exchanged with operations. Details are under ${link('/operations', 'Operations')}.`,
    },
    table,
  );
}

function retention(request: FastifyRequest, { maintenance, asOfMs }: HealthReport): Content {
  const { lastSuccessAtMs, lastSeconds, lastCounts } = maintenance;
  const rows = Object.entries(lastCounts).map(([name, count]) => ({ name, count }));
  return section(
    {
      title: 'Retention',
      description:
        lastSuccessAtMs === null
          ? 'It has not run yet. It runs every hour.'
          : html`Ran ${age(lastSuccessAtMs, asOfMs)} and took ${(lastSeconds ?? 0) < 1 ? 'less than a second' : formatDuration(lastSeconds ?? 0)}.`,
    },
    dataTable<{ name: string; count: number }>(request, {
      id: 'retention',
      caption: 'Removed by the last run',
      card: { line: ['count'] },
      rows,
      columns: [
        textColumn('name', 'What', ({ name }) => name, { show: (name) => name.replaceAll('_', ' ') }),
        countColumn('count', 'Removed', ({ count }) => count),
      ],
      empty: { title: 'Nothing had expired', text: 'Expired data is deleted every hour.' },
    }),
  );
}

function sensors(request: FastifyRequest, { sensors: all }: HealthReport): Content {
  const behind = (seconds: number | null) => seconds ?? Number.POSITIVE_INFINITY;
  const rows = all
    .toSorted((a, b) => behind(b.lagSeconds) - behind(a.lagSeconds) || a.sensorId - b.sensorId)
    .slice(0, sensorsShown);
  const table = dataTable<HealthReport['sensors'][number]>(request, {
    id: 'lag',
    caption: `Sensors furthest behind, ${rows.length} of ${all.length}`,
    card: { line: ['lag', 'silent'] },
    rows,
    isComplete: rows.length === all.length,
    rowTone: ({ silentSeconds }) => (isSilentFor(silentSeconds) ? 'warn' : undefined),
    columns: [
      {
        key: 'host',
        header: 'Host',
        cell: ({ siteId, sensorId, hostName }) => link(`/sites/${siteId}/sensors/${sensorId}`, hostName),
        value: ({ hostName }) => hostName,
      },
      figureColumn(
        'lag',
        'Newest minute',
        ({ lagSeconds }) => lagSeconds,
        (lagSeconds) => (lagSeconds === null ? 'none yet' : `${formatDuration(lagSeconds)} behind`),
      ),
      {
        key: 'silent',
        header: 'Last contact',
        kind: 'figure',
        cell: ({ silentSeconds, hasContact }) =>
          hasContact ? `${formatDuration(silentSeconds)} ago` : 'never',
        value: ({ silentSeconds, hasContact }) => (hasContact ? silentSeconds : null),
      },
    ],
    empty: { title: 'No sensors yet', text: 'Enrol one in a site’s settings.' },
  });
  return section(
    {
      title: 'Sensors',
      description:
        rows.length < all.length
          ? `The ${rows.length} of ${all.length} furthest behind.`
          : 'Furthest behind first.',
    },
    table,
  );
}

// `/api/integrations/operations/health`: state of the feeds and their dependencies, for signed-in people (NET-4.j).

const Moment = Type.Union([Type.String(), Type.Null()]);
const Counts = Type.Record(Type.String(), Type.Integer());
const Figure = Type.Union([Type.Number(), Type.Null()]);
const OperationsHealth = Type.Object({
  status: Type.Union([Type.Literal('ok'), Type.Literal('degraded')]),
  as_of: Type.String(),
  problems: Type.Array(Type.String()),
  feeds: Type.Array(
    Type.Object({
      feed: Type.String(),
      last_run_at: Moment,
      last_success_at: Moment,
      last_error: Type.Union([Type.String(), Type.Null()]),
      last_counts: Counts,
      newest_minute: Moment,
    }),
  ),
  inbox: Type.Object({
    pending: Type.Integer(),
    oldest_seconds: Figure,
    failing: Type.Integer(),
    applied_last_hour: Type.Integer(),
    rejected_last_hour: Type.Integer(),
  }),
  leases: Type.Array(
    Type.Object({
      name: Type.String(),
      holder: Type.String(),
      term: Type.Integer(),
      is_held: Type.Boolean(),
      expires_at: Type.String(),
    }),
  ),
  maintenance: Type.Object({
    last_run_at: Moment,
    last_success_at: Moment,
    last_error: Type.Union([Type.String(), Type.Null()]),
    last_counts: Counts,
    last_seconds: Figure,
  }),
  sensors: Type.Object({ enrolled: Type.Integer(), silent: Type.Integer() }),
  incidents: Type.Object({ active: Type.Integer(), stale: Type.Integer(), info: Type.Integer() }),
});

/** Reads stored data and runs nothing. Viewers may read it, and caches may not store it. */
export function registerHealth(app: App, deps: { health: Health }): void {
  app.get(
    '/api/integrations/operations/health',
    { schema: { response: { 200: OperationsHealth } } },
    async () => showReport(await deps.health.read()),
  );
}

const moment = (ms: number | null) => (ms === null ? null : new Date(ms).toISOString());

function showReport(report: HealthReport): Static<typeof OperationsHealth> {
  const { inbox, maintenance, sensors } = report;
  return {
    status: report.problems.length === 0 ? 'ok' : 'degraded',
    as_of: new Date(report.asOfMs).toISOString(),
    problems: report.problems,
    feeds: report.feeds.map((feed) => ({
      feed: feed.feed,
      last_run_at: moment(feed.lastRunAtMs),
      last_success_at: moment(feed.lastSuccessAtMs),
      last_error: feed.lastError,
      last_counts: { ...feed.lastCounts },
      newest_minute: moment(feed.newestMinute === null ? null : feed.newestMinute * 1000),
    })),
    inbox: {
      pending: inbox.pending,
      oldest_seconds: inbox.oldestSeconds,
      failing: inbox.failing,
      applied_last_hour: inbox.appliedLastHour,
      rejected_last_hour: inbox.rejectedLastHour,
    },
    leases: report.system.loops.map(({ name, holder, term, isHeld, expiresAtMs }) => ({
      name,
      holder,
      term,
      is_held: isHeld,
      expires_at: new Date(expiresAtMs).toISOString(),
    })),
    maintenance: {
      last_run_at: moment(maintenance.lastRunAtMs),
      last_success_at: moment(maintenance.lastSuccessAtMs),
      last_error: maintenance.lastError,
      last_counts: { ...maintenance.lastCounts },
      last_seconds: maintenance.lastSeconds,
    },
    sensors: {
      enrolled: sensors.length,
      silent: sensors.filter(({ silentSeconds }) => isSilentFor(silentSeconds)).length,
    },
    incidents: report.incidents,
  };
}
