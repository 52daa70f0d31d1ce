/**
 * Scan requests and scan results between operations and the monitor (NET-2.7, NET-4.e, NET-4.f): the monitor fetches what
 * customers asked for, says what became of each, and delivers results, each until its receipt is there.
 */
import { type Static, Type } from 'typebox';
import { ScanId, scanFindings } from '../port-scan/index.ts';
import { Id, Nullable, Strict, Timestamp } from '../scalars.ts';
import type { AdminContract, FeedContract } from './contract.ts';

/** One address that a full scan was asked for. `id` is the request's for good, and becomes the scan's id. */
export const ScanRequest = Type.Object({
  id: ScanId,
  billing_account_id: Id,
  virtual_machine_id: Id,
  cluster_id: Id,
  allocation_id: Id,
  address: Type.String(),
  assigned_at: Timestamp,
  kind: Type.Enum(['manual', 'automatic']),
  profile: Type.Literal('full'),
  requested_at: Timestamp,
  expires_at: Timestamp,
  revision: Type.Integer({
    minimum: 1,
    description: 'Of the connection; a result is sent under the one it was confirmed with (NET-2.7.9).',
  }),
});
export type ScanRequest = Static<typeof ScanRequest>;

/** Requests that are not final. `after` is opaque; a page takes one request of each account in turn, oldest first. */
export const ScanRequestsPage = Type.Object({
  requests: Type.Array(ScanRequest),
  next_after: Nullable(Type.String()),
});
export type ScanRequestsPage = Static<typeof ScanRequestsPage>;
export const scanRequestsLimitDefault = 100;
export const scanRequestsLimitMax = 500;
export const scanRequestsPath = '/protect/scan-requests/';

/** What became of a request before its result. `claimed` leaves it queued; `running` needs a start that a sensor reported. */
export const ScanRequestUpdate = Strict({
  id: ScanId,
  state: Type.Enum(['claimed', 'running', 'withdrawn']),
  started_at: Nullable(Timestamp),
  heartbeat_at: Nullable(Timestamp),
  progress: Nullable(Type.Number({ minimum: 0, maximum: 100, description: 'Percent of the whole scan.' })),
});
export type ScanRequestUpdate = Static<typeof ScanRequestUpdate>;

export const ScanRequestUpdates = Strict({
  contract_version: Type.Literal(1),
  source_site_id: Id,
  updates: Type.Array(ScanRequestUpdate, { maxItems: 100 }),
});
export type ScanRequestUpdates = Static<typeof ScanRequestUpdates>;

/** `cancelled`, `expired`: the request leaves the sensor's plan. */
export const ScanRequestOutcome = Type.Enum(['accepted', 'unchanged', 'cancelled', 'expired', 'unknown']);
export type ScanRequestOutcome = Static<typeof ScanRequestOutcome>;

/** Outcomes in the order of the updates. */
export const ScanRequestOutcomes = Type.Object({
  outcomes: Type.Array(Type.Object({ id: ScanId, outcome: ScanRequestOutcome })),
});
export type ScanRequestOutcomes = Static<typeof ScanRequestOutcomes>;

/** A result of one address. `request_id` is null for the sensor's own hourly and daily scans. */
export const DeliveredScan = Strict({
  scan_id: ScanId,
  request_id: Nullable(ScanId),
  allocation_id: Id,
  address: Type.String({ minLength: 2, maxLength: 45 }),
  assigned_at: Timestamp,
  ...scanFindings,
});
export type DeliveredScan = Static<typeof DeliveredScan>;

export const PortScansRequest = Strict({
  contract_version: Type.Literal(1),
  source_site_id: Id,
  cluster_ids: Type.Array(Id, { maxItems: 100 }),
  results: Type.Array(DeliveredScan, { maxItems: 50 }),
});
export type PortScansRequest = Static<typeof PortScansRequest>;

/** `unmatched`: the address is no longer what it was when it was scanned, and nothing was stored (NET-2.7.11). */
export const PortScanReceipt = Type.Enum(['accepted', 'unchanged', 'unmatched', 'source_conflict']);
export type PortScanReceipt = Static<typeof PortScanReceipt>;

/** Receipts in the order of the results. */
export const PortScanReceipts = Type.Object({
  receipts: Type.Array(Type.Object({ scan_id: ScanId, receipt: PortScanReceipt })),
});
export type PortScanReceipts = Static<typeof PortScanReceipts>;

const portScanCapability = {
  permission: 'protect_port_scan_ingest',
  required: { protect_port_scan_ingest: true, protect_port_scan_ingest_version: 1 },
} as const satisfies AdminContract;

/** The same permission serves requests and results. */
export const scanRequestsContract: AdminContract = portScanCapability;

export const portScansContract = {
  ...portScanCapability,
  path: '/protect/port-scans/',
  request: PortScansRequest,
  answer: PortScanReceipts,
  bodyBytesMax: 8 * 1024 * 1024,
} as const satisfies FeedContract;
