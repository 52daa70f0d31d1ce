/**
 * The state of the monitor from stored data: inbox, workers, feeds, retention, sensors.
 *
 * Reading runs and writes nothing (NET-4.j); it uses read-only connections. `problems` lists in sentences what needs
 * attention.
 */
import { describeError } from '#common/errors/index.ts';
import type { Evidence } from '#monitor/evidence/index.ts';
import type { FactEngine, FactEngineState, FactMoveState } from '#monitor/facts/index.ts';
import type { Feeds, HeldBack } from '#monitor/feeds/index.ts';
import type { Inbox, InboxState, InboxTally } from '#monitor/inbox/index.ts';
import type { Incidents } from '#monitor/incidents/index.ts';
import type { Inventory } from '#monitor/inventory/index.ts';
import type { Live } from '#monitor/live/index.ts';
import type { MaintenanceState, Retention } from '#monitor/retention/index.ts';
import type { SensorLag } from '#monitor/sensors/index.ts';
import { isSilentFor, type Sensors } from '#monitor/sensors/index.ts';
import type { Vulnerabilities } from '#monitor/vulnerabilities/index.ts';
import type { App } from '#service-kit/http/index.ts';
import type { Limits } from '#service-kit/limits/index.ts';
import { createMeters, type Meters, meterRequests } from '#service-kit/metrics/index.ts';
import type { SystemState } from '#service-kit/system/index.ts';
import {
  createSystemGauges,
  judgeSystem,
  measuredOfSystem,
  type System,
  systemKindNames,
} from '#service-kit/system/index.ts';

interface HealthDeps {
  system: Pick<System, 'read' | 'checkWrites'>;
  inbox: Pick<Inbox, 'state'>;
  feeds: Pick<Feeds, 'all' | 'listHeldBack'>;
  inventory: Pick<Inventory, 'state'>;
  retention: Pick<Retention, 'state'>;
  sensors: Pick<Sensors, 'listLags'>;
  live: Pick<Live, 'findProblem'>;
  limits: Pick<Limits, 'findProblem'>;
  incidents: Pick<Incidents, 'countOpen'>;
  evidence: Pick<Evidence, 'findProblem'>;
  factEngine: Pick<FactEngine, 'state' | 'move'>;
  vulnerabilities: Pick<Vulnerabilities, 'findProblem'>;
  /** Names of migrations that were not applied. */
  missingMigrations: () => Promise<string[]>;
}

/** Maximum number of sensors in a report. */
const sensorsMax = 5_000;
/** Uploads normally wait less than a second. */
const backlogSeconds = 60;

export type Health = ReturnType<typeof createHealth>;

export function createHealth(deps: HealthDeps) {
  return {
    async read(): Promise<HealthReport> {
      const [
        inbox,
        system,
        writeProblem,
        inventory,
        delivered,
        maintenance,
        sensors,
        liveProblem,
        open,
        evidenceProblem,
        copyProblem,
        facts,
        factMove,
        heldBack,
      ] = await Promise.all([
        deps.inbox.state(),
        deps.system.read(),
        deps.system.checkWrites(),
        deps.inventory.state(),
        readFeeds(deps.feeds),
        deps.retention.state(),
        deps.sensors.listLags(sensorsMax),
        deps.live.findProblem(),
        deps.incidents.countOpen(),
        deps.evidence.findProblem(),
        deps.vulnerabilities.findProblem(),
        deps.factEngine.state(),
        deps.factEngine.move(),
        deps.feeds.listHeldBack(),
      ]);
      const feeds: FeedRecord[] = [
        { feed: 'inventory', title: 'Inventory', ...inventory, newestMinute: null },
        ...delivered,
      ];
      const sum = (name: 'attacks' | 'stale' | 'info') => open.reduce((total, site) => total + site[name], 0);
      const incidents = { active: sum('attacks'), stale: sum('stale'), info: sum('info') };
      const report = {
        asOfMs: Date.now(),
        inbox,
        system: { ...system, writeProblem },
        feeds,
        maintenance,
        sensors,
        incidents,
        facts,
        factMove,
      };
      const limitsProblem = deps.limits.findProblem();
      const ofStores = [
        liveProblem,
        limitsProblem,
        evidenceProblem,
        copyProblem,
        facts?.problem ?? null,
        factMove.problem,
      ].filter((problem) => problem !== null);
      return {
        ...report,
        problems: [...findProblems(report), ...describeHeldBack(heldBack, report), ...ofStores],
      };
    },
    /** Reports whether requests can be served, and faults; never throws. */
    check: () => checkReadiness(deps),
  };
}

async function checkReadiness(deps: HealthDeps): Promise<Readiness> {
  const checks = { database: 'ok', migrations: 'unknown', inbox: 'unknown', live: 'unknown', limits: 'ok' };
  try {
    // Not required for minutes, so it does not make the process unready.
    checks.limits = deps.limits.findProblem() ?? 'ok';
    checks.live = (await deps.live.findProblem()) ?? 'ok';
    checks.database = (await deps.system.checkWrites()) ?? 'ok';
    const missing = await deps.missingMigrations();
    checks.migrations =
      missing.length === 0 ? 'ok' : `${missing.length} not applied, the first is ${missing[0]}`;
    const { pending, oldestSeconds } = await deps.inbox.state();
    checks.inbox =
      (oldestSeconds ?? 0) > backlogSeconds
        ? `${pending} uploads wait, the oldest for ${Math.round(oldestSeconds!)} s`
        : 'ok';
  } catch (error) {
    checks.database = `does not answer: ${describeError(error)}`;
  }
  // A backlog does not make the process unready: it still receives uploads, and without it the backlog would grow.
  return { isReady: checks.database === 'ok' && checks.migrations === 'ok', checks };
}

function readFeeds({ all }: Pick<Feeds, 'all'>): Promise<FeedRecord[]> {
  return Promise.all(
    all.map(async ({ feed, state }) => {
      const held = await state();
      return {
        feed: feed.name,
        title: feed.title,
        lastRunAtMs: held?.lastRunAtMs ?? null,
        lastSuccessAtMs: held?.lastSuccessAtMs ?? null,
        lastError: held?.lastError ?? null,
        lastCounts: held?.lastCounts ?? {},
        newestMinute: held?.latestAcknowledged ?? null,
      };
    }),
  );
}

const minute = 60;
/** Uploads normally wait less than a second. */
const oldestSecondsMax = minute;
/** Retention runs every hour. */
const maintenanceMsMax = 2 * 3_600_000;

/** Problems that need attention, one sentence each. */
function findProblems(report: Omit<HealthReport, 'problems'>): string[] {
  const { inbox, feeds, maintenance, sensors, system, asOfMs } = report;
  const problems: string[] = [];
  if (system.writeProblem !== null) problems.push(`The database ${system.writeProblem}.`);
  // What feeds and retention say of themselves.
  const said = new Set<unknown>([maintenance.lastError, ...feeds.map(({ lastError }) => lastError)]);
  for (const { kind, name, verdict, details } of judgeSystem(system))
    if (verdict === 'bad' && !(typeof details.error === 'string' && said.has(details.error)))
      problems.push(`${systemKindNames[kind]}: ${name}: ${measuredOfSystem(kind, details)}.`);
  const uploads = (count: number) => (count === 1 ? '1 upload' : `${count} uploads`);
  if ((inbox.oldestSeconds ?? 0) > oldestSecondsMax)
    problems.push(
      `Waiting to be applied: ${uploads(inbox.pending)}, the oldest for ${Math.round(inbox.oldestSeconds!)} seconds.`,
    );
  if (inbox.failing > 0) problems.push(`Failed and retried: ${uploads(inbox.failing)}.`);
  if (inbox.rejectedLastHour > 0)
    problems.push(`Given up in the last hour: ${uploads(inbox.rejectedLastHour)}; the events say why.`);
  for (const { title, lastError } of feeds) if (lastError !== null) problems.push(`${title}: ${lastError}`);
  if (maintenance.lastError !== null) problems.push(`Retention failed: ${maintenance.lastError}`);
  else if (maintenance.lastSuccessAtMs !== null && asOfMs - maintenance.lastSuccessAtMs > maintenanceMsMax)
    problems.push('Retention has not run for more than two hours.');
  const silent = sensors.filter(({ silentSeconds }) => isSilentFor(silentSeconds));
  if (silent.length > 0)
    problems.push(
      silent.length === 1
        ? `The sensor on ${silent[0]!.hostName} is silent.`
        : `${silent.length} of ${sensors.length} sensors are silent.`,
    );
  return problems;
}

/** Feeds go on beside what they can't deliver, so they have no error of their own. Visits of records that were long ago stay out. */
function describeHeldBack(
  heldBack: readonly HeldBack[],
  { feeds, asOfMs }: Pick<HealthReport, 'feeds' | 'asOfMs'>,
): string[] {
  const recent = heldBack.filter(({ visitedAtMs }) => asOfMs - visitedAtMs < 15 * minute * 1000);
  return feeds.flatMap(({ feed, title }) => {
    const [first, ...others] = recent.filter((one) => one.feed === feed);
    if (!first) return [];
    const more = others.length > 0 ? ` and ${others.length} more` : '';
    return [`${title}: ${first.item}${more} not delivered in full; the page Operations says why.`];
  });
}

// Metrics of the monitor. The number of series is bounded: sensors by name up to a limit, as totals above it.

/** Sensors with their own series, the first by id. */
const sensorSeriesMax = 200;

export type MonitorMeters = ReturnType<typeof createMonitorMeters>;

interface MeterSources {
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

// The report of the monitor's own state.

/** The record of an import or a feed (NET-2.9). */
interface FeedRecord {
  feed: string;
  /** Name on pages and in problems. */
  title: string;
  lastRunAtMs: number | null;
  lastSuccessAtMs: number | null;
  /** A fixed description without secrets. */
  lastError: string | null;
  lastCounts: Readonly<Record<string, number>>;
  /** Start of the newest observation that operations acknowledged, seconds since 1970. */
  newestMinute: number | null;
}

export interface HealthReport {
  asOfMs: number;
  problems: string[];
  inbox: InboxState;
  /** Loops, disks, and why the database takes no writes. */
  system: SystemState & { writeProblem: string | null };
  feeds: FeedRecord[];
  maintenance: MaintenanceState;
  sensors: SensorLag[];
  /** The server of the traffic facts; null: they are in the database. */
  facts: FactEngineState | null;
  /** What is moving between engines. */
  factMove: FactMoveState;
  /** Incidents that are not over. */
  incidents: { active: number; stale: number; info: number };
}

interface Readiness {
  isReady: boolean;
  checks: { database: string; migrations: string; inbox: string; live: string; limits: string };
}
