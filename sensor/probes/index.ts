/**
 * Probes: measures the targets of the plan on schedule and reports results by the minute.
 *
 * Guarantees: an attempt belongs to the minute in which it began. A minute is reported once all its attempts have
 * ended, and stays here until it is in the spool. A cancelled attempt does not count, because it says nothing about the
 * target. A slow target does not delay others.
 */
import type { Clock } from '#common/clock/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import type { PlanProbe } from '#contracts/sensor-api/http.ts';
import { type ProbeResult, probeResultsMax } from '#contracts/sensor-api/telemetry.ts';
import { probeRecords } from '#sensor/records/index.ts';
import { type Attempt, createAttempts } from './attempts.ts';
import { createProbeMinutes } from './probe-minutes.ts';

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
async function repeat(
  probe: PlanProbe,
  clock: Clock,
  signal: AbortSignal,
  attemptOnce: () => Promise<void>,
): Promise<void> {
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
