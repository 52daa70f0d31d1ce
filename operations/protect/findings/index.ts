/**
 * Potential vulnerabilities of servers, as monitors deliver them, and what customers ignore of them (NET-2.6).
 *
 * A finding is never a confirmed one. What is shown is the newest check of each address that the server has now, with the
 * evidence that was assessed and the ages of check and database. Evidence of more than seven days expires. Reading asks for
 * server and tenant in the query; whether the customer sees protection views at all is for the surface to ask (NET-1.6).
 */
import type { Clock } from '#common/clock/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { type Actor, forbidden, reachesTenant, requireStaff } from '#operations/accounts/index.ts';
import type { Addresses } from '#operations/addresses/index.ts';
import {
  countFindingsOfServers,
  countServerFindings,
  type FindingScope,
  listAllFindings,
  listServerFindings,
  listUnableServices,
  summarizeServerFindings,
  totalFindings,
} from '#operations/views/index.ts';
import { createExpiryLoop } from '#service-kit/leases/index.ts';
import type { Post } from '#service-kit/mail/index.ts';
import { type Queryable, readNowMs } from '#service-kit/postgres/index.ts';
import { createAlertMailer } from '../alert-mails/index.ts';
import { createCountLoop } from './count-findings.ts';
import type { FindingSubject } from './finding.ts';
import { findingMails } from './finding-mail.ts';
import { endIgnore, ignoreFinding } from './ignore-finding.ts';
import type { ProtectFindings } from './protect-findings.ts';
import { receiveProjections } from './receive-projections.ts';
import { deleteExpired, deleteExpiredNotices, readStatus } from './store.ts';

export type {
  FindingFilter,
  FindingListQuery,
  FindingPlace,
  FindingQuery,
  FindingRow,
  FindingState,
  FindingSummary,
  FindingTotals,
  ListedFinding,
  ServerFindingCount,
  UnableRow,
} from '#operations/views/index.ts';
export type { FindingKey, FindingSubject } from './finding.ts';
export { createFindingsReceiver } from './findings-receiver.ts';
export type { IgnoreFindingInput, IgnoreFindingResult } from './ignore-finding.ts';
export type { ProtectFindings, ServerFindings } from './protect-findings.ts';
export type { FindingStatus } from './store.ts';

export interface ProtectFindingsDeps {
  db: () => Queryable;
  clock: Clock;
  reporter: Reporter;
  addresses: Addresses;
  isDocumentationGlobal: boolean;
  post: Post;
}

export function createProtectFindings(deps: ProtectFindingsDeps): ProtectFindings {
  const { db, clock, reporter } = deps;
  const retention = createExpiryLoop({
    ...{ name: 'operations-finding-retention', db, clock, reporter },
    async deleteExpired(tx, rowsMax) {
      return Math.max(await deleteExpired(tx, rowsMax), await deleteExpiredNotices(tx, rowsMax));
    },
  });
  return {
    work: { parts: [createAlertMailer(findingMails, deps), retention, createCountLoop(deps)] },
    receive: (sender, request) =>
      receiveProjections({ ...deps, canMail: deps.post.canSend }, sender, request),
    async read(actor, subject) {
      const of = await scopeOf(deps, actor, subject);
      const [summary, unable, nowMs] = await Promise.all([
        summarizeServerFindings(db(), of),
        listUnableServices(db(), of),
        readNowMs(db()),
      ]);
      return { summary, unable, nowMs };
    },
    async readStatus(actor, subject) {
      if (!reachesTenant(actor, subject.tenantId)) throw forbidden('This server belongs to another account.');
      return readStatus(db(), subject);
    },
    async list(actor, subject, query) {
      return listServerFindings(db(), await scopeOf(deps, actor, subject), query);
    },
    async count(actor, subject, query) {
      return countServerFindings(db(), await scopeOf(deps, actor, subject), query);
    },
    async countOf(actor, serverIds) {
      if (actor.kind === 'project' || serverIds.length === 0) return new Map();
      const tenantIds = actor.kind === 'customer' ? actor.tenantIds : 'all';
      const counts = await countFindingsOfServers(db(), serverIds, tenantIds);
      return new Map(counts.map((each) => [each.serverId, each]));
    },
    ignore: (actor, serverId, input) => ignoreFinding(deps, actor, serverId, input),
    endIgnore: (actor, serverId, key) => endIgnore(deps, actor, serverId, key),
    async listAll(actor, query) {
      requireStaff(actor);
      return listAllFindings(db(), query);
    },
    async totalAll(actor, query) {
      requireStaff(actor);
      return totalFindings(db(), query);
    },
  };
}

/** What the actor may read of a server: the generations that it has now, so that the next owner of an address sees nothing. */
async function scopeOf(
  { addresses }: Pick<ProtectFindingsDeps, 'addresses'>,
  actor: Actor,
  { serverId, tenantId }: FindingSubject,
): Promise<FindingScope> {
  if (!reachesTenant(actor, tenantId)) throw forbidden('This server belongs to another account.');
  const allocations = await addresses.listAllocationsOf({ serverId, tenantId });
  return { serverId, tenantId, allocationIds: allocations.map(({ id }) => id) };
}
