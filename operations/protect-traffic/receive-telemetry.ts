/**
 * Stores minute telemetry, exactly once for each allocation generation and minute (NET-2.4.7).
 *
 * The generation is checked in the transaction that stores, for every target anew: an address that changed hands
 * between the monitor's look and this receipt never shows its new owner the old one's traffic. Each target commits by
 * itself; a request that fails half-way is sent again, and what was stored is then `unchanged`.
 */
import { canonicalAddress, isGlobalUnicast, parseAddress } from '#common/ip/index.ts';
import type {
  ReceiptOutcome,
  TelemetryReceipts,
  TelemetryRequest,
  TelemetryTarget,
} from '#contracts/admin-api/schemas.ts';
import type { Addresses, Allocation } from '#operations/addresses/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { checkSeries } from './check-series.ts';
import { liesInGeneration, toStoredMinute } from './minute.ts';
import * as store from './store.ts';

export interface ReceiveTelemetryDeps {
  db: () => Queryable;
  addresses: Addresses;
  isDocumentationGlobal: boolean;
}

/** What the sender may speak about. */
export interface SenderScope {
  /** null: all clusters. */
  clusterIds: readonly number[] | null;
}

export async function receiveTelemetry(
  deps: ReceiveTelemetryDeps,
  scope: SenderScope,
  request: TelemetryRequest,
): Promise<TelemetryReceipts> {
  checkSeries(request, await store.readNowMs(deps.db()));
  const clusterIds = request.cluster_ids.filter((id) => scope.clusterIds?.includes(id) ?? true);
  const receipts: TelemetryReceipts['receipts'] = [];
  for (const target of request.targets) {
    const receipt = await deps
      .db()
      .transaction()
      .execute((transaction) =>
        receiveTarget(deps, transaction, { target, clusterIds, siteId: request.source_site_id }),
      );
    receipts.push({ id: target.id, receipt });
  }
  return { receipts };
}

async function receiveTarget(
  deps: ReceiveTelemetryDeps,
  transaction: Queryable,
  sent: { target: TelemetryTarget; clusterIds: readonly number[]; siteId: number },
): Promise<ReceiptOutcome> {
  const { target, siteId } = sent;
  const allocation = await deps.addresses.lockAllocation(transaction, target.id);
  if (!allocation || !isTargetOf(allocation, sent, deps.isDocumentationGlobal)) return 'unmatched';
  const minutes = target.series
    .map(toStoredMinute)
    .filter((minute) => liesInGeneration(minute.minuteMs, allocation));
  if (minutes.length === 0) return target.series.length === 0 ? 'unchanged' : 'unmatched';

  const ownerSiteId = await store.claimSeries(transaction, allocation, siteId);
  if (ownerSiteId !== siteId) return 'source_conflict';
  return (await store.upsertMinutes(transaction, allocation.id, minutes)) > 0 ? 'accepted' : 'unchanged';
}

function isTargetOf(
  allocation: Allocation,
  sent: { target: TelemetryTarget; clusterIds: readonly number[] },
  isDocumentationGlobal: boolean,
): boolean {
  const bytes = parseAddress(allocation.address);
  return (
    sent.clusterIds.includes(allocation.clusterId) &&
    // The exact text: a generation's mark is echoed, not computed again.
    sent.target.assigned_at === allocation.assignedAt &&
    canonicalAddress(sent.target.address) === allocation.address &&
    bytes !== null &&
    isGlobalUnicast(bytes, isDocumentationGlobal)
  );
}
