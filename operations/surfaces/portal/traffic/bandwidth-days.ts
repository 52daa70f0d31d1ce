/** Why days of a month have no usage, or only a part of it: the ribbon under the bars. */
import type { BandwidthHistory } from '#operations/bandwidth/index.ts';
import type { ChartReason } from '#service-kit/pages/index.ts';

export const dayMs = 86_400_000;

export interface DaysAsk {
  history: BandwidthHistory;
  /** When the server was created. */
  createdMs: number;
  nowMs: number;
}

/** Of the running month, in order of time; neighbours of one reason are one. */
export function dayReasons({ history, createdMs, nowMs }: DaysAsk): ChartReason[] {
  const { startMs, endMs } = history.current.period;
  const measured = new Set(
    history.rows.filter((row) => row.lastSampledAt !== null).map((row) => row.period.startMs),
  );
  const reasons: ChartReason[] = [];
  const say = (fromMs: number, toMs: number, text: string, tone: 'warn' | 'neutral') => {
    if (fromMs >= toMs) return;
    const last = reasons.at(-1);
    if (last?.text === text && last.toMs === fromMs) last.toMs = toMs;
    else reasons.push({ fromMs, toMs, text, tone });
  };
  for (let fromMs = startMs; fromMs < endMs; fromMs += dayMs) {
    const toMs = fromMs + dayMs;
    // A day that began before the server did is measured from then on.
    const beganMs = Math.min(Math.max(createdMs, fromMs), toMs);
    say(fromMs, Math.min(beganMs, nowMs), 'before the server was created', 'neutral');
    if (!measured.has(fromMs)) say(beganMs, Math.min(toMs, nowMs), 'not measured', 'warn');
    else if (nowMs < toMs) say(beganMs, nowMs, 'day in progress', 'neutral');
    say(Math.max(fromMs, nowMs), toMs, 'not yet', 'neutral');
  }
  return reasons;
}
