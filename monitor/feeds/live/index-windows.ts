/**
 * Windows of a site, arranged by address. Pure.
 *
 * Parts of one capture's window, from before and after a restart of the sensor, are one interval: their bytes and their
 * observed times are added, as everywhere else. A window longer than 60 seconds says too little about ten of them and is
 * left out (NET-2.5.1).
 */

import type { Clock } from '#common/clock/index.ts';
import { liveBucketSeconds, liveBucketsMax } from '#contracts/admin-api/live.ts';
import { liveWindowMs } from '#contracts/sensor-api/live.ts';
import type { Live, LiveRate, StoredWindow } from '#monitor/live/index.ts';
import { OperationsError } from '#monitor/operations-client/index.ts';

/** The longest window that counts. */
const windowMsMax = 60_000;
/** A capture is waited for while it has sent a window within this time. */
const expectedMs = 60_000;
/** After this time a bucket counts as complete without the missing captures. */
const settleMs = 4000;

/** What one capture observed in one window, all addresses. */
interface CaptureInterval extends Omit<LiveRate, 'ipBytes'> {
  isUplink: boolean;
}

/** The traffic of one address in one interval of a capture. */
export interface HostInterval {
  of: CaptureInterval;
  rxBytes: number;
  txBytes: number;
  packets: number;
}

/** A site's windows of one read. */
export interface SiteWindows {
  byAddress: ReadonlyMap<string, readonly HostInterval[]>;
  /** Buckets that end later may still get windows of other captures. */
  settledUntilMs: number;
  /** A bound cut the read, so nothing can be said about coverage (NET-2.5.3). */
  isLimited: boolean;
}

/** Null: none of these windows can be used. */
export function indexWindows(
  windows: readonly StoredWindow[],
  isLimited: boolean,
  nowMs: number,
): SiteWindows | null {
  const intervals = new Map<string, CaptureInterval>();
  const byAddress = new Map<string, Map<CaptureInterval, HostInterval>>();
  let isEmpty = true;
  for (const window of windows) {
    if (!isValid(window, nowMs)) continue;
    isEmpty = false;
    const interval = joinInterval(intervals, window);
    for (const { address, rxBytes, txBytes, packets } of window.hosts) {
      const held = byAddress.get(address) ?? new Map<CaptureInterval, HostInterval>();
      byAddress.set(address, held);
      const host = held.get(interval);
      if (host) {
        host.rxBytes += rxBytes;
        host.txBytes += txBytes;
        host.packets += packets;
      } else held.set(interval, { of: interval, rxBytes, txBytes, packets });
    }
  }
  if (isEmpty) return null;
  return {
    byAddress: new Map([...byAddress].map(([address, hosts]) => [address, [...hosts.values()]])),
    settledUntilMs: findSettled([...intervals.values()], nowMs),
    isLimited,
  };
}

/** A window that is over, and of a length that counts. */
function isValid({ startedAtMs, observedMs }: StoredWindow, nowMs: number): boolean {
  return observedMs > 0 && observedMs <= windowMsMax && startedAtMs + liveWindowMs <= nowMs;
}

function joinInterval(intervals: Map<string, CaptureInterval>, window: StoredWindow): CaptureInterval {
  const { sensorId, capture, role, startedAtMs, observedMs, packets, kernelDropped, parserDropped } = window;
  const key = `${startedAtMs} ${sensorId} ${capture}`;
  const known = intervals.get(key);
  if (!known) {
    const made = { sensorId, capture, isUplink: role === 'uplink', startedAtMs, observedMs };
    const interval = { ...made, packets, kernelDropped, parserDropped };
    intervals.set(key, interval);
    return interval;
  }
  known.observedMs = Math.min(Math.max(liveWindowMs, observedMs), known.observedMs + observedMs);
  known.packets += packets;
  known.kernelDropped += kernelDropped;
  known.parserDropped += parserDropped;
  return known;
}

/** The end of the newest bucket that every capture has closed, or whose time to arrive has passed. */
function findSettled(intervals: readonly CaptureInterval[], nowMs: number): number {
  const endMs = Math.floor(nowMs / liveWindowMs) * liveWindowMs;
  if (nowMs - endMs >= settleMs) return endMs;
  const startMs = endMs - liveWindowMs;
  const newest = new Map<string, number>();
  for (const { sensorId, capture, startedAtMs } of intervals) {
    const key = `${sensorId} ${capture}`;
    newest.set(key, Math.max(newest.get(key) ?? 0, startedAtMs));
  }
  const expected = [...newest.values()].filter((ms) => ms >= startMs - expectedMs);
  return expected.every((ms) => ms >= startMs) ? endMs : startMs;
}

// A site's observations, read once for the batches that follow each other, and again before a later batch when the read is
// five seconds old (NET-4.4).

const freshMs = 5000;
/** Buckets of the last five minutes, and the longest window that may reach into the first. */
const lookBackMs = (liveBucketsMax * liveBucketSeconds + 60) * 1000;
/** Windows of one read: as many as the store keeps of a site by default (NET-8). */
const windowsMax = 20_000;

export interface SiteObservations {
  /** Null: the site has no windows. */
  windows: SiteWindows | null;
  nowMs: number;
}

export function createObservations({ live, clock }: { live: Pick<Live, 'listWindows'>; clock: Clock }) {
  const reads = new Map<number, { atMs: number; result: Promise<SiteObservations> }>();
  async function readNow(siteId: number, onLimited: () => void): Promise<SiteObservations> {
    const nowMs = clock.nowMs();
    const { windows, isLimited } = await live.listWindows(siteId, nowMs - lookBackMs, windowsMax);
    if (isLimited) onLimited();
    const indexed = indexWindows(windows, isLimited, nowMs);
    if (isLimited && !indexed) throw new OperationsError('source_limited');
    return { windows: indexed, nowMs };
  }
  return {
    /**
     * `onLimited` is called once for each read that reached a bound. Throws `operations.source_limited` where a bound was
     * reached before any window that can be used (NET-2.5.3).
     */
    read(siteId: number, onLimited: () => void): Promise<SiteObservations> {
      const known = reads.get(siteId);
      const atMs = clock.monotonicMs();
      if (known && atMs - known.atMs < freshMs) return known.result;
      const result = readNow(siteId, onLimited);
      reads.set(siteId, { atMs, result });
      result.catch(() => reads.delete(siteId));
      return result;
    },
    /** Forgets what was read: the next pass begins with observations of its own. */
    forget: () => reads.clear(),
  };
}
