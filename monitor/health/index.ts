/**
 * The state of the monitor from stored data: inbox, workers, feeds, retention, sensors.
 *
 * Reading runs and writes nothing (NET-4.j); it uses read-only connections. `problems` lists in sentences what needs
 * attention.
 */
import { describeError } from '#common/errors/index.ts';
import type { Evidence } from '#monitor/evidence/index.ts';
import type { FactEngine } from '#monitor/facts/index.ts';
import type { Feeds, HeldBack } from '#monitor/feeds/index.ts';
import type { Inbox } from '#monitor/inbox/index.ts';
import type { Incidents } from '#monitor/incidents/index.ts';
import type { Inventory } from '#monitor/inventory/index.ts';
import type { Live } from '#monitor/live/index.ts';
import type { Retention } from '#monitor/retention/index.ts';
import { isSilentFor, type Sensors } from '#monitor/sensors/index.ts';
import type { Vulnerabilities } from '#monitor/vulnerabilities/index.ts';
import type { Limits } from '#service-kit/limits/index.ts';
import { judgeSystem, measuredOfSystem, type System, systemKindNames } from '#service-kit/system/index.ts';
import type { FeedRecord, HealthReport, Readiness } from './report.ts';

export { createMonitorMeters, type MonitorMeters } from './meters.ts';
export type { HealthReport } from './report.ts';

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
export const backlogSeconds = 60;

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
  const checks = {
    database: 'ok',
    migrations: 'unknown',
    inbox: 'unknown',
    live: 'unknown',
    limits: 'ok',
  };
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
