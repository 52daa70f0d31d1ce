/** The report of the monitor's own state. */
import type { FactEngineState, FactMoveState } from '#monitor/facts/index.ts';
import type { InboxState } from '#monitor/inbox/index.ts';
import type { MaintenanceState } from '#monitor/retention/index.ts';
import type { SensorLag } from '#monitor/sensors/index.ts';
import type { SystemState } from '#service-kit/system/index.ts';

/** The record of an import or a feed (NET-2.9). */
export interface FeedRecord {
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

export interface Readiness {
  isReady: boolean;
  checks: { database: string; migrations: string; inbox: string; live: string; limits: string };
}
