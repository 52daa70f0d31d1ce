/**
 * Port scans of servers: who asked for one, what became of it, and what is known of the ports.
 *
 * A request is one address under an id that stays for good; `scan-request.ts` has all that moves it. Monitors fetch pending
 * requests and deliver results. A result belongs to the allocation generation that was scanned, so the next owner of an address
 * sees nothing of it. Reading asks for server and tenant in the query. All is kept for seven days.
 */
import type { Clock } from '#common/clock/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { forbidden, reachesTenant, requireStaff } from '#operations/accounts/index.ts';
import type { Addresses } from '#operations/addresses/index.ts';
import { countPendingScans, listAllScans } from '#operations/views/index.ts';
import { createExpiryLoop } from '#service-kit/leases/index.ts';
import type { Post } from '#service-kit/mail/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { createAlertMailer } from '../alert-mails/index.ts';
import { createRequestKeeper } from './keep-requests.ts';
import { listForMonitor } from './list-requests.ts';
import { portMails } from './port-mail.ts';
import { deleteExpiredScans, readStatus } from './port-store.ts';
import { readPorts, readResult } from './ports-of-server.ts';
import type { ProtectScans } from './protect-scans.ts';
import { receiveScans } from './receive-scans.ts';
import { requestScan } from './request-scan.ts';
import { cancelQueued, deleteExpiredRequests, listFetchedClusters } from './request-store.ts';
import { overdueMs } from './scan-request.ts';
import { updateRequests } from './update-requests.ts';

export type { ListedScan, PendingScans, ScanListQuery } from '#operations/views/index.ts';
export { readCursor as readScanCursor } from './list-requests.ts';
export { hasForeignScan, isDeliveredByOther, type ScanStatus } from './port-store.ts';
export {
  type FoundService,
  isGuess,
  type ObservedPort,
  type ServerPorts,
  type ServerScan,
} from './ports-of-server.ts';
export type { ProtectScans } from './protect-scans.ts';
export { requestLimits } from './scan-request.ts';
export { createScansReceiver } from './scans-receiver.ts';

export interface ProtectScansDeps {
  db: () => Queryable;
  clock: Clock;
  reporter: Reporter;
  addresses: Addresses;
  isDocumentationGlobal: boolean;
  post: Post;
}

export function createProtectScans(deps: ProtectScansDeps): ProtectScans {
  const { db, clock, reporter, addresses } = deps;
  const retention = createExpiryLoop({
    ...{ name: 'operations-scan-retention', db, clock, reporter },
    async deleteExpired(tx, rowsMax) {
      return Math.max(await deleteExpiredRequests(tx, rowsMax), await deleteExpiredScans(tx, rowsMax));
    },
  });
  return {
    work: { parts: [createRequestKeeper(deps), createAlertMailer(portMails, deps), retention] },
    request: (actor, serverId) => requestScan(deps, actor, serverId),
    async cancelQueued(tx, serverId) {
      await cancelQueued(tx, 'views_off', { serverId, kind: 'manual' });
    },
    async read(actor, subject) {
      if (!reachesTenant(actor, subject.tenantId)) throw forbidden('This server belongs to another account.');
      return readPorts(db(), addresses, subject);
    },
    async readStatus(actor, subject) {
      if (!reachesTenant(actor, subject.tenantId)) throw forbidden('This server belongs to another account.');
      return readStatus(db(), subject);
    },
    async readResult(actor, subject, requestId) {
      if (!reachesTenant(actor, subject.tenantId)) throw forbidden('This server belongs to another account.');
      return readResult(db(), addresses, subject, requestId);
    },
    async listAll(actor, query) {
      requireStaff(actor);
      return listAllScans(db(), query, overdueMs / 1000);
    },
    async countPending(actor) {
      requireStaff(actor);
      return countPendingScans(db(), await listFetchedClusters(db()), overdueMs / 1000);
    },
    listRequests: (sender, query) => listForMonitor(deps, sender, query),
    updateRequests: (sender, request) => updateRequests(db(), sender, request),
    receive: (sender, request) => receiveScans({ ...deps, canMail: deps.post.canSend }, sender, request),
  };
}
