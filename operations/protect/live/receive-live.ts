/**
 * Stores live buckets of allocation generations (NET-2.5).
 *
 * Each generation is checked again in the transaction that stores, as for minutes. A live receipt never claims the series of
 * minutes: who owns that decides who may send live traffic, and where it has no owner yet, the source that sends first.
 */

import { CodedError } from '#common/errors/index.ts';
import {
  type LivePoint,
  type LiveReceipts,
  type LiveRequest,
  liveBucketSeconds,
} from '#contracts/admin-api/live.ts';
import { findImplausible } from '#contracts/admin-api/plausible.ts';
import type { Addresses, Allocation } from '#operations/addresses/index.ts';
import type { Sender } from '#operations/feeds/index.ts';
import { inTransaction, type Queryable, readNowMs } from '#service-kit/postgres/index.ts';
import { isTargetOf, liesInGeneration } from '../generation.ts';
import { readStandings, type Source } from '../traffic/index.ts';
import * as store from './store.ts';

export interface ReceiveLiveDeps {
  db: () => Queryable;
  addresses: Pick<Addresses, 'lockAllocations'>;
  isDocumentationGlobal: boolean;
}

type Target = LiveRequest['targets'][number];

/** A target that is the generation it names, with those of its buckets that lie in it. */
interface Match {
  allocation: Allocation;
  points: LivePoint[];
}

export async function receiveLive(
  deps: ReceiveLiveDeps,
  scope: Sender,
  request: LiveRequest,
): Promise<LiveReceipts> {
  const nowMs = await readNowMs(deps.db());
  checkBuckets(request, nowMs);
  const source = { projectId: scope.projectId, siteId: request.source_site_id };
  const clusterIds = request.cluster_ids.filter((id) => scope.clusterIds?.includes(id) ?? true);
  return inTransaction(deps.db(), async (trx) => {
    const ids = [...new Set(request.targets.map(({ id }) => id))];
    const allocations = new Map((await deps.addresses.lockAllocations(trx, ids)).map((one) => [one.id, one]));
    const matches = new Map<Target, Match>();
    for (const target of request.targets) {
      const allocation = allocations.get(target.id);
      if (!allocation || !isTargetOf(allocation, target, clusterIds, deps.isDocumentationGlobal)) continue;
      const points = target.series.filter((point) =>
        liesInGeneration(Date.parse(point.timestamp), liveBucketSeconds * 1000, allocation),
      );
      // Buckets of another owner alone are none of this generation's.
      if (points.length > 0 || target.series.length === 0) matches.set(target, { allocation, points });
    }
    const { owned, changed } = await storeMatches(trx, source, [...matches.values()]);
    const receipts = request.targets.map((target): LiveReceipts['receipts'][number] => {
      const { id } = target;
      if (!matches.has(target)) return { id, receipt: 'unmatched' };
      if (!owned.has(id)) return { id, receipt: 'source_conflict' };
      return { id, receipt: changed.has(id) ? 'accepted' : 'unchanged' };
    });
    return { receipts };
  });
}

/** Which generations the source may speak for, and which of them got buckets that are new or different. */
async function storeMatches(
  trx: Queryable,
  source: Source,
  matches: readonly Match[],
): Promise<{ owned: Set<number>; changed: Set<number> }> {
  if (matches.length === 0) return { owned: new Set(), changed: new Set() };
  const allocations = [...new Map(matches.map(({ allocation }) => [allocation.id, allocation])).values()];
  const standings = await readStandings(
    trx,
    allocations.map(({ id }) => id),
    source,
  );
  const owned = await store.claim(
    trx,
    source,
    allocations
      .sort((a, b) => a.id - b.id)
      .map((allocation) => ({ ...allocation, standing: standings.get(allocation.id) ?? 'open' })),
  );
  const buckets = matches
    .filter(({ allocation }) => owned.has(allocation.id))
    .flatMap(({ allocation, points }) => points.map((point) => ({ allocationId: allocation.id, ...point })));
  if (buckets.length === 0) return { owned, changed: new Set() };
  const changed = await store.upsertBuckets(trx, buckets);
  await store.noteReceipts(trx, buckets);
  return { owned, changed };
}

const bucketMs = liveBucketSeconds * 1000;
/** Buckets that end later than this after our clock are a wrong clock, not telemetry. */
const aheadMsMax = 60_000;

/**
 * Throws `protect_live.invalid` (details: `fields`) for what the schema can't see: timestamps that are no ten-second
 * boundary of UTC, targets or buckets sent twice, buckets still to come, rates that no link carries.
 */
function checkBuckets(request: LiveRequest, nowMs: number): void {
  const fields: { path: string; message: string }[] = [];
  const targets = new Set<number>();
  for (const [t, target] of request.targets.entries()) {
    if (targets.has(target.id)) fields.push({ path: `targets.${t}.id`, message: 'appears twice' });
    targets.add(target.id);
    const seen = new Set<number>();
    for (const [p, point] of target.series.entries()) {
      const path = `targets.${t}.series.${p}`;
      const ms = Date.parse(point.timestamp);
      const fault = (message: string) => fields.push({ path: `${path}.timestamp`, message });
      if (!Number.isFinite(ms) || ms % bucketMs !== 0 || /\.\d*[1-9]/.test(point.timestamp))
        fault('must be a whole ten seconds of UTC');
      else if (ms + bucketMs > nowMs + aheadMsMax) fault('is a bucket that is not over yet');
      else if (seen.has(ms)) fault('appears twice in one series');
      if (findImplausible({ ...point, applications: [] }) !== null)
        fields.push({ path, message: 'has a rate above 400 Gbit/s' });
      seen.add(ms);
    }
  }
  if (fields.length === 0) return;
  throw new CodedError('protect_live.invalid', 'Some fields are not as they must be.', {
    fields: fields.slice(0, 20),
  });
}
