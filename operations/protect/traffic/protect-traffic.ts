import type { TelemetryReceipts, TelemetryRequest } from '#contracts/admin-api/schemas.ts';
import type { Actor } from '#operations/accounts/index.ts';
import type { Sender } from '#operations/feeds/index.ts';
import type { FeatureWork } from '#service-kit/jobs/index.ts';
import type { ExplorationAsk } from './exploration.ts';
import type { Exploration } from './explore-traffic.ts';
import type { Traffic, TrafficRange, TrafficSubject } from './read-traffic.ts';
import type { ApplicationUse, UsageQuery, UsageSubject } from './read-usage.ts';
import type { ConflictRow, SetAsideRow, Source, SourceRow } from './source-store.ts';
import type { LatestRow, MinuteRow, MinuteStatus, StepRow } from './store.ts';
import type { UsageRange, UsageStep, UsageTotal } from './usage-store.ts';

export interface ProtectTraffic {
  /** What it does beside the calls. */
  readonly work: FeatureWork;
  /** Stores what belongs to a generation; throws `protect_traffic.invalid`. One receipt a target, in their order. */
  receive(scope: Sender, request: TelemetryRequest): Promise<TelemetryReceipts>;
  read(actor: Actor, subject: TrafficSubject, range: TrafficRange): Promise<Traffic>;
  readSteps(actor: Actor, subject: TrafficSubject, range: TrafficRange): Promise<StepRow[]>;
  readAddresses(actor: Actor, subject: TrafficSubject): Promise<string[]>;
  /** How the delivery of a server's minutes stands (NET-4.10). */
  readStatus(actor: Actor, subject: TrafficSubject): Promise<MinuteStatus>;
  /** By server id: the newest minute of each server that was observed at all. */
  readLatest(actor: Actor, serverIds: readonly number[]): Promise<Map<number, LatestRow>>;
  /** Totals of a range, by the id of the server or the tenant; those that the actor does not reach count nothing. */
  readTotals(
    actor: Actor,
    subject: UsageSubject,
    range: UsageRange,
    of?: 'server' | 'tenant',
  ): Promise<Map<number, UsageTotal>>;
  /** Rates in steps, by the id of the server or the tenant. */
  readServerSteps(
    actor: Actor,
    subject: UsageSubject,
    query: UsageQuery,
    of?: 'server' | 'tenant',
  ): Promise<Map<number, UsageStep[]>>;
  /** Applications in the part of a range that lies in the last 24 hours (NET-2.4.4). */
  readApplicationUse(actor: Actor, subject: UsageSubject, range: UsageRange): Promise<ApplicationUse>;
  /** What delivers for an admin project: its sources, those that are refused, minutes that were set aside. Staff only. */
  readSources(actor: Actor, projectId: number): Promise<ProjectSources>;
  /** Gives a refused source what this owner holds; false when nothing waits for it any more. Operators only. */
  handOver(actor: Actor, to: Source, owner: { projectId: number | null; siteId: number }): Promise<boolean>;
  /** Throws `protect_traffic.range_too_long`. */
  readMinutes(
    actor: Actor,
    subject: TrafficSubject,
    range: { fromMs: number; toMs: number },
  ): Promise<MinuteRow[]>;
  /** Opens a look at the traffic of everything that the actor reaches. */
  explore(actor: Actor, ask: ExplorationAsk): Promise<Exploration>;
}

export interface ProjectSources {
  sources: SourceRow[];
  conflicts: ConflictRow[];
  setAside: SetAsideRow[];
}
