/**
 * Carries the spool to the monitor: oldest first, one upload at a time, until each has its receipt on disk.
 *
 * Promises: an upload leaves the spool only on a receipt that names it, or on a refusal that says never to send it
 * again; then a gap takes its place. Everything else is tried again without end. The same upload always carries the
 * same number, so the monitor can tell a repetition from a new one. What a wrong clock
 * stamped waits until the clock is set, and is stamped again then. Incidents go first, to a monitor that takes them. A monitor that does not know Zstandard gets gzip.
 */
import { type Clock, systemClock } from '#common/clock/index.ts';
import { describeError } from '#common/errors/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import type { MonitorClient } from '#sensor/monitor-client/index.ts';
import type { Spool } from '#sensor/spool/index.ts';
import { heldWaitMs, Outcomes, sendUpload } from './take-outcome.ts';
import { createTimeCheck, type UplinkTime } from './time-check.ts';

/** A receipt may take the monitor a while (NET-8). */
const answerTimeoutMs = 45_000;
const idleWaitMs = 60_000;
/** Wait after the spool failed. */
const spoolRetryMs = 5000;
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

export type Uplink = ReturnType<typeof createUplink>;

/** Makes an uplink; it sends nothing before `start`. */
export function createUplink(options: UplinkOptions) {
  const { spool, client, reporter } = options;
  const clock = options.clock ?? systemClock;
  const stopping = new AbortController();
  const inFlight = new AbortController();
  let rest = new AbortController();
  let isSending = false;
  let takesIncidents = false;
  let running: Promise<void> = Promise.resolve();
  const times = options.time ? createTimeCheck({ ...options.time, spool, reporter, clock }) : null;
  const outcomes = new Outcomes({ spool, reporter, times, random: options.random });

  async function pause(ms: number, untilWoken: boolean): Promise<void> {
    const signals = untilWoken ? [rest.signal, stopping.signal] : [stopping.signal];
    await clock.wait(ms, AbortSignal.any(signals));
    if (rest.signal.aborted) rest = new AbortController();
  }

  async function step(): Promise<void> {
    const upload = takesIncidents ? spool.oldest() : spool.oldestOfBulk();
    if (!upload) return pause(idleWaitMs, true);
    const isUncertain = upload.mayBeSent || outcomes.wasAttempted(upload);
    const check = await times?.check(upload, isUncertain);
    if (check === 'again') return;
    if (check === 'hold') return pause(heldWaitMs, false);
    if (spool.settle(upload)) return;
    const { signal } = inFlight;
    isSending = true;
    const deps = { client, encoding: outcomes.encoding, timeoutMs: answerTimeoutMs, signal };
    const outcome = await sendUpload(deps, upload);
    isSending = false;
    if (signal.aborted) return;
    const waitMs = outcomes.take(upload, outcome);
    if (waitMs > 0) await pause(waitMs, false);
  }

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      try {
        await step();
      } catch (error) {
        reporter.error('the spool does not answer, uploads wait', { why: describeError(error) });
        await pause(spoolRetryMs, false);
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
    /** Whether the monitor takes incidents. Until it does they wait, and nothing waits for them. */
    announce(takes: boolean) {
      takesIncidents = takes;
      rest.abort();
    },
    /** Says that the spool has something new. */
    wake() {
      rest.abort();
    },
  };
}
