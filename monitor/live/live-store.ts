/**
 * Where live windows lie for their short while. Two engines, one behaviour: `testing/conformance.ts` is what both answer
 * alike. A store evicts nothing by itself: what it has no room for it refuses, by name.
 */
import type { LiveReceipt } from '#contracts/sensor-api/http.ts';
import type { LiveHost, LiveWindow } from '#contracts/sensor-api/live.ts';

export interface LiveBounds {
  /** Age limit, also of sites that sensors left (NET-8, `SVC_LIVE_HISTORY_SECONDS`). */
  historySeconds: number;
  /** Windows of one site, the newest (NET-8, `SVC_LIVE_HISTORY_MAXLEN`). */
  historyMax: number;
  /** The time in milliseconds, for tests; default: the store's own clock. */
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

/** What a capture said last. */
export interface LiveRate {
  sensorId: number;
  capture: string;
  startedAtMs: number;
  observedMs: number;
  ipBytes: number;
  packets: number;
  parserDropped: number;
  kernelDropped: number;
}

export interface WindowRange {
  siteId: number;
  /** Windows that began at or after this. */
  sinceMs: number;
  /** Most windows, and most host rows in them all; the first window comes whatever it holds. */
  limit: number;
  hostsMax: number;
}

export interface WindowList {
  /** Newest first; of those that began together, the last stored first. */
  windows: StoredWindow[];
  /** There are more in the range than a limit let through. */
  isLimited: boolean;
}

export interface LiveStore {
  /**
   * Stores windows and keeps the site's bounds, at once: nobody ever sees more than may be held. Throws
   * `live.store_full`, `live.store_unavailable`, `live.store_evicts`; then none of the windows was stored.
   */
  add(
    sensor: { id: number; siteId: number },
    runId: string,
    windows: readonly LiveWindow[],
  ): Promise<LiveReceipt>;
  list(range: WindowRange): Promise<WindowList>;
  /** The newest window of each capture of the site, by sensor and capture. */
  listRates(siteId: number): Promise<LiveRate[]>;
  /** Forgets what is over age at every site; returns how many windows. */
  prune(): Promise<number>;
  /** What keeps it from doing its work, as a sentence for the operator; null when all is well. */
  findProblem(): Promise<string | null>;
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** A clock that runs ahead further than this would pin its windows at the newest end. */
export const aheadMs = 60_000;
/** A capture that said nothing for so long has no rate. */
export const rateSeconds = 120;

/** What a window says of its capture. */
export function rateOf(window: Omit<StoredWindow, 'hosts'>): LiveRate {
  const { sensorId, capture, startedAtMs, observedMs, ipBytes, packets, parserDropped, kernelDropped } =
    window;
  return { sensorId, capture, startedAtMs, observedMs, ipBytes, packets, parserDropped, kernelDropped };
}

/** Whether a window lies in the time that is kept. */
export function isKept(startedAtMs: number, nowMs: number, historySeconds: number): boolean {
  const ageMs = nowMs - startedAtMs;
  return ageMs < historySeconds * 1000 && ageMs >= -aheadMs;
}
