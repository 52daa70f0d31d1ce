/**
 * Carries the spool to the monitor: oldest first, one upload at a time, until each has its receipt on disk.
 *
 * Promises: an upload leaves the spool only on a receipt that names it, or on a refusal that says never to send it
 * again; then a gap takes its place. Everything else is tried again without end. The same upload always carries the
 * same number, so the monitor can tell a repetition from a new one. What a wrong clock
 * stamped waits until the clock is set, and is stamped again then. A monitor that does not know Zstandard gets gzip.
 */
import { type Clock, systemClock } from '#common/clock/index.ts';
import { describeError } from '#common/errors/index.ts';
import type { Part } from '#common/lifecycle/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { backoffMs } from '#common/retry/index.ts';
import { type UploadEncoding, uploadEncodings } from '#contracts/sensor-api/telemetry-codec.ts';
import type { MonitorClient } from '#sensor/monitor-client/index.ts';
import type { PendingUpload, Spool } from '#sensor/spool/index.ts';
import { type Outcome, sendUpload } from './send-upload.ts';
import { createTimeCheck, type UplinkTime } from './time-check.ts';

export type { UplinkTime } from './time-check.ts';

/** A receipt may take the monitor a while (NET-8). */
const answerTimeoutMs = 45_000;
const backoff = { firstMs: 1000, maxMs: 60_000 };
/** Wait before a denied credential is tried again; an operator must fix it. */
const deniedWaitMs = 120_000;
const idleWaitMs = 60_000;
/** How soon the clock is looked at again while it is wrong. */
const heldWaitMs = 10_000;
/** How long a request in flight may go on when the sensor stops. */
const stopGraceMs = 2000;

export interface UplinkOptions {
  spool: Spool;
  /** Carries the sensor's credential. */
  client: MonitorClient;
  reporter: Reporter;
  clock?: Clock;
  /** This host's clocks and what is known of the monitor's; without them nothing is held back or stamped again. */
  time?: UplinkTime;
  random?: () => number;
}

export interface Uplink extends Part {
  /** Says that the spool has something new. */
  wake(): void;
}

/** Makes an uplink; it sends nothing before `start`. */
export function createUplink(options: UplinkOptions): Uplink {
  const { spool, reporter } = options;
  const clock = options.clock ?? systemClock;
  const stopping = new AbortController();
  const inFlight = new AbortController();
  /** Uploads that were sent at least once since the start. */
  const attempted = new Set<string>();
  let rest = new AbortController();
  let isSending = false;
  let failures = 0;
  let encoding: UploadEncoding = uploadEncodings[0];
  let running: Promise<void> = Promise.resolve();
  const times = options.time ? createTimeCheck({ ...options.time, spool, reporter, clock }) : null;

  async function pause(ms: number, untilWoken: boolean): Promise<void> {
    const signals = untilWoken ? [rest.signal, stopping.signal] : [stopping.signal];
    await clock.wait(ms, AbortSignal.any(signals));
    if (rest.signal.aborted) rest = new AbortController();
  }

  /** What waits, and how long the spool can go on like this. */
  function backlog(): Record<string, number> {
    const { pendingUploads, roomMinutes } = spool.status();
    return {
      pending: pendingUploads,
      ...(roomMinutes === null ? {} : { room_hours: Math.round(roomMinutes / 6) / 10 }),
    };
  }

  /** Deals with one answer. Returns how long to rest before the next upload. */
  function settle(upload: PendingUpload, outcome: Outcome): number {
    const fields = { sequence: upload.sequence };
    const key = `${upload.spoolId} ${upload.sequence}`;
    const wasAttempted = attempted.has(key);
    attempted.add(key);
    switch (outcome.kind) {
      case 'stored':
        if (failures > 0) reporter.info('the monitor takes uploads again', fields);
        failures = 0;
        if (outcome.receipt === 'duplicate' && upload.isNew && !wasAttempted) {
          // It was never sent before, so its number belongs to another upload, from another copy of this spool.
          reporter.warn('the spool is an old copy and takes new numbers', fields);
          spool.renumber(upload);
          return 0;
        }
        spool.acknowledge(upload, outcome.receipt);
        attempted.delete(key);
        reporter.debug('upload receipted', { ...fields, receipt: outcome.receipt });
        if (outcome.setAside > 0)
          reporter.warn('rows of an upload could not be true and were left out', {
            ...fields,
            rows: outcome.setAside,
          });
        return 0;
      case 'refused': {
        failures = 0;
        const gaps = spool.refuse(upload);
        attempted.delete(key);
        const phrase =
          gaps.length > 0 ? 'upload refused, a gap takes its place' : 'gap record refused and given up';
        reporter.error(phrase, { ...fields, why: outcome.message });
        return 0;
      }
      case 'out_of_time': {
        // Nothing of it was stored, so another number is no second copy.
        attempted.delete(key);
        if (times?.stampAgain(upload)) return 0;
        if (outcome.isAhead || times?.isWrong()) {
          failures += 1;
          reporter.warn('the monitor does not take this time; the upload waits for the clock to be set', {
            ...fields,
            why: outcome.message,
            ...backlog(),
          });
          return Math.max(backoffMs(backoff, failures, options.random), heldWaitMs);
        }
        return settle(upload, { kind: 'refused', message: outcome.message });
      }
      case 'denied':
        failures += 1;
        reporter.error("the monitor does not accept this sensor's credential; uploads wait", {
          ...fields,
          why: outcome.message,
          ...backlog(),
        });
        return deniedWaitMs;
      case 'encoding_unsupported': {
        const next = uploadEncodings[uploadEncodings.indexOf(encoding) + 1];
        reporter.warn('the monitor does not understand this encoding', { encoding, why: outcome.message });
        // After the last one the first is tried again, later: a monitor that takes none of them is in trouble.
        encoding = next ?? uploadEncodings[0];
        if (next) return 0;
        failures += 1;
        return backoffMs(backoff, failures, options.random);
      }
      case 'trouble': {
        failures += 1;
        // The first failure and then ever fewer: a day without the monitor must not fill the log.
        if (Number.isInteger(Math.log2(failures))) {
          const why = outcome.message;
          reporter.warn('upload failed, trying again', { ...fields, why, failures, ...backlog() });
        }
        return Math.max(backoffMs(backoff, failures, options.random), outcome.waitMs);
      }
    }
  }

  async function step(): Promise<void> {
    const upload = spool.oldest();
    if (!upload) return pause(idleWaitMs, true);
    const { client } = options;
    const isUncertain = upload.mayBeSent || attempted.has(`${upload.spoolId} ${upload.sequence}`);
    const check = await times?.check(upload, isUncertain);
    if (check === 'again') return;
    if (check === 'hold') return pause(heldWaitMs, false);
    if (spool.settle(upload)) return;
    const signal = inFlight.signal;
    isSending = true;
    const deps = { client, encoding, timeoutMs: answerTimeoutMs, signal };
    const outcome = await sendUpload(deps, upload);
    isSending = false;
    if (signal.aborted) return;
    const waitMs = settle(upload, outcome);
    if (waitMs > 0) await pause(waitMs, false);
  }

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      try {
        await step();
      } catch (error) {
        reporter.error('the spool does not answer, uploads wait', { why: describeError(error) });
        await pause(backoff.firstMs * 5, false);
      }
    }
  }

  return {
    name: 'uplink',
    async start() {
      running = run();
    },
    async stop() {
      stopping.abort();
      const grace = new AbortController();
      await Promise.race([running, clock.wait(isSending ? stopGraceMs : 0, grace.signal)]);
      grace.abort();
      inFlight.abort();
      await running;
    },
    wake() {
      rest.abort();
    },
  };
}
