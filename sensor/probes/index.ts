/**
 * Probes: measures the targets of the plan on schedule and reports results by the minute.
 *
 * Guarantees: an attempt belongs to the minute in which it began. A minute is reported once all its attempts have
 * ended, and stays here until it is in the spool. A cancelled attempt does not count, because it says nothing about the
 * target. A slow target does not delay others.
 */
import { type Clock, startOfMinuteMs } from '#common/clock/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import type { PlanProbe } from '#contracts/sensor-api/http.ts';
import { type ProbeResult, probeResultsMax } from '#contracts/sensor-api/telemetry.ts';
import { probeRecords } from '#sensor/records/index.ts';
import { type Attempt, type AttemptOutcome, createAttempts } from './attempts.ts';

export interface ProberOptions {
  clock: Clock;
  reporter: Reporter;
  /** For tests. */
  attempt?: Attempt;
}

export type Prober = ReturnType<typeof createProber>;

/** Creates the prober; it sends nothing before `start`. */
export function createProber(options: ProberOptions) {
  const { clock, reporter } = options;
  const attempts = options.attempt ? null : createAttempts(reporter);
  const attempt = options.attempt ?? attempts!.attempt;
  const minutes = createProbeMinutes();
  const running = new Map<string, { stop: AbortController; ended: Promise<void> }>();
  let waiting: ProbeResult[] = [];
  let wanted: readonly PlanProbe[] = [];
  let isStarted = false;

  async function attemptOnce(probe: PlanProbe, signal: AbortSignal): Promise<void> {
    const begun = minutes.begin(probe.id, clock.nowMs());
    minutes.end(begun, await attempt(probe, signal));
  }

  function adjust(): void {
    const keys = new Map(wanted.map((probe) => [JSON.stringify(probe), probe]));
    for (const [key, one] of running) {
      if (keys.has(key)) continue;
      one.stop.abort();
      running.delete(key);
    }
    for (const [key, probe] of keys) {
      if (running.has(key)) continue;
      const stop = new AbortController();
      const ended = repeat(probe, clock, stop.signal, () => attemptOnce(probe, stop.signal));
      running.set(key, { stop, ended });
    }
  }

  function gather(isLast: boolean): void {
    waiting.push(...minutes.take(isLast ? Number.POSITIVE_INFINITY : clock.nowMs()));
    const surplus = waiting.length - probeResultsMax;
    if (surplus <= 0) return;
    // The disk accepted nothing for long; the newest results matter most.
    reporter.warn('probe results found no room and are lost', { results: surplus });
    waiting = waiting.slice(surplus);
  }

  return {
    ...{ name: 'probes', kind: probeRecords },
    async start() {
      isStarted = true;
      adjust();
    },
    async stop() {
      isStarted = false;
      const ending = [...running.values()];
      for (const one of ending) one.stop.abort();
      running.clear();
      await Promise.all(ending.map((one) => one.ended));
      gather(true);
      await attempts?.close();
    },
    /** Applies the probes of a plan; unchanged probes continue undisturbed. */
    follow(probes: readonly PlanProbe[]) {
      wanted = probes;
      if (isStarted) adjust();
    },
    /** Results of closed minutes that are not on disk yet. */
    ready(): ProbeResult[] {
      gather(false);
      return [...waiting];
    },
    /** Called when these results are on disk. */
    committed(results: readonly ProbeResult[]) {
      const done = new Set(results);
      waiting = waiting.filter((one) => !done.has(one));
    },
  };
}

/** Begins an attempt at every turn of the probe until the signal; then waits for the attempts that are under way. */
async function repeat(probe: PlanProbe, clock: Clock, signal: AbortSignal, attemptOnce: () => Promise<void>) {
  const intervalMs = probe.interval_seconds * 1000;
  // Spreads the probes of one interval; a probe keeps its offset after a restart.
  const offsetMs = (probe.id * 7919) % intervalMs;
  const under: Promise<void>[] = [];
  while (!signal.aborted) {
    const nowMs = clock.nowMs();
    await clock.wait(intervalMs - ((((nowMs - offsetMs) % intervalMs) + intervalMs) % intervalMs), signal);
    if (signal.aborted) break;
    const one = attemptOnce().then(() => void under.splice(under.indexOf(one), 1));
    under.push(one);
  }
  await Promise.all(under);
}

// Groups attempts by probe and minute. Pure: each call brings the time.

interface OpenMinute {
  probe: number;
  minute: number;
  firstSentMs: number;
  outstanding: number;
  lost: number;
  rttsUs: number[];
  failure: ProbeResult['failure'];
}

function createProbeMinutes() {
  const open = new Map<string, OpenMinute>();
  return {
    /** Records an attempt that begins at this wall time. */
    begin(probe: number, nowMs: number): OpenMinute {
      const minute = startOfMinuteMs(nowMs) / 1000;
      const key = `${probe} ${minute}`;
      const known = open.get(key);
      if (known) {
        known.outstanding += 1;
        return known;
      }
      const firstSentMs = Math.floor(nowMs - minute * 1000);
      const fresh = { probe, minute, firstSentMs, outstanding: 1, lost: 0, rttsUs: [], failure: null };
      open.set(key, fresh);
      return fresh;
    },
    /** Records the outcome; null: it was cancelled and does not count. */
    end(minute: OpenMinute, outcome: AttemptOutcome | null) {
      minute.outstanding -= 1;
      if (outcome === null) return;
      if ('rttUs' in outcome) minute.rttsUs.push(Math.max(1, Math.round(outcome.rttUs)));
      else {
        minute.lost += 1;
        minute.failure = outcome.failure;
      }
    },
    /** Minutes that have ended and have no open attempt, each once. */
    take(nowMs: number): ProbeResult[] {
      const results: ProbeResult[] = [];
      for (const [key, one] of open) {
        // The present minute may get more attempts. A minute in the future comes from a clock that was set back; it
        // gets none.
        const isRunning = one.minute * 1000 <= nowMs && nowMs < (one.minute + 60) * 1000;
        if (one.outstanding > 0 || isRunning) continue;
        open.delete(key);
        const result = resultOf(one);
        if (result) results.push(result);
      }
      return results.sort((a, b) => a.minute - b.minute || a.probe - b.probe);
    },
  };
}

/** Null when every attempt was cancelled. */
function resultOf(one: OpenMinute): ProbeResult | null {
  const { probe, minute, firstSentMs, lost, failure } = one;
  const sent = lost + one.rttsUs.length;
  if (sent === 0) return null;
  const sorted = one.rttsUs.sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const median = sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
  const rtt =
    sorted.length > 0 ? { minUs: sorted[0]!, medianUs: Math.round(median), maxUs: sorted.at(-1)! } : null;
  return { probe, minute, firstSentMs, sent, lost, rtt, failure };
}
