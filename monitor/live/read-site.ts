import { liveWindowMs } from '#contracts/sensor-api/live.ts';
import type { WindowList } from './live-store.ts';
import { type SiteLive, sumWindows } from './sum-windows.ts';

/** Sensors post a window within a few seconds of its end; earlier it would lack some captures. */
const settleMs = 4_000;
/** A result of this age is shared by all readers (NET-4.4). */
const freshMs = 5_000;
const windowsMax = 20_000;

/** Reads sites, each at most once in five seconds for any number of readers. */
export function createSiteReader(
  listWindows: (
    siteId: number,
    sinceMs: number,
    limit: number,
  ) => Promise<Pick<WindowList, 'windows' | 'isLimited'>>,
) {
  const reads = new Map<string, { atMs: number; result: Promise<SiteLive> }>();
  return (siteId: number, sinceMs: number, nowMs: number, address?: string): Promise<SiteLive> => {
    for (const [key, read] of reads) if (Math.abs(nowMs - read.atMs) >= freshMs) reads.delete(key);
    const key = `${siteId} ${sinceMs} ${address ?? ''}`;
    const known = reads.get(key);
    if (known) return known.result;
    const settledMs = nowMs - liveWindowMs - settleMs;
    const result = listWindows(siteId, sinceMs, windowsMax).then(({ windows, isLimited }) =>
      sumWindows(
        windows
          .filter((window) => window.startedAtMs <= settledMs)
          .map((window) =>
            address === undefined
              ? window
              : { ...window, hosts: window.hosts.filter((host) => host.address === address) },
          ),
        isLimited,
      ),
    );
    reads.set(key, { atMs: nowMs, result });
    result.catch(() => reads.delete(key));
    return result;
  };
}
