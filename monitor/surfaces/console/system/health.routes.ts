/** `/api/integrations/operations/health`: state of the feeds and their dependencies, for signed-in people (NET-4.j). */
import { type Static, Type } from 'typebox';
import type { Health, HealthReport } from '#monitor/health/index.ts';
import { isSilentFor } from '#monitor/sensors/index.ts';
import type { App } from '#service-kit/http/index.ts';

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
