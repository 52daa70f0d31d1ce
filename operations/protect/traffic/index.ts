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
import type { TelemetryRequest } from '#contracts/admin-api/schemas.ts';
import { kept } from '#contracts/retention.ts';
import { type Actor, requireOperator, requireStaff } from '#operations/accounts/index.ts';
import type { Sender } from '#operations/feeds/index.ts';
import { listConflicts, listSetAside, listSources } from '#operations/views/protect-source-store.ts';
import { record } from '#service-kit/audit/index.ts';
import { createExpiryLoop } from '#service-kit/leases/index.ts';
import { inTransaction, type Queryable, withCustomPlans } from '#service-kit/postgres/index.ts';
import { type AddressSubject, reachedAddress } from '../subject.ts';
import type { ExplorationAsk } from './exploration.ts';
import { openExploration } from './explore-traffic.ts';
import * as reads from './read-traffic.ts';
import { type ReceiveTelemetryDeps, receiveTelemetry } from './receive-telemetry.ts';
import * as sources from './source-store.ts';
import * as store from './store.ts';
import { deleteExpiredSums } from './sum-store.ts';
import type { UsageGroup, UsageRange } from './usage-store.ts';

export { readStandings, type Source, type Standing } from './source-store.ts';

/** Minutes set aside that a page shows. */
const setAsideShown = 20;

export type ProtectTraffic = ReturnType<typeof createProtectTraffic>;
export type ProjectSources = Awaited<ReturnType<ProtectTraffic['readSources']>>;

export function createProtectTraffic(
  deps: ReceiveTelemetryDeps & { db: () => Queryable; clock: Clock; reporter: Reporter },
) {
  const { db } = deps;
  /** For ranges of minutes, hours and days. */
  const ranges = () => withCustomPlans(db());
  const retention = createExpiryLoop({
    ...deps,
    name: 'operations-traffic-retention',
    deleteExpired: async (trx, rowsMax) =>
      Math.max(
        await store.deleteExpired(trx, kept.traffic, rowsMax),
        await deleteExpiredSums(trx, kept.traffic, rowsMax),
      ),
  });
  return {
    /** What it does beside the calls. */
    work: { parts: [retention] },
    receive: (scope: Sender, request: TelemetryRequest) => receiveTelemetry(deps, scope, request),
    /** Means of the observed minutes, step by step. */
    readSteps: async (actor: Actor, subject: AddressSubject, range: reads.TrafficRange) =>
      store.listSteps(ranges(), reachedAddress(actor, subject), range),
    readMinutes: (actor: Actor, subject: AddressSubject, range: UsageRange) =>
      reads.readMinutes(ranges(), actor, subject, range),
    /** Addresses of the server of which minutes were received: those that a reader may ask for, in the order of their assignment. */
    readAddresses: async (actor: Actor, subject: AddressSubject) =>
      store.listAddresses(db(), reachedAddress(actor, subject)),
    /** How the delivery of a server's minutes stands (NET-4.10). */
    readStatus: async (actor: Actor, subject: AddressSubject) =>
      store.readStatus(db(), reachedAddress(actor, subject)),
    readLatest: (actor: Actor, serverIds: readonly number[]) => reads.readLatest(db(), actor, serverIds),
    readTotals: (actor: Actor, subject: reads.UsageSubject, range: UsageRange, of?: UsageGroup) =>
      reads.readTotals(ranges(), actor, subject, range, of),
    readServerSteps: (
      actor: Actor,
      subject: reads.UsageSubject,
      query: reads.TrafficRange,
      of?: UsageGroup,
    ) => reads.readServerSteps(ranges(), actor, subject, query, of),
    readApplicationUse: (actor: Actor, subject: reads.UsageSubject, range: UsageRange) =>
      reads.readApplicationUse(ranges(), actor, subject, range),
    explore: (actor: Actor, ask: ExplorationAsk) => openExploration(ranges(), actor, ask),

    /** What delivers for an admin project: its sources, those that are refused, minutes that were set aside. Staff only. */
    async readSources(actor: Actor, projectId: number) {
      requireStaff(actor);
      const [owned, conflicts, setAside] = await Promise.all([
        listSources(db(), projectId),
        listConflicts(db(), projectId),
        listSetAside(db(), projectId, setAsideShown),
      ]);
      return { sources: owned, conflicts, setAside };
    },

    /** Gives a refused source what this owner holds; false when nothing waits for it any more. Operators only. */
    async handOver(
      actor: Actor,
      to: sources.Source,
      owner: { projectId: number | null; siteId: number },
    ): Promise<boolean> {
      requireOperator(actor);
      return inTransaction(db(), async (trx) => {
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
  };
}
