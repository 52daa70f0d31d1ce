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
import { type LiveWindow, liveWindowMs, type SensorCondition } from '#contracts/sensor-api/live.ts';
import { createIntake, type Intake } from '#monitor/intake/index.ts';
import type { ForeignCheck, Spoken } from '#monitor/placements/index.ts';
import { type EnrolledSensor, type PlanSection, versionSection } from '#monitor/sensors/index.ts';
import type { LiveStore, StoredWindow, WindowList } from './live-store.ts';
import { type SiteLive, sumWindows } from './sum-windows.ts';

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

/** Dependencies of live windows. */
interface LiveDeps {
  store: LiveStore;
  /** Reads uploads; a separate one by default. */
  intake?: Intake;
  /** Stores the condition that a sensor reports with its windows. */
  noteCondition?: (sensorId: number, condition: SensorCondition) => Promise<void>;
  /** Counts rows that were left out of a sensor's windows because they are impossible. */
  noteSetAside?: (sensorId: number, rows: number) => Promise<void>;
  /** Checks which addresses belong to servers of other nodes; reports about those are left out. */
  checkAddresses?: (spoken: readonly Spoken[]) => Promise<ForeignCheck>;
  /** Wall time, for tests. */
  nowMs?: () => number;
}

const minuteMs = 60_000;

/**
 * Windows without addresses of servers on other nodes. They are not stored: windows are kept for a short time only, and
 * the minute's own counters keep the report, marked as foreign.
 */
async function withoutForeign(
  checkAddresses: LiveDeps['checkAddresses'],
  sensorId: number,
  windows: readonly LiveWindow[],
): Promise<readonly LiveWindow[]> {
  const subjects = new Set(windows.flatMap((window) => window.hosts.map((host) => host.address)));
  if (!checkAddresses || subjects.size === 0) return windows;
  const isForeign = await checkAddresses([...subjects].map((subject) => ({ sensorId, subject })));
  return windows.map((window) => {
    const minute = Math.floor(window.startedAtMs / minuteMs) * 60;
    const hosts = window.hosts.filter((host) => !isForeign(sensorId, host.address, minute));
    return hosts.length === window.hosts.length ? window : { ...window, hosts };
  });
}

/** Sensors may send live windows (NET-9.1). */
export const liveSection: PlanSection = versionSection('live', { live_version: 1 });

/** Sensors post a window within a few seconds of its end; earlier it would lack some captures. */
const settleMs = 4_000;
/** A result of this age is shared by all readers (NET-4.4). */
const freshMs = 5_000;
const windowsMax = 20_000;

/** Reads sites, each at most once in five seconds for any number of readers. */
function createSiteReader(
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
