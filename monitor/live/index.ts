/**
 * Live windows: what sensors saw in the last ten seconds, kept for a short while.
 *
 * Promises: a window counts once, however often it arrives; a site holds no window older than `historySeconds` and no
 * more than `historyMax`, the newest, at any moment that somebody can look; what a crash loses is lost. Nothing here
 * touches minutes.
 */
import type { LiveReceipt } from '#contracts/sensor-api/http.ts';
import type { SensorCondition } from '#contracts/sensor-api/live.ts';
import type { EnrolledSensor } from '#monitor/sensors/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { receiveWindows } from './receive-windows.ts';
import * as store from './store.ts';

export type { LiveRate, StoredWindow } from './store.ts';

export interface LiveDeps {
  db: () => Queryable;
  /** Age limit, also of sites that sensors left (NET-8, `SVC_LIVE_HISTORY_SECONDS`). */
  historySeconds: number;
  /** Windows of one site (NET-8, `SVC_LIVE_HISTORY_MAXLEN`). */
  historyMax: number;
  /** Keeps what a sensor told of itself along with its windows. */
  noteCondition?: (sensorId: number, condition: SensorCondition) => Promise<void>;
}

export interface Live {
  /** Stores the windows of a live upload. Throws `telemetry.…` as the inbox does for what is no upload. */
  receive(sensor: EnrolledSensor, body: Uint8Array, encoding: string | undefined): Promise<LiveReceipt>;
  /** A site's windows that began at or after this, newest first, with their hosts. */
  listWindows(siteId: number, sinceMs: number, limit: number): Promise<store.StoredWindow[]>;
  /** The newest window of each capture of the site. */
  listRates(siteId: number): Promise<store.LiveRate[]>;
  /** Forgets what is over age at every site; returns how many windows. */
  prune(): Promise<number>;
}

export function createLive(deps: LiveDeps): Live {
  const { db, historySeconds, historyMax } = deps;
  return {
    receive: (sensor, body, encoding) => receiveWindows(deps, sensor, body, encoding),
    listWindows: (siteId, sinceMs, limit) =>
      store.listWindows(db(), { siteId, sinceMs, historySeconds, limit: Math.min(limit, historyMax) }),
    listRates: (siteId) => store.listRates(db(), siteId, historySeconds),
    prune: () => store.deleteAged(db(), null, historySeconds),
  };
}
