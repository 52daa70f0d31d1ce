import type {
  PortScanReceipts,
  PortScansRequest,
  ScanRequestOutcomes,
  ScanRequestsPage,
  ScanRequestUpdates,
} from '#contracts/admin-api/port-scans.ts';
import type { Actor } from '#operations/accounts/index.ts';
import type { Sender } from '#operations/feeds/index.ts';
import type { ListedScan, PendingScans, ScanListQuery } from '#operations/views/index.ts';
import type { FeatureWork } from '#service-kit/jobs/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { ScanStatus } from './port-store.ts';
import type { PortSubject, ScanResult, ServerPorts } from './ports-of-server.ts';
import type { RequestScanResult } from './request-scan.ts';
import type { PageCursor } from './request-store.ts';

export interface ProtectScans {
  /** What it does beside the calls. */
  readonly work: FeatureWork;
  /**
   * Requests a full scan of all public addresses of a server; answers with the pending requests where there are some. Throws
   * `port_scans.not_found`, `port_scans.views_off`, `port_scans.not_running`, `port_scans.no_address`,
   * `port_scans.too_many_addresses`, `port_scans.cooldown`, `port_scans.limit_exceeded`, `accounts.forbidden`.
   */
  request(actor: Actor, serverId: number): Promise<RequestScanResult>;
  /** Cancels the queued manual requests of a server, in the transaction that switches its views off (NET-1.6). */
  cancelQueued(tx: Queryable, serverId: number): Promise<void>;
  /** What is known of a server's ports, and its scans. Throws `accounts.forbidden`. */
  read(actor: Actor, subject: PortSubject): Promise<ServerPorts>;
  /** How the delivery of a server's scans stands (NET-4.10). Throws `accounts.forbidden`. */
  readStatus(actor: Actor, subject: PortSubject): Promise<ScanStatus>;
  /** What one requested scan found; null where the server has none of this id. Throws `accounts.forbidden`. */
  readResult(actor: Actor, subject: PortSubject, requestId: string): Promise<ScanResult | null>;
  /** Scans of all customers, newest first: requests, and routine scans that failed. Throws `accounts.forbidden`; staff only. */
  listAll(actor: Actor, query: ScanListQuery): Promise<ListedScan[]>;
  /** How many scans run and wait, of all customers. Throws `accounts.forbidden`; staff only. */
  countPending(actor: Actor): Promise<PendingScans>;
  /** A page of pending requests for a monitor. */
  listRequests(sender: Sender, query: { after: PageCursor | null; limit: number }): Promise<ScanRequestsPage>;
  /** What became of requests; throws `port_scans.invalid`. One outcome for each update, in their order. */
  updateRequests(sender: Sender, request: ScanRequestUpdates): Promise<ScanRequestOutcomes>;
  /** Stores results; throws `port_scans.invalid`. One receipt for each, in their order. */
  receive(sender: Sender, request: PortScansRequest): Promise<PortScanReceipts>;
}
