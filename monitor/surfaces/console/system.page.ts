/** `/system`: how the monitor itself is: what waits, who works, what the feeds and retention did, who is behind. */
import type { FastifyRequest } from 'fastify';
import type { FeedRecord, Health, HealthReport } from '#monitor/health/index.ts';
import type { App } from '#service-kit/http/index.ts';
import {
  age,
  badge,
  type Content,
  code,
  formatCount,
  formatDuration,
  html,
  isoTime,
  link,
  notice,
  pageHeader,
  refreshing,
  section,
  stat,
  stats,
} from '#service-kit/pages/index.ts';
import { dataTable } from './data-table.ts';
import { sendConsolePage } from './frame.ts';

/** Sensors in the table, those furthest behind. */
const sensorsShown = 20;
const lateSeconds = 180;
const feedNames: Readonly<Record<FeedRecord['feed'], string>> = {
  inventory: 'Inventory of operations',
  telemetry: 'Minute traffic to operations',
};

export function registerSystemPage(app: App, deps: { health: Health }): void {
  app.get('/system', async (request, reply) => {
    const report = await deps.health.read();
    const content = [
      pageHeader({ title: 'System', state: sentence(report) }),
      refreshing({ id: 'system', url: '/system', everySeconds: 15 }, [
        report.problems.map((problem) => notice({ tone: 'warn', title: problem })),
        figures(report),
        workers(request, report),
        feeds(request, report),
        retention(request, report),
        sensors(request, report),
      ]),
    ];
    return sendConsolePage(request, reply, { title: 'System' }, content);
  });
}

function sentence({ problems, inbox }: HealthReport) {
  if (problems.length > 0)
    return {
      tone: 'warn' as const,
      text: problems.length === 1 ? problems[0] : `${problems.length} things need somebody.`,
    };
  return {
    tone: 'good' as const,
    text:
      inbox.pending === 0
        ? 'All is applied, every feed and every sensor is well.'
        : 'Uploads are applied as they come; every feed and every sensor is well.',
  };
}

function figures({ inbox, leases, sensors }: HealthReport): Content {
  const lag = Math.max(0, ...sensors.map(({ lagSeconds }) => lagSeconds ?? 0));
  const holders = new Set(
    leases.filter(({ name, isHeld }) => isHeld && name.startsWith('inbox ')).map(({ holder }) => holder),
  );
  return stats(
    stat({
      label: 'Uploads waiting',
      value: formatCount(inbox.pending),
      tone: (inbox.oldestSeconds ?? 0) > 60 ? 'warn' : 'neutral',
      source:
        inbox.oldestSeconds === null
          ? 'nothing waits'
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
        inbox.failing > 0 ? `${inbox.failing} of those that wait failed before` : 'after five attempts each',
    }),
    stat({
      label: 'Furthest behind',
      value: sensors.length === 0 ? undefined : formatDuration(lag),
      source: `${formatCount(sensors.length)} ${sensors.length === 1 ? 'sensor' : 'sensors'}`,
    }),
  );
}

function workers(request: FastifyRequest, { leases, asOfMs }: HealthReport): Content {
  return dataTable(request, {
    id: 'loops',
    caption: 'Loops',
    rows: leases,
    columns: [
      { key: 'name', header: 'Loop', cell: ({ name }) => name, value: ({ name }) => name },
      {
        key: 'held',
        header: 'Held',
        cell: ({ isHeld }) => (isHeld ? badge('good', 'held') : badge('neutral', 'free')),
        value: ({ isHeld }) => isHeld,
      },
      {
        key: 'holder',
        header: 'Last holder',
        cell: ({ holder }) => code(holder.slice(0, 24)),
        value: ({ holder }) => holder,
      },
      {
        key: 'term',
        header: 'Term',
        kind: 'figure',
        cell: ({ term }) => formatCount(term),
        value: ({ term }) => term,
      },
      {
        key: 'since',
        header: 'Since',
        kind: 'figure',
        cell: ({ acquiredAtMs }) => age(acquiredAtMs, asOfMs),
        value: ({ acquiredAtMs }) => isoTime(acquiredAtMs),
      },
    ],
    empty: { title: 'No loop has run yet', text: 'They take their leases when there is something to do.' },
  });
}

function feeds(request: FastifyRequest, report: HealthReport): Content {
  return dataTable(request, {
    id: 'feeds',
    caption: 'Feeds',
    rows: report.feeds,
    rowTone: ({ lastError }) => (lastError === null ? undefined : 'warn'),
    columns: [
      { key: 'feed', header: 'Feed', cell: ({ feed }) => feedNames[feed], value: ({ feed }) => feed },
      {
        key: 'run',
        header: 'Last run',
        kind: 'figure',
        cell: ({ lastRunAtMs }) => age(lastRunAtMs, report.asOfMs),
        value: ({ lastRunAtMs }) => (lastRunAtMs === null ? null : isoTime(lastRunAtMs)),
      },
      {
        key: 'success',
        header: 'Last success',
        kind: 'figure',
        cell: ({ lastSuccessAtMs }) => age(lastSuccessAtMs, report.asOfMs),
        value: ({ lastSuccessAtMs }) => (lastSuccessAtMs === null ? null : isoTime(lastSuccessAtMs)),
      },
      {
        key: 'error',
        header: 'Last error',
        cell: ({ lastError }) => lastError ?? badge('good', 'none'),
        value: ({ lastError }) => lastError,
      },
    ],
    empty: { title: 'No feeds', text: 'Feeds run once a connection to operations is saved.' },
  });
}

function retention(request: FastifyRequest, { maintenance, asOfMs }: HealthReport): Content {
  const { lastSuccessAtMs, lastSeconds, lastCounts } = maintenance;
  const rows = Object.entries(lastCounts).map(([name, count]) => ({ name, count }));
  return section(
    {
      title: 'Retention',
      description:
        lastSuccessAtMs === null
          ? 'It has not run yet; it does every hour.'
          : html`Ran ${age(lastSuccessAtMs, asOfMs)} and took ${formatDuration(lastSeconds ?? 0)}.`,
    },
    dataTable(request, {
      id: 'retention',
      caption: 'Removed by the last run',
      rows,
      columns: [
        {
          key: 'name',
          header: 'What',
          cell: ({ name }) => name.replaceAll('_', ' '),
          value: ({ name }) => name,
        },
        {
          key: 'count',
          header: 'Removed',
          kind: 'figure',
          cell: ({ count }) => formatCount(count),
          value: ({ count }) => count,
        },
      ],
      empty: { title: 'Nothing had expired', text: 'What is older than its time is removed every hour.' },
    }),
  );
}

function sensors(request: FastifyRequest, { sensors: all }: HealthReport): Content {
  const behind = (seconds: number | null) => seconds ?? Number.POSITIVE_INFINITY;
  const rows = all
    .toSorted((a, b) => behind(b.lagSeconds) - behind(a.lagSeconds) || a.sensorId - b.sensorId)
    .slice(0, sensorsShown);
  return dataTable(request, {
    id: 'lag',
    caption: `Sensors furthest behind, ${rows.length} of ${all.length}`,
    rows,
    isComplete: rows.length === all.length,
    rowTone: ({ silentSeconds }) => (behind(silentSeconds) > lateSeconds ? 'warn' : undefined),
    columns: [
      {
        key: 'host',
        header: 'Host',
        cell: ({ siteId, hostName }) => link(`/sites/${siteId}/sensors`, hostName),
        value: ({ hostName }) => hostName,
      },
      {
        key: 'lag',
        header: 'Newest minute',
        kind: 'figure',
        cell: ({ lagSeconds }) => (lagSeconds === null ? 'none yet' : `${formatDuration(lagSeconds)} behind`),
        value: ({ lagSeconds }) => lagSeconds,
      },
      {
        key: 'silent',
        header: 'Last heard',
        kind: 'figure',
        cell: ({ silentSeconds }) =>
          silentSeconds === null ? 'never' : `${formatDuration(silentSeconds)} ago`,
        value: ({ silentSeconds }) => silentSeconds,
      },
    ],
    empty: { title: 'No sensors yet', text: 'Enrol one in a site’s settings.' },
  });
}
