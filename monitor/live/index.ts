/**
 * Live windows: what sensors saw in the last ten seconds, kept for a short while.
 *
 * Promises: a window counts once, however often it arrives; a site holds no window older than `historySeconds` and no
 * more than `historyMax`, the newest, at any moment that somebody can look; nothing is evicted besides: a store without
 * room refuses by name, and the sensor comes again. What a crash loses is lost. Nothing here touches minutes.
 * What no link carries is left out and counted; a sensor speaks for its own node's servers, as in minutes.
 */
import { systemClock } from '#common/clock/index.ts';
import { CodedError } from '#common/errors/index.ts';
import type { Part } from '#common/lifecycle/index.ts';
import { aheadSecondsMax, type LiveReceipt } from '#contracts/sensor-api/http.ts';
import type { SensorCondition } from '#contracts/sensor-api/live.ts';
import { createIntake, type Intake } from '#monitor/intake/index.ts';
import type { ForeignCheck, Spoken } from '#monitor/placements/index.ts';
import type { EnrolledSensor } from '#monitor/sensors/index.ts';
import { withoutForeign } from './foreign-hosts.ts';
import type { LiveRate, LiveStore, WindowList } from './live-store.ts';
import { createSiteReader } from './read-site.ts';
import type { SiteLive } from './sum-windows.ts';

export type { LiveBounds, LiveRate, LiveStore, StoredWindow } from './live-store.ts';
export { createPostgresStore } from './postgres-store.ts';
export { createRedisStore } from './redis-store.ts';
export type { LiveAddress, LiveCapture, LivePoint, SiteLive } from './sum-windows.ts';

export interface LiveDeps {
  store: LiveStore;
  /** Reads uploads; one of its own when absent. */
  intake?: Intake;
  /** Keeps what a sensor told of itself along with its windows. */
  noteCondition?: (sensorId: number, condition: SensorCondition) => Promise<void>;
  /** Keeps how many rows of a sensor's windows were left out, because no link carries them. */
  noteSetAside?: (sensorId: number, rows: number) => Promise<void>;
  /** Says which addresses other nodes' servers have; what a sensor tells of those is left out. */
  checkAddresses?: (spoken: readonly Spoken[]) => Promise<ForeignCheck>;
  /** Wall time, for tests. */
  nowMs?: () => number;
}

export interface Live {
  /**
   * Stores the windows of a live upload. Throws `telemetry.…` as the inbox does for what is no upload or lies ahead, and `live.store_…`
   * where the store takes nothing at the moment.
   */
  receive(sensor: EnrolledSensor, body: Uint8Array, encoding: string | undefined): Promise<LiveReceipt>;
  /** A site's windows that began at or after this, newest first, with their hosts; bounded (NET-2.5.3). */
  listWindows(siteId: number, sinceMs: number, limit: number): Promise<WindowList>;
  /** A site's traffic after selection: each address and window at its one strongest capture; of one address alone with it. */
  readSite(siteId: number, sinceMs: number, nowMs: number, address?: string): Promise<SiteLive>;
  /** The newest window of each capture of the site. */
  listRates(siteId: number): Promise<LiveRate[]>;
  /** Forgets what is over age at every site; returns how many windows. */
  prune(): Promise<number>;
  /** What keeps the store from its work, as a sentence; null when all is well. */
  findProblem(): Promise<string | null>;
  /** The connection to the store. */
  readonly part: Part;
}

/** Host rows of one read (NET-8: live source limit). */
const hostRowsMax = 100_000;

export function createLive(deps: LiveDeps): Live {
  const { store } = deps;
  const intake = deps.intake ?? createIntake({ clock: systemClock });
  const listWindows = (siteId: number, sinceMs: number, limit: number) =>
    store.list({ siteId, sinceMs, limit, hostsMax: hostRowsMax });
  return {
    async receive(sensor, body, encoding) {
      const { upload, setAside } = await intake.readLive(sensor.id, body, encoding);
      // First: a store that is full must not keep a sensor from saying that it is full itself.
      if (upload.condition) await deps.noteCondition?.(sensor.id, upload.condition);
      const latestMs = (deps.nowMs ?? Date.now)() + aheadSecondsMax * 1000;
      if (upload.windows.some((window) => window.startedAtMs > latestMs))
        throw new CodedError(
          'telemetry.clock_ahead',
          'live windows lie in the future; set the clock of this host',
        );
      if (setAside.rows > 0) await deps.noteSetAside?.(sensor.id, setAside.rows);
      const windows = await withoutForeign(deps.checkAddresses, sensor.id, upload.windows);
      return store.add(sensor, upload.runId, windows);
    },
    listWindows,
    readSite: createSiteReader(listWindows),
    listRates: (siteId) => store.listRates(siteId),
    prune: () => store.prune(),
    findProblem: () => store.findProblem(),
    part: { name: 'live store', start: () => store.start(), stop: () => store.stop() },
  };
}
