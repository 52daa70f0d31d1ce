/**
 * Posts live windows to the monitor while they are recent, independent of minutes.
 *
 * Guarantees: nothing is posted unless the plan announces `live_version`. There is one request at a time. A failed
 * window is posted again together with newer ones until it is a minute old; then it is dropped and counted, because its
 * minute has the same bytes. The sensor's condition is included about twice a minute, and posted alone when nothing is
 * captured. Ages use monotonic time, so clock steps do not matter.
 */
import { randomUUID } from 'node:crypto';
import { statfsSync } from 'node:fs';
import type { Clock } from '#common/clock/index.ts';
import { describeError } from '#common/errors/index.ts';
import type { Part } from '#common/lifecycle/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { telemetryContentType } from '#contracts/sensor-api/http.ts';
import type { CaptureCondition, SensorCondition } from '#contracts/sensor-api/live.ts';
import {
  encodeLive,
  type LiveWindow,
  liveWindowMs,
  liveWindowsMax,
} from '#contracts/sensor-api/live-codec.ts';
import { compressUpload } from '#contracts/sensor-api/telemetry-codec.ts';
import { type MonitorAnswer, type MonitorClient, refusalMessage } from '#sensor/monitor-client/index.ts';
import type { SpoolStatus } from '#sensor/spool/index.ts';

/** Age since `offer` at which a window is dropped. */
const liveAgeMaxMs = 60_000;

interface WaitingWindow {
  window: LiveWindow;
  offeredAtMs: number;
}

class WindowQueue {
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  #waiting: readonly WaitingWindow[] = [];
  #dropped = 0;

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    this.#clock = clock;
  }

  get waiting(): readonly WaitingWindow[] {
    return this.#waiting;
  }

  /** How many windows were dropped unposted. */
  get dropped(): number {
    return this.#dropped;
  }

  offer(window: LiveWindow): void {
    this.#waiting = [...this.#waiting, { window, offeredAtMs: this.#clock.monotonicMs() }];
    this.dropAged();
  }

  dropAged(): void {
    const oldest = this.#clock.monotonicMs() - liveAgeMaxMs;
    const fresh = this.#waiting.filter(({ offeredAtMs }) => offeredAtMs > oldest).slice(-liveWindowsMax);
    this.#dropped += this.#waiting.length - fresh.length;
    this.#waiting = fresh;
  }

  /** These were posted, or refused for good and so dropped. */
  remove(settled: readonly WaitingWindow[], wasPosted: boolean): void {
    this.#waiting = this.#waiting.filter((one) => !settled.includes(one));
    if (!wasPosted) this.#dropped += settled.length;
  }

  clear(): void {
    this.#waiting = [];
  }
}

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
  condition(): SensorCondition | null;
}

export interface LiveStatus {
  isAnnounced: boolean;
  posted: number;
  dropped: number;
  waiting: number;
}

export class LiveUplink implements Part {
  readonly name = 'live uplink';
  readonly #options: LiveUplinkOptions;
  readonly #queue: WindowQueue;
  readonly #runId = randomUUID();
  readonly #stopping = new AbortController();
  #nap = new AbortController();
  #isAnnounced = false;
  #isFailing = false;
  #posted = 0;
  #conditionAtMs = Number.NEGATIVE_INFINITY;
  /** The last sent condition is out of date. */
  #isChanged = false;
  #running: Promise<void> = Promise.resolve();

  constructor(options: LiveUplinkOptions) {
    this.#options = options;
    this.#queue = new WindowQueue(options.clock);
  }

  /** Sets whether the monitor accepts live windows. */
  announce(takesLive: boolean): void {
    this.#isAnnounced = takesLive;
    if (!takesLive) this.#queue.clear();
  }

  /** Sends the condition without waiting for the next turn. */
  tellCondition(): void {
    this.#isChanged = true;
    this.#nap.abort();
  }

  /** Accepts a window without waiting. */
  offer(window: LiveWindow): void {
    if (!this.#isAnnounced) return;
    this.#queue.offer(window);
    this.#nap.abort();
  }

  status(): LiveStatus {
    const { waiting, dropped } = this.#queue;
    return { isAnnounced: this.#isAnnounced, posted: this.#posted, dropped, waiting: waiting.length };
  }

  async start(): Promise<void> {
    this.#running = this.#run();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { clock } = this.#options;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      if (this.#queue.waiting.length === 0 && !this.#nap.signal.aborted)
        await clock.wait(liveWindowMs, AbortSignal.any([this.#nap.signal, signal]));
      if (this.#nap.signal.aborted) this.#nap = new AbortController();
      await clock.wait(gatherMs, signal);
      this.#queue.dropAged();
      if ((this.#queue.waiting.length === 0 && !this.#isConditionDue()) || signal.aborted) continue;
      try {
        const restMs = await this.#post();
        if (restMs > 0) await clock.wait(restMs, signal);
      } catch (error) {
        if (signal.aborted) return;
        this.#noteFailure(describeError(error));
        await clock.wait(retryMs, signal);
      }
    }
  }

  /** Posts what waits. Returns how long to wait, 0 after a success. */
  async #post(): Promise<number> {
    const sent = this.#queue.waiting;
    const condition = this.#isConditionDue() ? this.#options.condition() : null;
    this.#isChanged = false;
    if (sent.length === 0 && !condition) return 0;
    const answer = await this.#send(sent, condition);
    const isPosted = answer.status === 200;
    const isFinal = isPosted || (answer.status >= 400 && answer.status < 500);
    if (!isFinal) throw new Error(refusalMessage(answer));
    this.#queue.remove(sent, isPosted);
    if (!isPosted) {
      this.#noteFailure(refusalMessage(answer));
      return deniedWaitMs;
    }
    if (condition) this.#conditionAtMs = this.#options.clock.monotonicMs();
    this.#posted += sent.length;
    if (this.#isFailing) this.#options.reporter.info('live windows reach the monitor again');
    this.#isFailing = false;
    return 0;
  }

  #send(sent: readonly WaitingWindow[], condition: SensorCondition | null): Promise<MonitorAnswer> {
    const { client, sensorVersion } = this.#options;
    const body = encodeLive({
      runId: this.#runId,
      sensorVersion,
      windows: sent.map(({ window }) => window),
      ...(condition ? { condition } : {}),
    });
    return client.request({
      method: 'POST',
      path: '/live',
      headers: { 'content-type': telemetryContentType, 'content-encoding': 'zstd' },
      body: compressUpload(body),
      timeoutMs: answerTimeoutMs,
      signal: this.#stopping.signal,
    });
  }

  #isConditionDue(): boolean {
    if (!this.#isAnnounced) return false;
    return this.#isChanged || this.#options.clock.monotonicMs() - this.#conditionAtMs >= conditionEveryMs;
  }

  #noteFailure(why: string): void {
    if (!this.#isFailing)
      this.#options.reporter.warn('live windows do not reach the monitor; minutes are not affected', { why });
    this.#isFailing = true;
  }
}

/** Free space of the host, or null when its file system does not report it. */
export function readCondition(
  directory: string,
  spool: Pick<SpoolStatus, 'pendingBytes' | 'pendingBytesMax' | 'pendingUploads'>,
  collection: {
    isPaused: boolean;
    captures: readonly (CaptureCondition & { whyNotKernel?: string | null })[];
  },
  nowMs: number,
): SensorCondition | null {
  try {
    const disk = statfsSync(directory);
    return {
      observedAtMs: nowMs,
      spoolPendingBytes: spool.pendingBytes,
      spoolBytesMax: spool.pendingBytesMax,
      spoolPendingUploads: spool.pendingUploads,
      diskFreeBytes: disk.bavail * disk.bsize,
      diskBytes: disk.blocks * disk.bsize,
      isPaused: collection.isPaused,
      captures: collection.captures.map(({ name, role, isListening, whyNotKernel }) => ({
        ...{ name, role, isListening },
        ...(whyNotKernel === undefined ? {} : { isCountedInKernel: whyNotKernel === null }),
      })),
    };
  } catch {
    return null;
  }
}
