/**
 * How the monitor is, from what it has stored: the inbox, its workers, the feeds, retention, the sensors.
 *
 * Reading never runs anything and writes nothing (NET-4.j); it goes over connections that can only read. `problems` says
 * in sentences what somebody should look at; what is normal is not in it.
 */
import { describeError } from '#common/errors/index.ts';
import type { Feeds } from '#monitor/feeds/index.ts';
import type { Inbox, InboxState } from '#monitor/inbox/index.ts';
import type { Inventory } from '#monitor/inventory/index.ts';
import type { Live } from '#monitor/live/index.ts';
import type { MaintenanceState, Retention } from '#monitor/retention/index.ts';
import type { SensorLag, Sensors } from '#monitor/sensors/index.ts';
import { type LeaseState, listLeases } from '#service-kit/leases/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { findProblems } from './problems.ts';

export { createMeters, type Meters } from './meters.ts';

/** The record of an import or a feed (NET-2.9). */
export interface FeedRecord {
  feed: string;
  /** On pages and in problems. */
  title: string;
  lastRunAtMs: number | null;
  lastSuccessAtMs: number | null;
  /** A fixed, safe description. */
  lastError: string | null;
  lastCounts: Readonly<Record<string, number>>;
  /** Start of the newest observation that operations acknowledged, seconds since 1970. */
  newestMinute: number | null;
}

export interface HealthReport {
  asOfMs: number;
  problems: string[];
  inbox: InboxState;
  leases: LeaseState[];
  feeds: FeedRecord[];
  maintenance: MaintenanceState;
  sensors: SensorLag[];
}

export interface Readiness {
  isReady: boolean;
  checks: { database: string; migrations: string; inbox: string; live: string };
}

export interface HealthDeps {
  reader: () => Queryable;
  inbox: Pick<Inbox, 'state'>;
  feeds: Pick<Feeds, 'all'>;
  inventory: Pick<Inventory, 'state'>;
  retention: Pick<Retention, 'state'>;
  sensors: Pick<Sensors, 'listLags'>;
  live: Pick<Live, 'findProblem'>;
  /** Names of migrations that the database has not had. */
  missingMigrations: () => Promise<string[]>;
}

export interface Health {
  read(): Promise<HealthReport>;
  /** Whether requests can be served, and what is wrong where not; never throws. */
  check(): Promise<Readiness>;
}

/** Sensors in a report. */
const sensorsMax = 5_000;
/** Uploads usually wait for less than a second. */
export const backlogSeconds = 60;

export function createHealth(deps: HealthDeps): Health {
  return {
    async read() {
      const [inbox, leases, inventory, delivered, maintenance, sensors, liveProblem] = await Promise.all([
        deps.inbox.state(),
        listLeases(deps.reader()),
        deps.inventory.state(),
        readFeeds(deps.feeds),
        deps.retention.state(),
        deps.sensors.listLags(sensorsMax),
        deps.live.findProblem(),
      ]);
      const feeds: FeedRecord[] = [
        { feed: 'inventory', title: 'Inventory', ...inventory, newestMinute: null },
        ...delivered,
      ];
      const report = { asOfMs: Date.now(), inbox, leases, feeds, maintenance, sensors };
      return { ...report, problems: [...findProblems(report), ...(liveProblem ? [liveProblem] : [])] };
    },
    async check() {
      const checks = { database: 'ok', migrations: 'unknown', inbox: 'unknown', live: 'unknown' };
      try {
        // Minutes do not need it, so it takes no process away.
        checks.live = (await deps.live.findProblem()) ?? 'ok';
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
      // Uploads are received whatever the backlog: taking this process away would only lengthen it.
      return { isReady: checks.database === 'ok' && checks.migrations === 'ok', checks };
    },
  };
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
