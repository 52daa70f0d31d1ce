/**
 * The store of live windows. There are two engines with the same behaviour, checked by `testing/conformance.ts`. A
 * store never evicts: without room it refuses with an error.
 */
import type { LiveReceipt } from '#contracts/sensor-api/http.ts';
import type { LiveHost, LiveWindow } from '#contracts/sensor-api/live.ts';

export interface LiveBounds {
  /** Maximum age of windows, also for sites without sensors (NET-8, `SVC_LIVE_HISTORY_SECONDS`). */
  historySeconds: number;
  /** Maximum number of windows of a site, the newest (NET-8, `SVC_LIVE_HISTORY_MAXLEN`). */
  historyMax: number;
  /** The time in milliseconds, for tests; by default the store's own clock. */
  now?: () => number;
}

export interface StoredWindow {
  sensorId: number;
  capture: string;
  role: 'uplink' | 'bridge';
  startedAtMs: number;
  observedMs: number;
  packets: number;
  ipBytes: number;
  parserDropped: number;
  kernelDropped: number;
  hosts: LiveHost[];
  hostsLeftOut: number;
}

/** Newest values of a capture. */
export type LiveRate = Omit<StoredWindow, 'role' | 'hosts' | 'hostsLeftOut'>;

export interface WindowRange {
  siteId: number;
  /** Windows that began at or after this time. */
  sinceMs: number;
  /**
   * Maximum number of windows, of host rows in all of them, and of decoded bytes (`decodedBytes`); the first window is
   * returned in any case.
   */
  limit: number;
  hostsMax: number;
  bytesMax: number;
}

/** Memory of a decoded window, and of each host row in it, from above: texts in both are short. */
export const decodedBytes = { window: 512, host: 160 } as const;

export interface WindowList {
  /** Newest first; of windows with the same start, the last stored first. */
  windows: StoredWindow[];
  /** A limit cut the result. */
  isLimited: boolean;
  /** The site's history is full, so older windows of this range may have been deleted. */
  isTrimmed: boolean;
}

export interface LiveStore {
  /**
   * Stores windows and enforces the site's limits in one step, so that no reader sees more. Throws `live.store_full`,
   * `live.store_unavailable`, `live.store_evicts`; then no window was stored.
   */
  add(
    sensor: { id: number; siteId: number },
    runId: string,
    windows: readonly LiveWindow[],
  ): Promise<LiveReceipt>;
  list(range: WindowRange): Promise<WindowList>;
  /** The newest window of each capture of the site, by sensor and capture. */
  listRates(siteId: number): Promise<LiveRate[]>;
  /** Deletes expired windows of every site. Returns their number. */
  prune(): Promise<number>;
  /** The store's present problem, as a sentence for the operator; null without one. */
  findProblem(): Promise<string | null>;
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** Windows of a clock that is further ahead would stay the newest for too long. */
export const aheadMs = 60_000;
/** A capture without a newer window has no rate. */
export const rateSeconds = 120;

/** The rate in a window. */
export function rateOf(window: Omit<StoredWindow, 'hosts'>): LiveRate {
  const { sensorId, capture, startedAtMs, observedMs, ipBytes, packets, parserDropped, kernelDropped } =
    window;
  return { sensorId, capture, startedAtMs, observedMs, ipBytes, packets, parserDropped, kernelDropped };
}

/** True while the window is within the retention time. */
export function isKept(startedAtMs: number, nowMs: number, historySeconds: number): boolean {
  const ageMs = nowMs - startedAtMs;
  return ageMs < historySeconds * 1000 && ageMs >= -aheadMs;
}
