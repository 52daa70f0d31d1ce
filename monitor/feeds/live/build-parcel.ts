import type { LiveReceipts, LiveRequest } from '#contracts/admin-api/live.ts';
import { type LivePoint, liveBucketSeconds, liveBucketsMax } from '#contracts/admin-api/live.ts';
import { findImplausible } from '#contracts/admin-api/plausible.ts';
import { OperationsError } from '#monitor/operations-client/index.ts';
import type { StoredTarget } from '../allocations/index.ts';
import type { Parcel } from '../feed.ts';
import type { Visit } from '../round.ts';
import type { HostInterval, SiteObservations, SiteWindows } from './index-windows.ts';

/** What the targets of one request share. */
interface LiveContext {
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

// The ten-second buckets of one address (NET-2.5.1). Pure.
//
// A rate is an address's own bytes divided by the time that its capture observed. Captures mirror each other, so where they
// overlap only the strongest one counts; what is left is averaged by observed time. A bucket without the address is absent:
// nothing is filled with zeros.

const bucketMs = liveBucketSeconds * 1000;

/** What one interval says about one bucket. */
interface Candidate {
  host: HostInterval;
  /** Of the interval within the bucket; a part of unknown place fills it. */
  fromMs: number;
  toMs: number;
  /** Observed time within the bucket. */
  ms: number;
  /** In the bucket, both directions. */
  bytes: number;
}

/** At most 30 completed buckets of the last five minutes, in order. `assignedAtMs`: earlier traffic was another owner's. */
export function buildBuckets(
  windows: SiteWindows,
  address: string,
  assignedAtMs: number,
  nowMs: number,
): LivePoint[] {
  const endMs = Math.min(Math.floor(nowMs / bucketMs) * bucketMs, windows.settledUntilMs);
  const fromMs = Math.floor(nowMs / bucketMs) * bucketMs - liveBucketsMax * bucketMs;
  const byBucket = new Map<number, Candidate[]>();
  for (const host of windows.byAddress.get(address) ?? []) {
    // An interval that crosses the assignment has bytes of two owners.
    if (host.of.startedAtMs < assignedAtMs) continue;
    for (const [startMs, candidate] of divideByBucket(host)) {
      if (startMs < fromMs || startMs + bucketMs > endMs) continue;
      const candidates = byBucket.get(startMs);
      if (candidates) candidates.push(candidate);
      else byBucket.set(startMs, [candidate]);
    }
  }
  return [...byBucket]
    .sort(([a], [b]) => a - b)
    .map(([startMs, candidates]) => toPoint(startMs, candidates, windows.isLimited));
}

/** An interval of ten seconds or less lies in one bucket; a longer one is spread over those that it touches. */
function divideByBucket(host: HostInterval): [number, Candidate][] {
  const { startedAtMs, observedMs } = host.of;
  const endMs = startedAtMs + Math.max(bucketMs, observedMs);
  const total = host.rxBytes + host.txBytes;
  const divided: [number, Candidate][] = [];
  for (let at = Math.floor(startedAtMs / bucketMs) * bucketMs; at < endMs; at += bucketMs) {
    const fromMs = Math.max(at, startedAtMs);
    const toMs = Math.min(at + bucketMs, endMs);
    const ms = Math.min(toMs - fromMs, observedMs);
    divided.push([at, { host, fromMs, toMs, ms, bytes: (total * ms) / observedMs }]);
  }
  return divided;
}

function toPoint(startMs: number, candidates: readonly Candidate[], isLimited: boolean): LivePoint {
  const chosen = chooseStrongest(candidates);
  const ms = chosen.reduce((sum, one) => sum + one.ms, 0);
  const mean = (pick: (host: HostInterval) => number) =>
    chosen.reduce((sum, { host, ms: part }) => sum + (pick(host) * 1000 * part) / host.of.observedMs, 0) / ms;
  return {
    timestamp: new Date(startMs).toISOString(),
    inbound_bps: mean((host) => host.rxBytes * 8),
    outbound_bps: mean((host) => host.txBytes * 8),
    pps: mean((host) => host.packets),
    expected_bps: null,
    expected_pps: null,
    ddos_bps: null,
    ddos_pps: null,
    coverage: isLimited || !holdsMaxima(chosen, candidates) ? null : coverageOf(chosen),
    observed_seconds: ms / 1000,
  };
}

/** The strongest interval, and of the others those that overlap no stronger one. */
function chooseStrongest(candidates: readonly Candidate[]): Candidate[] {
  const ordered = candidates.toSorted(
    (a, b) =>
      b.bytes - a.bytes ||
      b.ms - a.ms ||
      Number(b.host.of.isUplink) - Number(a.host.of.isUplink) ||
      a.host.of.sensorId - b.host.of.sensorId ||
      (a.host.of.capture < b.host.of.capture ? -1 : 1),
  );
  const chosen: Candidate[] = [];
  for (const one of ordered) {
    if (chosen.every((held) => one.toMs <= held.fromMs || one.fromMs >= held.toMs)) chosen.push(one);
  }
  return chosen;
}

/** False where another capture saw more in one direction: then no single one has both maxima (NET-2.4.3). */
function holdsMaxima(chosen: readonly Candidate[], candidates: readonly Candidate[]): boolean {
  return candidates.every((other) => {
    const over = chosen.find((one) => one.fromMs < other.toMs && other.fromMs < one.toMs);
    if (!over) return true;
    const { rxBytes, txBytes, of } = other.host;
    const [rx, tx] = [(rxBytes * other.ms) / of.observedMs, (txBytes * other.ms) / of.observedMs];
    const share = over.ms / over.host.of.observedMs;
    return over.host.rxBytes * share >= rx && over.host.txBytes * share >= tx;
  });
}

/** The observed part of the bucket, less the packets that the kernel dropped. Null where the parser lost packets. */
function coverageOf(chosen: readonly Candidate[]): number | null {
  let covered = 0;
  for (const { host, ms } of chosen) {
    const { packets, kernelDropped, parserDropped } = host.of;
    if (parserDropped > 0) return null;
    covered += kernelDropped === 0 ? ms : (ms * packets) / (packets + kernelDropped);
  }
  return covered / bucketMs;
}
