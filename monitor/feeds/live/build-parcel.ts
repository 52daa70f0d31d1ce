import type { LivePoint, LiveReceipts, LiveRequest } from '#contracts/admin-api/live.ts';
import { findImplausible } from '#contracts/admin-api/plausible.ts';
import { OperationsError } from '#monitor/operations-client/index.ts';
import type { StoredTarget } from '../allocations/index.ts';
import type { Parcel } from '../feed.ts';
import type { Visit } from '../round.ts';
import { buildBuckets } from './build-buckets.ts';
import type { SiteObservations } from './read-observations.ts';

/** What the targets of one request share. */
export interface LiveContext {
  siteId: number;
  /** All clusters of the site. */
  clusterIds: readonly number[];
  observations: SiteObservations;
}

/** Of one request, as the contract has it. */
const clusterIdsMax = 100;

/**
 * One request with the buckets of these targets (NET-2.5). Each visit sends all buckets of the last five minutes: a late
 * window corrects a bucket, and what operations loses in a crash is there again with the next visit.
 */
export function buildParcel(
  context: LiveContext,
  targets: readonly StoredTarget[],
): Parcel<LiveRequest, LiveReceipts> {
  const { windows, nowMs } = context.observations;
  const sent: { target: StoredTarget; series: LivePoint[] }[] = [];
  const visits: Visit[] = [];
  for (const target of targets) {
    const assignedAtMs = ceilMs(target.assignedAt);
    const points = windows ? buildBuckets(windows, target.address, assignedAtMs, nowMs) : [];
    const series = points.filter((point) => findImplausible({ ...point, applications: [] }) === null);
    if (series.length > 0) sent.push({ target, series });
    else visits.push({ key: target.key, outcome: 'empty', position: target.position });
  }
  if (sent.length === 0) return { request: null, visits, take: () => [] };
  return {
    request: requestOf(context, sent),
    visits,
    take({ receipts }) {
      if (receipts.length !== sent.length) throw new OperationsError('malformed');
      return sent.map(({ target, series }, i): Visit => {
        const { id, receipt } = receipts[i]!;
        // A receipt about another target proves nothing.
        if (id !== target.id) throw new OperationsError('malformed');
        const isAcknowledged = receipt === 'accepted' || receipt === 'unchanged';
        const newest = Date.parse(series.at(-1)!.timestamp) / 1000;
        return {
          key: target.key,
          outcome: receipt,
          position: isAcknowledged ? { deliveredUntil: newest } : target.position,
          counts: { points: series.length },
          acknowledged: isAcknowledged ? newest : null,
        };
      });
    },
  };
}

function requestOf(
  { siteId, clusterIds }: LiveContext,
  sent: readonly { target: StoredTarget; series: LivePoint[] }[],
): LiveRequest {
  const ofTargets = new Set(sent.map(({ target }) => target.clusterId));
  return {
    contract_version: 1,
    source_site_id: siteId,
    cluster_ids: clusterIds.length <= clusterIdsMax ? [...clusterIds] : [...ofTargets],
    targets: sent.map(({ target: { id, address, assignedAt }, series }) => ({
      id,
      address,
      assigned_at: assignedAt,
      series,
    })),
  };
}

/** Milliseconds of an RFC 3339 stamp, rounded up: `Date.parse` drops the microseconds. */
function ceilMs(stamp: string): number {
  const finer = /\.\d{3}(\d+)/.exec(stamp)?.[1] ?? '';
  return Date.parse(stamp) + (/[1-9]/.test(finer) ? 1 : 0);
}
