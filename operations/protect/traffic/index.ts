/**
 * Protect traffic: what was observed of customers' addresses, minute by minute, and who may see it.
 *
 * A minute belongs to an allocation generation, never to an address, and is stored exactly once however often it is
 * delivered. Bytes come back as whole numbers, exactly as they were counted; what was not observed stays a gap. A
 * generation has one source, a site of an admin project; another one takes over when it has been silent for 15 minutes, or
 * when an operator says so.
 */
import type { Clock } from '#common/clock/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { requireOperator, requireStaff } from '#operations/accounts/index.ts';
import { record } from '#service-kit/audit/index.ts';
import { type Queryable, withCustomPlans } from '#service-kit/postgres/index.ts';
import { openExploration } from './explore-traffic.ts';
import { createTrafficRetention } from './jobs.ts';
import type { ProtectTraffic } from './protect-traffic.ts';
import {
  readAddresses,
  readLatest,
  readMinutes,
  readStatus,
  readSteps,
  readTraffic,
} from './read-traffic.ts';
import { readApplicationUse, readServerSteps, readTotals } from './read-usage.ts';
import { type ReceiveTelemetryDeps, receiveTelemetry } from './receive-telemetry.ts';
import * as sources from './source-store.ts';

export {
  customerBox,
  type ExplorationAsk,
  isOfApplications,
  namesApplications,
  type RankedDimension,
  staffBox,
} from './exploration.ts';
export type { Exploration } from './explore-traffic.ts';
export type { TrafficServer } from './explorer-store.ts';
export { isStale } from './minute.ts';
export { createMinutesReceiver } from './minutes-receiver.ts';
export type { ProjectSources, ProtectTraffic } from './protect-traffic.ts';
export type { Traffic, TrafficRange, TrafficSubject } from './read-traffic.ts';
export { hasExactMinutes } from './read-traffic.ts';
export { type ApplicationUse, bytesOf, type UsageQuery, type UsageSubject } from './read-usage.ts';
export type { ConflictRow, SetAsideRow, Source, SourceRow, Standing } from './source-store.ts';
export { readStandings } from './source-store.ts';
export type { LatestRow, MinuteRow, MinuteStatus, SeriesRow, StepRow } from './store.ts';
export { addressFilters, serverNamer } from './traffic-names.ts';
export type { IdentityUse, UsageStep, UsageTotal } from './usage-store.ts';

/** Minutes set aside that a page shows. */
const setAsideShown = 20;

export interface ProtectTrafficDeps extends ReceiveTelemetryDeps {
  db: () => Queryable;
  clock: Clock;
  reporter: Reporter;
}

export function createProtectTraffic(deps: ProtectTrafficDeps): ProtectTraffic {
  /** For ranges of minutes, hours and days. */
  const ranges = () => withCustomPlans(deps.db());
  return {
    work: { parts: [createTrafficRetention(deps)] },
    receive: (scope, request) => receiveTelemetry(deps, scope, request),
    read: (actor, subject, range) => readTraffic(ranges(), actor, subject, range),
    readSteps: (actor, subject, range) => readSteps(ranges(), actor, subject, range),
    readAddresses: (actor, subject) => readAddresses(deps.db(), actor, subject),
    readStatus: (actor, subject) => readStatus(deps.db(), actor, subject),
    readLatest: (actor, serverIds) => readLatest(deps.db(), actor, serverIds),
    async readSources(actor, projectId) {
      requireStaff(actor);
      const [owned, conflicts, setAside] = await Promise.all([
        sources.listSources(deps.db(), projectId),
        sources.listConflicts(deps.db(), projectId),
        sources.listSetAside(deps.db(), projectId, setAsideShown),
      ]);
      return { sources: owned, conflicts, setAside };
    },
    async handOver(actor, to, owner) {
      requireOperator(actor);
      return deps
        .db()
        .transaction()
        .execute(async (trx) => {
          const generations = await sources.handOver(trx, to, owner);
          if (generations === 0) return false;
          await record(trx, actor, {
            operation: 'project.hand_over_source',
            subject: { kind: 'project', id: to.projectId },
            before: { projectId: owner.projectId, siteId: owner.siteId },
            after: { projectId: to.projectId, siteId: to.siteId, generations },
          });
          return true;
        });
    },
    readTotals: (actor, subject, range, of) => readTotals(ranges(), actor, subject, range, of),
    readServerSteps: (actor, subject, query, of) => readServerSteps(ranges(), actor, subject, query, of),
    readApplicationUse: (actor, subject, range) => readApplicationUse(ranges(), actor, subject, range),
    readMinutes: (actor, subject, range) => readMinutes(ranges(), actor, subject, range),
    explore: (actor, ask) => openExploration(ranges(), actor, ask),
  };
}
