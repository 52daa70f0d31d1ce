/**
 * Stores minute telemetry, exactly once for each allocation generation and minute (NET-2.4.7).
 *
 * The generation is checked in the transaction that stores, for every target anew: an address that changed hands
 * between the monitor's look and this receipt never shows its new owner the old one's traffic. Each target commits by
 * itself; a request that fails half-way is sent again, and what was stored is then `unchanged`. A minute that no link
 * carries is set aside by name and the others are stored. Sums of the minutes change in the same transaction.
 */
import { CodedError } from '#common/errors/index.ts';
import { findImplausible } from '#contracts/admin-api/plausible.ts';
import type {
  ReceiptOutcome,
  SetAsideReason,
  TelemetryReceipts,
  TelemetryRequest,
  TelemetryTarget,
} from '#contracts/admin-api/schemas.ts';
import type { Addresses } from '#operations/addresses/index.ts';
import type { Sender } from '#operations/feeds/index.ts';
import { inTransaction, type Queryable, readNowMs } from '#service-kit/postgres/index.ts';
import { isTargetOf, liesInGeneration } from '../generation.ts';
import { minuteMs, type StoredMinute, toStoredMinute } from './minute.ts';
import { claimSeries, noteSetAside, type Source } from './source-store.ts';
import * as store from './store.ts';
import { sumWritten } from './sum-store.ts';

export interface ReceiveTelemetryDeps {
  db: () => Queryable;
  addresses: Addresses;
  isDocumentationGlobal: boolean;
}

export async function receiveTelemetry(
  deps: ReceiveTelemetryDeps,
  scope: Sender,
  request: TelemetryRequest,
): Promise<TelemetryReceipts> {
  checkSeries(request, await readNowMs(deps.db()));
  const clusterIds = request.cluster_ids.filter((id) => scope.clusterIds?.includes(id) ?? true);
  const source = { projectId: scope.projectId, siteId: request.source_site_id };
  const receipts: TelemetryReceipts['receipts'] = [];
  const setAside: NonNullable<TelemetryReceipts['set_aside']> = [];
  for (const target of request.targets) {
    const sent = { target, clusterIds, source };
    const received = await inTransaction(deps.db(), (transaction) => receiveTarget(deps, transaction, sent));
    receipts.push({ id: target.id, receipt: received.receipt });
    setAside.push(...received.setAside.map((one) => ({ id: target.id, ...one })));
  }
  return setAside.length > 0 ? { receipts, set_aside: setAside } : { receipts };
}

interface Received {
  receipt: ReceiptOutcome;
  setAside: { timestamp: string; reason: SetAsideReason }[];
}

async function receiveTarget(
  deps: ReceiveTelemetryDeps,
  transaction: Queryable,
  sent: { target: TelemetryTarget; clusterIds: readonly number[]; source: Source },
): Promise<Received> {
  const { target, clusterIds, source } = sent;
  const just = (receipt: ReceiptOutcome): Received => ({ receipt, setAside: [] });
  const allocation = await deps.addresses.lockAllocation(transaction, target.id);
  if (!allocation || !isTargetOf(allocation, target, clusterIds, deps.isDocumentationGlobal))
    return just('unmatched');
  const points = target.series.filter((point) =>
    liesInGeneration(Date.parse(point.timestamp), minuteMs, allocation),
  );
  if (points.length === 0) return just(target.series.length === 0 ? 'unchanged' : 'unmatched');

  if (!(await claimSeries(transaction, allocation, source))) return just('source_conflict');
  const setAside: Received['setAside'] = [];
  const minutes: StoredMinute[] = [];
  for (const point of points) {
    const reason = findImplausible(point);
    if (reason) setAside.push({ timestamp: point.timestamp, reason });
    else minutes.push(toStoredMinute(point));
  }
  if (setAside.length > 0) await noteSetAside(transaction, allocation.id, source, setAside);
  const written = minutes.length === 0 ? [] : await store.upsertMinutes(transaction, allocation.id, minutes);
  if (written.length > 0) await sumWritten(transaction, allocation.id, written);
  return { receipt: written.length > 0 ? 'accepted' : 'unchanged', setAside };
}

interface SeriesFault {
  /** Such as `targets.0.series.3.timestamp`. */
  path: string;
  message: string;
}

/** Minutes that end later than this after our clock are a wrong clock, not telemetry. */
const aheadMsMax = 5 * 60_000;

/**
 * Throws `protect_traffic.invalid` (details: `fields`) for what the schema can't see: timestamps that are no whole UTC
 * minutes, minutes sent twice or still to come.
 */
function checkSeries(request: TelemetryRequest, nowMs: number): void {
  const faults: SeriesFault[] = [];
  for (const [t, target] of request.targets.entries()) {
    const seen = new Set<number>();
    for (const [p, point] of target.series.entries()) {
      const path = `targets.${t}.series.${p}`;
      const ms = Date.parse(point.timestamp);
      if (!Number.isFinite(ms) || ms % 60_000 !== 0 || /\.\d*[1-9]/.test(point.timestamp)) {
        faults.push({ path: `${path}.timestamp`, message: 'must be the start of a whole UTC minute' });
      } else if (ms + 60_000 > nowMs + aheadMsMax) {
        faults.push({ path: `${path}.timestamp`, message: 'is a minute that is not over yet' });
      } else if (seen.has(ms)) {
        faults.push({ path: `${path}.timestamp`, message: 'appears twice in one series' });
      }
      seen.add(ms);
    }
  }
  if (faults.length === 0) return;
  throw new CodedError('protect_traffic.invalid', 'Some fields are not as they must be.', {
    fields: faults.slice(0, 20),
  });
}
