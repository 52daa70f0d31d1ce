import type { PortScansRequest, ScanRequestUpdates } from '#contracts/admin-api/port-scans.ts';
import { type Actor, requireStaff } from '#operations/accounts/index.ts';
import type { Addresses } from '#operations/addresses/index.ts';
import type { Sender } from '#operations/feeds/index.ts';
import {
  countPendingScans,
  type ListedScan,
  listAllScans,
  type PendingScans,
  type ScanListQuery,
} from '#operations/views/scan-store.ts';
import type { FeatureWork } from '#service-kit/jobs/index.ts';
import { createExpiryLoop, type LoopDeps } from '#service-kit/leases/index.ts';
import type { Post } from '#service-kit/mail/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { createAlertMailer } from '../alert-mails/index.ts';
import { reached, type Subject } from '../subject.ts';
import { portMails } from './alert-customer.ts';
import { listForMonitor, updateRequests } from './monitor-requests.ts';
import { deleteExpiredScans, readStatus } from './port-store.ts';
import { readPorts, readResult } from './ports-of-server.ts';
import { receiveScans } from './receive-scans.ts';
import { createRequestKeeper, requestScan } from './request-scan.ts';
import {
  cancelQueued,
  deleteExpiredRequests,
  listFetchedClusters,
  type PageCursor,
} from './request-store.ts';
import { overdueMs } from './scan-request.ts';

export { hasForeignScan, isDeliveredByOther } from './port-store.ts';

export function createProtectScans(
  deps: LoopDeps & { addresses: Addresses; isDocumentationGlobal: boolean; post: Post },
) {
  const { db, clock, reporter, addresses } = deps;
  const retention = createExpiryLoop({
    ...{ name: 'operations-scan-retention', db, clock, reporter },
    async deleteExpired(tx, rowsMax) {
      return Math.max(await deleteExpiredRequests(tx, rowsMax), await deleteExpiredScans(tx, rowsMax));
    },
  });
  return {
    /** What it does beside the calls. */
    work: {
      parts: [createRequestKeeper(deps), createAlertMailer(portMails, deps), retention],
    } satisfies FeatureWork,
    /**
     * Requests a full scan of all public addresses of a server; answers with the pending requests where there are some. Throws
     * `port_scans.not_found`, `port_scans.views_off`, `port_scans.not_running`, `port_scans.no_address`,
     * `port_scans.too_many_addresses`, `port_scans.cooldown`, `port_scans.limit_exceeded`, `accounts.forbidden`.
     */
    request: (actor: Actor, serverId: number) => requestScan(deps, actor, serverId),
    /** Cancels the queued manual requests of a server, in the transaction that switches its views off (NET-1.6). */
    async cancelQueued(tx: Queryable, serverId: number) {
      await cancelQueued(tx, 'views_off', { serverId, kind: 'manual' });
    },
    /** What is known of a server's ports, and its scans. Throws `accounts.forbidden`. */
    read: async (actor: Actor, subject: Subject) => readPorts(db(), addresses, reached(actor, subject)),
    /** How the delivery of a server's scans stands (NET-4.10). Throws `accounts.forbidden`. */
    readStatus: async (actor: Actor, subject: Subject) => readStatus(db(), reached(actor, subject)),
    /** What one requested scan found; null where the server has none of this id. Throws `accounts.forbidden`. */
    readResult: async (actor: Actor, subject: Subject, requestId: string) =>
      readResult(db(), addresses, reached(actor, subject), requestId),
    /** Scans of all customers, newest first: requests, and routine scans that failed. Throws `accounts.forbidden`; staff only. */
    async listAll(actor: Actor, query: ScanListQuery): Promise<ListedScan[]> {
      requireStaff(actor);
      return listAllScans(db(), query, overdueMs / 1000);
    },
    /** How many scans run and wait, of all customers. Throws `accounts.forbidden`; staff only. */
    async countPending(actor: Actor): Promise<PendingScans> {
      requireStaff(actor);
      return countPendingScans(db(), await listFetchedClusters(db()), overdueMs / 1000);
    },
    /** A page of pending requests for a monitor. */
    listRequests: (sender: Sender, query: { after: PageCursor | null; limit: number }) =>
      listForMonitor(deps, sender, query),
    /** What became of requests; throws `port_scans.invalid`. One outcome for each update, in their order. */
    updateRequests: (sender: Sender, request: ScanRequestUpdates) => updateRequests(db(), sender, request),
    /** Stores results; throws `port_scans.invalid`. One receipt for each, in their order. */
    receive: (sender: Sender, request: PortScansRequest) =>
      receiveScans({ ...deps, canMail: deps.post.canSend }, sender, request),
  };
}

export type ProtectScans = ReturnType<typeof createProtectScans>;
