/**
 * Stores results of scans, one transaction for each (NET-4.f).
 *
 * The result must be about an address that its server has now (NET-2.7.11): allocation, address, assignment, cluster, and a
 * scan that began after the assignment. Ownership is checked in the transaction that stores. A scan id is stored once.
 */

import { CodedError } from '#common/errors/index.ts';
import type { DeliveredScan, PortScanReceipts, PortScansRequest } from '#contracts/admin-api/port-scans.ts';
import type { Addresses, Allocation } from '#operations/addresses/index.ts';
import type { Sender } from '#operations/feeds/index.ts';
import { inTransaction, type Queryable, readNowMs } from '#service-kit/postgres/index.ts';
import { isTargetOf, liesInGeneration } from '../generation.ts';
import { readStandings, type Source } from '../traffic/index.ts';
import { type AlertDeps, alertCustomer } from './alert-customer.ts';
import { mergeScan } from './merge-ports.ts';
import * as ports from './port-store.ts';
import * as requests from './request-store.ts';
import { nextState } from './scan-request.ts';

interface ReceiveScansDeps extends AlertDeps {
  db: () => Queryable;
  addresses: Pick<Addresses, 'lockAllocation'>;
  isDocumentationGlobal: boolean;
}

/** One result with who sent it, and the clusters that it may speak about. */
interface Sent {
  scan: DeliveredScan;
  source: Source;
  clusterIds: readonly number[];
  nowMs: number;
}

type Receipt = PortScanReceipts['receipts'][number]['receipt'];

export async function receiveScans(
  deps: ReceiveScansDeps,
  sender: Sender,
  request: PortScansRequest,
): Promise<PortScanReceipts> {
  const nowMs = await readNowMs(deps.db());
  checkScans(request, nowMs);
  const clusterIds = request.cluster_ids.filter((id) => sender.clusterIds?.includes(id) ?? true);
  const source = { projectId: sender.projectId, siteId: request.source_site_id };
  const receipts: PortScanReceipts['receipts'] = [];
  for (const scan of request.results) {
    const receipt = await inTransaction(deps.db(), (tx) =>
      receiveScan(deps, tx, { scan, source, clusterIds, nowMs }),
    );
    receipts.push({ scan_id: scan.scan_id, receipt });
  }
  return { receipts };
}

async function receiveScan(deps: ReceiveScansDeps, tx: Queryable, sent: Sent): Promise<Receipt> {
  const { scan, source, nowMs } = sent;
  const allocation = await deps.addresses.lockAllocation(tx, scan.allocation_id);
  if (!allocation || !isAbout(deps, allocation, sent)) return 'unmatched';
  const standing = (await readStandings(tx, [allocation.id], source)).get(allocation.id);
  const coverage =
    standing === 'held' ? null : await ports.claimSeries(tx, allocation, source, standing === 'owned');
  if (coverage === null) {
    await ports.noteRefusal(tx, allocation.id);
    return 'source_conflict';
  }
  const request = await lockRequest(tx, allocation, sent);
  if (request === 'foreign') return 'unmatched';
  if (await ports.isExpired(tx, scan.finished_at)) {
    await finishRequest(tx, request, scan);
    return 'unchanged';
  }
  if (!(await ports.insertScan(tx, allocation, scan, request?.kind ?? 'routine'))) return 'unchanged';
  const endsRequest = await finishRequest(tx, request, scan);
  const held = await ports.listPorts(tx, [allocation.id]);
  const merged = mergeScan(held, coverage, scan);
  await ports.putPorts(tx, allocation.id, merged.changed);
  await ports.noteDelivery(tx, allocation.id, source, merged.coverage);
  await ports.noteOpened(tx, scan.scan_id, merged.opened);
  const { opened, closed } = merged;
  await alertCustomer(deps, tx, { of: allocation, scan, opened, closed, endsRequest, nowMs });
  return 'accepted';
}

/** The request that was scanned for; null for a routine scan, and where the request is older than requests are kept. */
async function lockRequest(
  tx: Queryable,
  allocation: Allocation,
  { scan, source }: Sent,
): Promise<requests.LockedRequest | null | 'foreign'> {
  if (scan.request_id === null) return null;
  const request = (await requests.lockRequests(tx, [scan.request_id], source))[0];
  if (!request) return null;
  return request.allocationId === allocation.id ? request : 'foreign';
}

/** True when it ends the request. One that has ended stays as it is: its late result is stored all the same (NET-1.6, NET-3.1). */
async function finishRequest(tx: Queryable, request: requests.LockedRequest | null, scan: DeliveredScan) {
  if (request === null) return false;
  if (request.hasLapsed) await requests.endRequest(tx, request.id, 'expired');
  const next = nextState(request.state, scan.state === 'complete' ? 'completed' : 'interrupted');
  if (next === null) return false;
  const times = { startedAt: new Date(scan.started_at), finishedAt: new Date(scan.finished_at) };
  await requests.endRequest(tx, request.id, next, times);
  return true;
}

/** The scan is of this very generation, which has not ended. */
function isAbout(
  { isDocumentationGlobal }: ReceiveScansDeps,
  allocation: Allocation,
  { scan, clusterIds }: Sent,
): boolean {
  const startedMs = Date.parse(scan.started_at);
  return (
    allocation.releasedAt === null &&
    isTargetOf(allocation, scan, clusterIds, isDocumentationGlobal) &&
    liesInGeneration(startedMs, Date.parse(scan.finished_at) - startedMs, allocation)
  );
}

/** Times that are further ahead of our clock are a wrong clock, not an observation. */
const aheadMsMax = 5 * 60_000;

/** Throws `port_scans.invalid` (details: `fields`) for what the schema can't see. */
function checkScans(request: PortScansRequest, nowMs: number): void {
  const fields = request.results.flatMap((scan, index) =>
    faultsOf(scan, nowMs).map(([field, message]) => ({ path: `results.${index}.${field}`, message })),
  );
  if (fields.length === 0) return;
  throw new CodedError('port_scans.invalid', 'Some fields are not as they must be.', {
    fields: fields.slice(0, 20),
  });
}

function faultsOf(scan: DeliveredScan, nowMs: number): [field: string, message: string][] {
  const faults: [string, string][] = [];
  const finishedMs = Date.parse(scan.finished_at);
  if (finishedMs < Date.parse(scan.started_at)) faults.push(['finished_at', 'must not be before started_at']);
  if (finishedMs > nowMs + aheadMsMax) faults.push(['finished_at', 'is in the future: check the clock']);
  const transports = scan.phases.map(({ transport }) => transport);
  if (new Set(transports).size < transports.length) faults.push(['phases', 'has a transport more than once']);
  const seen = new Set<string>();
  for (const [index, { transport, port, observed_at }] of scan.services.entries()) {
    const key = `${transport}/${port}`;
    if (seen.has(key)) faults.push([`services.${index}.port`, `appears twice: ${key}`]);
    if (Date.parse(observed_at) > nowMs + aheadMsMax)
      faults.push([`services.${index}.observed_at`, 'is in the future: check the clock']);
    seen.add(key);
  }
  return faults;
}
