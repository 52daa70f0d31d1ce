/**
 * Live windows: the traffic of the last minutes in steps of ten seconds.
 *
 * Guarantees: a window counts once, even if it arrives repeatedly. A site has no window older than `historySeconds` and
 * at most `historyMax`, the newest. Nothing else is evicted: a full store refuses windows with an error, and the sensor
 * retries. A crash may lose windows. Minutes are not affected. Impossible rows are left out and counted; a sensor
 * reports only for servers of its own node, as in minutes.
 */
import { systemClock } from '#common/clock/index.ts';
import { CodedError } from '#common/errors/index.ts';
import type { Part } from '#common/lifecycle/index.ts';
import { aheadSecondsMax, type LiveReceipt } from '#contracts/sensor-api/http.ts';
import { liveWindowMs } from '#contracts/sensor-api/live.ts';
import { createIntake } from '#monitor/intake/index.ts';
import type { EnrolledSensor } from '#monitor/sensors/index.ts';
import type { LiveDeps } from './deps.ts';
import { withoutForeign } from './foreign-hosts.ts';
import type { LiveStore, StoredWindow } from './live-store.ts';
import { createSiteReader } from './read-site.ts';

export { liveSection } from './live-section.ts';
export type { LiveRate, LiveStore, StoredWindow } from './live-store.ts';
export { createPostgresStore } from './postgres-store.ts';
export { createRedisStore } from './redis-store.ts';
export type { LiveAddress, LiveCapture, SiteLive } from './sum-windows.ts';

export type Live = ReturnType<typeof createLive>;

/** Maximum host rows of one read (NET-8: live source limit). */
const hostRowsMax = 100_000;
/** Maximum bytes of one read, decoded (NET-2.5.3). */
const readBytesMax = 16 * 1024 * 1024;

const bucketOf = ({ startedAtMs }: StoredWindow) => Math.floor(startedAtMs / liveWindowMs);

/** Reads windows alone, for features that are made before reception. */
export function createWindowReader(store: Pick<LiveStore, 'list'>) {
  return {
    /**
     * A site's windows that began at or after this time, newest first, with their hosts; limited (NET-2.5.3). Of a bucket of ten
     * seconds there are all captures' windows or none: a part of them would read as a lower rate.
     */
    async listWindows(
      siteId: number,
      sinceMs: number,
      limit: number,
    ): Promise<{ windows: StoredWindow[]; isLimited: boolean }> {
      const range = { siteId, sinceMs, limit, hostsMax: hostRowsMax, bytesMax: readBytesMax };
      const { windows, isLimited, isTrimmed } = await store.list(range);
      if (!isLimited && !isTrimmed) return { windows, isLimited };
      // The cut is within the bucket of the oldest window, or at its beginning.
      const cut = bucketOf(windows.at(-1)!);
      return { windows: windows.filter((one) => bucketOf(one) > cut), isLimited };
    },
  };
}

export function createLive(deps: LiveDeps) {
  const { store } = deps;
  const intake = deps.intake ?? createIntake({ clock: systemClock });
  const { listWindows } = createWindowReader(store);
  return {
    /**
     * Stores the windows of a live upload. Throws `telemetry.…` like the inbox for an invalid or future upload, and
     * `live.store_…` while the store accepts nothing.
     */
    async receive(
      sensor: EnrolledSensor,
      body: Uint8Array,
      encoding: string | undefined,
    ): Promise<LiveReceipt> {
      const { upload, setAside } = await intake.readLive(sensor.id, body, encoding);
      // First, because a full store must not prevent a sensor from reporting that its own disk is full.
      if (upload.condition) await deps.noteCondition?.(sensor.id, upload.condition);
      const latestMs = (deps.nowMs ?? Date.now)() + aheadSecondsMax * 1000;
      if (upload.windows.some((window) => window.startedAtMs > latestMs))
        throw new CodedError(
          'telemetry.clock_ahead',
          'live windows are in the future; set the clock of this host',
        );
      if (setAside.rows > 0) await deps.noteSetAside?.(sensor.id, setAside.rows);
      const windows = await withoutForeign(deps.checkAddresses, sensor.id, upload.windows);
      return store.add(sensor, upload.runId, windows);
    },
    listWindows,
    /**
     * A site's traffic after selection: each address and window from its strongest capture; optionally of one address
     * only.
     */
    readSite: createSiteReader(listWindows),
    /** The newest window of each capture of the site. */
    listRates: (siteId: number) => store.listRates(siteId),
    /** Deletes expired windows of every site. Returns their number. */
    prune: () => store.prune(),
    /** The store's present problem, as a sentence; null without one. */
    findProblem: () => store.findProblem(),
    /** The connection to the store. */
    part: { name: 'live store', start: () => store.start(), stop: () => store.stop() } satisfies Part,
  };
}
