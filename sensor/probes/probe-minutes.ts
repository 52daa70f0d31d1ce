/** Groups attempts by probe and minute. Pure: each call brings the time. */
import { startOfMinuteMs } from '#common/clock/index.ts';
import type { ProbeResult } from '#contracts/sensor-api/telemetry.ts';
import type { AttemptOutcome } from './attempts.ts';

interface OpenMinute {
  probe: number;
  minute: number;
  firstSentMs: number;
  outstanding: number;
  lost: number;
  rttsUs: number[];
  failure: ProbeResult['failure'];
}

export type ProbeMinutes = ReturnType<typeof createProbeMinutes>;

export function createProbeMinutes() {
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
