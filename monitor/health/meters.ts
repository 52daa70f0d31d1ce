/**
 * Metrics of the monitor. The number of series is bounded: sensors by name up to a limit, as totals above it.
 */
import type { InboxTally } from '#monitor/inbox/index.ts';
import { isSilentFor } from '#monitor/sensors/index.ts';
import type { App } from '#service-kit/http/index.ts';
import type { Limits } from '#service-kit/limits/index.ts';
import { createMeters, type Meters, meterRequests } from '#service-kit/metrics/index.ts';
import { createSystemGauges } from '#service-kit/system/index.ts';
import type { Health } from './index.ts';
import type { HealthReport } from './report.ts';

/** Sensors with their own series, the first by id. */
const sensorSeriesMax = 200;

export type MonitorMeters = ReturnType<typeof createMonitorMeters>;

export interface MeterSources {
  health: Pick<Health, 'read'>;
  pool: { totalCount: number; idleCount: number; waitingCount: number };
  limits: Pick<Limits, 'findProblem'>;
}

export function createMonitorMeters() {
  const meters = createMeters('svc_monitor_');
  const uploads = meters.counter('inbox_uploads_total', 'Uploads in this process by result.', ['outcome']);
  const observations = meters.counter(
    'incident_observations_total',
    'Observations of incidents in this process by result; foreign ones are applied and make no incident.',
    ['outcome'],
  );
  const gauges = createGauges(meters);
  const showSystem = createSystemGauges(meters);
  const limitsApart = meters.gauge(
    'limits_apart',
    '1 while this process counts limits alone that all should count together.',
  );
  /** Counts the uploads of this process. */
  const tally: InboxTally = (outcome, count) => uploads.inc({ outcome }, count);
  return {
    /** Counts the observations of incidents that this process applied. */
    tallyIncidents: (outcome: 'applied' | 'foreign' | 'repeated', count: number) =>
      observations.inc({ outcome }, count),
    contentType: meters.contentType,
    tally,
    /** Times the requests of this server. */
    watch: (app: App) => meterRequests(app, meters),
    /** All metrics as text. Without an answer of the database, the metrics that need it are left out. */
    render({ health, pool, limits }: MeterSources): Promise<string> {
      limitsApart.set(limits.findProblem() === null ? 0 : 1);
      return meters.render(
        pool,
        () => health.read(),
        (report) => {
          show(gauges, report);
          showSystem(report?.system ?? null);
        },
      );
    },
  };
}

function createGauges({ gauge }: Meters) {
  return {
    pending: gauge('inbox_pending_uploads', 'Uploads that wait to be applied.'),
    oldest: gauge('inbox_oldest_pending_seconds', 'Age of the oldest waiting upload.'),
    failing: gauge('inbox_failing_uploads', 'Uploads that failed and are retried.'),
    lease: gauge('lease_held', '1 while some process holds the lease of this loop.', ['lease']),
    feedRun: gauge('feed_last_run_timestamp_seconds', 'Time of the last run of a feed.', ['feed']),
    feedSuccess: gauge('feed_last_success_timestamp_seconds', 'Time of the last successful run of a feed.', [
      'feed',
    ]),
    feedFailing: gauge('feed_failing', '1 when the last run of a feed failed.', ['feed']),
    maintenance: gauge(
      'maintenance_last_success_timestamp_seconds',
      'Time of the last successful run of retention.',
    ),
    maintenanceSeconds: gauge('maintenance_last_run_seconds', 'Duration of the last run of retention.'),
    incidents: gauge('incidents', 'Incidents that are not over: attacks active or stale, and info.', [
      'state',
    ]),
    sensors: gauge(
      'sensors',
      'Sensors by contact: heard, silent, or enrolled moments ago and not heard yet.',
      ['state'],
    ),
    lagMax: gauge('sensor_lag_seconds_max', 'The largest lag of a sensor with contact.'),
    lag: gauge(
      'sensor_lag_seconds',
      `Time since the newest minute of a sensor; the first ${sensorSeriesMax}.`,
      ['sensor', 'host'],
    ),
  };
}

/** Without a report the gauges are removed, so that no stale value remains. */
function show(gauges: ReturnType<typeof createGauges>, report: HealthReport | null): void {
  for (const gauge of Object.values(gauges)) gauge.reset();
  if (!report) {
    for (const gauge of [gauges.pending, gauges.oldest, gauges.failing, gauges.lagMax]) gauge.remove();
    return;
  }
  const { inbox, system, feeds, maintenance, sensors, incidents } = report;
  gauges.pending.set(inbox.pending);
  gauges.oldest.set(inbox.oldestSeconds ?? 0);
  gauges.failing.set(inbox.failing);
  for (const { name, isHeld } of system.loops) gauges.lease.set({ lease: name }, isHeld ? 1 : 0);
  for (const { feed, lastRunAtMs, lastSuccessAtMs, lastError } of feeds) {
    if (lastRunAtMs !== null) gauges.feedRun.set({ feed }, lastRunAtMs / 1000);
    if (lastSuccessAtMs !== null) gauges.feedSuccess.set({ feed }, lastSuccessAtMs / 1000);
    gauges.feedFailing.set({ feed }, lastError === null ? 0 : 1);
  }
  if (maintenance.lastSuccessAtMs !== null) gauges.maintenance.set(maintenance.lastSuccessAtMs / 1000);
  if (maintenance.lastSeconds !== null) gauges.maintenanceSeconds.set(maintenance.lastSeconds);
  const speaking = sensors.filter(({ silentSeconds }) => !isSilentFor(silentSeconds));
  const heard = speaking.filter(({ hasContact }) => hasContact);
  gauges.sensors.set({ state: 'heard' }, heard.length);
  gauges.sensors.set({ state: 'enrolled' }, speaking.length - heard.length);
  gauges.sensors.set({ state: 'silent' }, sensors.length - speaking.length);
  gauges.incidents.set({ state: 'active' }, incidents.active);
  gauges.incidents.set({ state: 'stale' }, incidents.stale);
  gauges.incidents.set({ state: 'info' }, incidents.info);
  gauges.lagMax.set(Math.max(0, ...heard.map(({ lagSeconds }) => lagSeconds ?? 0)));
  for (const { sensorId, hostName, lagSeconds } of sensors.slice(0, sensorSeriesMax))
    if (lagSeconds !== null) gauges.lag.set({ sensor: String(sensorId), host: hostName }, lagSeconds);
}
