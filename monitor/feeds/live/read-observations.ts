/**
 * A site's observations, read once for the batches that follow each other, and again before a later batch when the read is
 * five seconds old (NET-4.4).
 */
import type { Clock } from '#common/clock/index.ts';
import { liveBucketSeconds, liveBucketsMax } from '#contracts/admin-api/live.ts';
import type { Live } from '#monitor/live/index.ts';
import { OperationsError } from '#monitor/operations-client/index.ts';
import { indexWindows, type SiteWindows } from './index-windows.ts';

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
