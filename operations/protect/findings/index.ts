import type { VulnerabilitiesRequest } from '#contracts/admin-api/vulnerabilities.ts';
import { type Actor, requireStaff } from '#operations/accounts/index.ts';
import type { Addresses } from '#operations/addresses/index.ts';
import type { Sender } from '#operations/feeds/index.ts';
import {
  countFindingsOfServers,
  countServerFindings,
  type FindingFilter,
  type FindingListQuery,
  type FindingQuery,
  type FindingRow,
  type FindingScope,
  type FindingSummary,
  type FindingTotals,
  type FindingTotalsQuery,
  type ListedFinding,
  listAllFindings,
  listServerFindings,
  listUnableServices,
  type ServerFindingCount,
  summarizeServerFindings,
  totalFindings,
  type UnableRow,
} from '#operations/views/finding-store.ts';
import type { FeatureWork } from '#service-kit/jobs/index.ts';
import {
  createExpiryLoop,
  createLeasedLoop,
  ifHeld,
  type LeasedLoop,
  type LoopDeps,
} from '#service-kit/leases/index.ts';
import type { Post } from '#service-kit/mail/index.ts';
import { readNowMs } from '#service-kit/postgres/index.ts';
import { createAlertMailer } from '../alert-mails/index.ts';
import { reached, type Subject } from '../subject.ts';
import { findingMails } from './alert-customer.ts';
import type { FindingKey } from './finding.ts';
import { endIgnore, type IgnoreFindingInput, ignoreFinding } from './ignore-finding.ts';
import { receiveProjections } from './receive-projections.ts';
import { deleteExpired, deleteExpiredNotices, listOutdated, readStatus, storeCounts } from './store.ts';

interface ProtectFindingsDeps extends LoopDeps {
  addresses: Addresses;
  isDocumentationGlobal: boolean;
  post: Post;
}

export function createProtectFindings(deps: ProtectFindingsDeps) {
  const { db, clock, reporter } = deps;
  const retention = createExpiryLoop({
    ...{ name: 'operations-finding-retention', db, clock, reporter },
    async deleteExpired(tx, rowsMax) {
      return Math.max(await deleteExpired(tx, rowsMax), await deleteExpiredNotices(tx, rowsMax));
    },
  });
  return {
    /** What it does beside the calls. */
    work: {
      parts: [createAlertMailer(findingMails, deps), retention, createCountLoop(deps)],
    } satisfies FeatureWork,
    /** Stores projections; throws `protect_findings.invalid`. One acknowledgement for each, in their order. */
    receive: (sender: Sender, request: VulnerabilitiesRequest) =>
      receiveProjections({ ...deps, canMail: deps.post.canSend }, sender, request),
    /** Counts, ages, and what can't be assessed, of the addresses that the server has now. Throws `accounts.forbidden`. */
    async read(actor: Actor, subject: Subject): Promise<ServerFindings> {
      const of = await scopeOf(deps, actor, subject);
      const [summary, unable, nowMs] = await Promise.all([
        summarizeServerFindings(db(), of),
        listUnableServices(db(), of),
        readNowMs(db()),
      ]);
      return { summary, unable, nowMs };
    },
    /** How the delivery of a server's findings stands (NET-4.10). Throws `accounts.forbidden`. */
    readStatus: async (actor: Actor, subject: Subject) => readStatus(db(), reached(actor, subject)),
    /** Findings, the most severe first. Throws `accounts.forbidden`. */
    async list(actor: Actor, subject: Subject, query: FindingQuery): Promise<FindingRow[]> {
      return listServerFindings(db(), await scopeOf(deps, actor, subject), query);
    },
    /** How many findings a list has on all its pages. Throws `accounts.forbidden`. */
    async count(actor: Actor, subject: Subject, query: FindingFilter): Promise<number> {
      return countServerFindings(db(), await scopeOf(deps, actor, subject), query);
    },
    /** By server id: active findings of those of these servers that the actor reaches, where there are some. */
    async countOf(actor: Actor, serverIds: readonly number[]): Promise<Map<number, ServerFindingCount>> {
      if (actor.kind === 'project' || serverIds.length === 0) return new Map();
      const tenantIds = actor.kind === 'customer' ? actor.tenantIds : 'all';
      const counts = await countFindingsOfServers(db(), serverIds, tenantIds);
      return new Map(counts.map((each) => [each.serverId, each]));
    },
    /**
     * Ignores a finding. Throws `protect_findings.invalid` (details: `fields`), `protect_findings.not_found`,
     * `protect_findings.no_finding`, `protect_findings.views_off`, `accounts.forbidden`. Customers only.
     */
    ignore: (actor: Actor, serverId: number, input: IgnoreFindingInput) =>
      ignoreFinding(deps, actor, serverId, input),
    /** Ends the ignore of a finding; false where it was not ignored. Throws as `ignore`. Customers only. */
    endIgnore: (actor: Actor, serverId: number, key: FindingKey) => endIgnore(deps, actor, serverId, key),
    /** Findings of all customers, the most severe first. Throws `accounts.forbidden`; staff only. */
    async listAll(actor: Actor, query: FindingListQuery): Promise<ListedFinding[]> {
      requireStaff(actor);
      return listAllFindings(db(), query);
    },
    /** Counts over what `listAll` lists. Throws `accounts.forbidden`; staff only. */
    async totalAll(actor: Actor, query: FindingTotalsQuery): Promise<FindingTotals> {
      requireStaff(actor);
      return totalFindings(db(), query);
    },
  };
}

/** What the actor may read of a server: the generations that it has now, so that the next owner of an address sees nothing. */
async function scopeOf(
  { addresses }: Pick<ProtectFindingsDeps, 'addresses'>,
  actor: Actor,
  subject: Subject,
): Promise<FindingScope> {
  const { serverId, tenantId } = reached(actor, subject);
  const allocations = await addresses.listAllocationsOf({ serverId, tenantId });
  return { serverId, tenantId, allocationIds: allocations.map(({ id }) => id) };
}

const addressesMax = 500;

/**
 * Stores new counts of addresses where time has changed them. A reader counts such an address itself, so the loop only makes
 * reading faster.
 */
function createCountLoop({ db, clock, reporter }: LoopDeps): LeasedLoop {
  return createLeasedLoop({
    ...{ name: 'operations-finding-counts', intervalMs: 60_000, ttlSeconds: 120 },
    ...{ db, clock, reporter },
    async run(lease, renew, signal) {
      for (let found = addressesMax; found === addressesMax && !signal.aborted; ) {
        if (!(await renew())) return;
        const ids = await listOutdated(db(), addressesMax);
        await ifHeld(db(), lease, (tx) => storeCounts(tx, ids));
        found = ids.length;
      }
    },
  });
}

/** What a page or a call shows beside the list of findings. */
export interface ServerFindings {
  summary: FindingSummary;
  /** Services that can't be assessed. */
  unable: UnableRow[];
  nowMs: number;
}

export type ProtectFindings = ReturnType<typeof createProtectFindings>;
