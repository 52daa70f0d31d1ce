/**
 * Posts live windows to the monitor while they are recent, independent of minutes.
 *
 * Guarantees: nothing is posted unless the plan announces `live_version`. There is one request at a time. A failed
 * window is posted again together with newer ones until it is a minute old; then it is dropped and counted, because its
 * minute has the same bytes. The sensor's condition is included about twice a minute, and posted alone when nothing is
 * captured. Ages use monotonic time, so clock steps do not matter.
 */
import { randomUUID } from 'node:crypto';
import type { Clock } from '#common/clock/index.ts';
import { describeError } from '#common/errors/index.ts';
import type { Part } from '#common/lifecycle/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { telemetryContentType } from '#contracts/sensor-api/http.ts';
import {
  encodeLive,
  type LiveWindow,
  liveWindowMs,
  liveWindowsMax,
  type SensorCondition,
} from '#contracts/sensor-api/live-codec.ts';
import { compressUpload } from '#contracts/sensor-api/telemetry-codec.ts';
import { type MonitorClient, refusalMessage } from '#sensor/monitor-client/index.ts';

export { readCondition } from './read-condition.ts';

/** Age since `offer` at which a window is dropped. */
export const liveAgeMaxMs = 60_000;
const answerTimeoutMs = 8000;
/** The windows of several captures close within this time and are posted together. */
const gatherMs = 300;
const retryMs = 5000;
const conditionEveryMs = 30_000;
/** Wait after a 401, 403 or 404. */
const deniedWaitMs = 60_000;

export interface LiveUplinkOptions {
  /** Sends the sensor's credential. */
  client: MonitorClient;
  sensorVersion: string;
  clock: Clock;
  reporter: Reporter;
  /** The sensor's present condition, sent about twice a minute. Null when unknown. */
  condition?(): SensorCondition | null;
}

export interface LiveStatus {
  isAnnounced: boolean;
  posted: number;
  dropped: number;
  waiting: number;
}

export interface LiveUplink extends Part {
  /** Sets whether the monitor accepts live windows. */
  announce(takesLive: boolean): void;
  /** Sends the condition without waiting for the next turn. */
  tellCondition(): void;
  /** Accepts a window without waiting. */
  offer(window: LiveWindow): void;
  status(): LiveStatus;
}

/** Creates the uplink; it sends nothing before `start`. */
export function createLiveUplink(options: LiveUplinkOptions): LiveUplink {
  const { client, clock, reporter } = options;
  const runId = randomUUID();
  const stopping = new AbortController();
  let nap = new AbortController();
  let queue: { window: LiveWindow; offeredAtMs: number }[] = [];
  let isAnnounced = false;
  let isFailing = false;
  let posted = 0;
  let dropped = 0;
  let conditionAtMs = Number.NEGATIVE_INFINITY;
  /** The last sent condition is out of date. */
  let isChanged = false;
  let running: Promise<void> = Promise.resolve();

  function dropAged(): void {
    const oldest = clock.monotonicMs() - liveAgeMaxMs;
    const fresh = queue.filter(({ offeredAtMs }) => offeredAtMs > oldest).slice(-liveWindowsMax);
    dropped += queue.length - fresh.length;
    queue = fresh;
  }

  const isConditionDue = () =>
    isAnnounced &&
    options.condition !== undefined &&
    (isChanged || clock.monotonicMs() - conditionAtMs >= conditionEveryMs);

  /** Returns how long to wait, 0 after a success. */
  async function post(): Promise<number> {
    const sent = new Set(queue);
    const windows = queue.map(({ window }) => window);
    const condition = isConditionDue() ? options.condition?.() : null;
    isChanged = false;
    if (windows.length === 0 && !condition) return 0;
    const body = encodeLive({
      runId,
      sensorVersion: options.sensorVersion,
      windows,
      ...(condition ? { condition } : {}),
    });
    const answer = await client.request({
      method: 'POST',
      path: '/live',
      headers: { 'content-type': telemetryContentType, 'content-encoding': 'zstd' },
      body: compressUpload(body),
      timeoutMs: answerTimeoutMs,
      signal: stopping.signal,
    });
    const isFinal = answer.status === 200 || (answer.status >= 400 && answer.status < 500);
    if (!isFinal) throw new Error(refusalMessage(answer));
    queue = queue.filter((one) => !sent.has(one));
    if (answer.status === 200) {
      if (condition) conditionAtMs = clock.monotonicMs();
      posted += windows.length;
      if (isFailing) reporter.info('live windows reach the monitor again');
      isFailing = false;
      return 0;
    }
    dropped += windows.length;
    note(refusalMessage(answer));
    return deniedWaitMs;
  }

  function note(why: string): void {
    if (!isFailing) reporter.warn('live windows do not reach the monitor; minutes are not affected', { why });
    isFailing = true;
  }

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      if (queue.length === 0 && !nap.signal.aborted)
        await clock.wait(liveWindowMs, AbortSignal.any([nap.signal, stopping.signal]));
      if (nap.signal.aborted) nap = new AbortController();
      await clock.wait(gatherMs, stopping.signal);
      dropAged();
      if ((queue.length === 0 && !isConditionDue()) || stopping.signal.aborted) continue;
      try {
        const restMs = await post();
        if (restMs > 0) await clock.wait(restMs, stopping.signal);
      } catch (error) {
        if (stopping.signal.aborted) return;
        note(describeError(error));
        await clock.wait(retryMs, stopping.signal);
      }
    }
  }

  return {
    name: 'live uplink',
    announce(takesLive) {
      isAnnounced = takesLive;
      if (!takesLive) queue = [];
    },
    tellCondition() {
      isChanged = true;
      nap.abort();
    },
    offer(window) {
      if (!isAnnounced) return;
      queue.push({ window, offeredAtMs: clock.monotonicMs() });
      dropAged();
      nap.abort();
    },
    status: () => ({ isAnnounced, posted, dropped, waiting: queue.length }),
    async start() {
      running = run();
    },
    async stop() {
      stopping.abort();
      await running;
    },
  };
}
