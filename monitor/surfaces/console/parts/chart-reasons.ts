/** Why charts of this console have no values, or only a part of them: gaps of captures, and minutes that are still to come. */
import { keptMs } from '#contracts/retention.ts';
import type { GapRow } from '#monitor/traffic/index.ts';
import type { ChartReason, Range } from '#service-kit/pages/index.ts';
import { gapReason } from './words.ts';

/** What a chart is made of, and how long after its end it may still arrive. */
export interface Pace {
  unitMs: number;
  arrivesWithinMs: number;
  /** What is said of such a time. */
  text: string;
}

export const byMinutes: Pace = { unitMs: 60_000, arrivesWithinMs: 90_000, text: 'minute in progress' };
export const byLiveWindows: Pace = { unitMs: 10_000, arrivesWithinMs: 20_000, text: 'window on its way' };

/** How long facts of traffic are kept (NET-2.4.1). */
const trafficKeptMs = keptMs('traffic');
/** Stretches in one ribbon; more would be narrower than a pixel. */
const reasonsMax = 200;

export interface ReasonInput {
  gaps: readonly GapRow[];
  range: Pick<Range, 'fromMs' | 'toMs'>;
  pace?: Pace;
  /** When the first sensor of the site was enrolled; null: none is. */
  firstSensorMs: number | null;
  nowMs: number;
}

/** In the order in which they are told where several hold. Gaps of one reason and host that touch are one. */
export function chartReasons({
  gaps,
  range,
  pace = byMinutes,
  firstSensorMs,
  nowMs,
}: ReasonInput): ChartReason[] {
  const { fromMs, toMs } = range;
  const { unitMs, arrivesWithinMs } = pace;
  const edge = (text: string, from: number, to: number): ChartReason[] => {
    const reason = {
      fromMs: Math.max(from, fromMs),
      toMs: Math.min(to, toMs),
      text,
      tone: 'neutral',
    } as const;
    return reason.fromMs < reason.toMs ? [reason] : [];
  };
  return [
    ...edge('kept no longer', fromMs, nowMs - trafficKeptMs),
    ...(firstSensorMs === null
      ? edge('no sensor is enrolled', fromMs, nowMs)
      : edge('before the first sensor was enrolled', fromMs, Math.floor(firstSensorMs / 60_000) * 60_000)),
    ...mergedGaps(gaps, range, firstSensorMs).slice(-reasonsMax),
    ...edge(pace.text, Math.floor((nowMs - arrivesWithinMs) / unitMs) * unitMs, nowMs),
    ...edge('not yet', nowMs, toMs),
  ];
}

/** In order of time. */
function mergedGaps(
  gaps: readonly GapRow[],
  range: ReasonInput['range'],
  firstSensorMs: number | null,
): ChartReason[] {
  const open = new Map<string, ChartReason>();
  const all: ChartReason[] = [];
  const inOrder = gaps.toSorted((a, b) => a.fromMinute - b.fromMinute);
  for (const gap of inOrder) {
    const fromMs = Math.max(gap.fromMinute * 1000, range.fromMs);
    const toMs = Math.min((gap.toMinute + 60) * 1000, range.toMs);
    if (fromMs >= toMs) continue;
    // The minute in which the first sensor was enrolled is no fault.
    const isFirst = gap.reason === 'sensor_down' && gap.toMinute * 1000 <= (firstSensorMs ?? 0);
    // Of a sensor that did not run each capture has its gap.
    const isOfCapture = gap.capture !== '' && gap.reason !== 'sensor_down';
    const where = isOfCapture ? `${gap.hostName}, ${gap.capture}` : gap.hostName;
    const text = `${isFirst ? 'the sensor was just enrolled' : gapReason(gap)} (${where})`;
    const last = open.get(text);
    if (last && fromMs <= last.toMs) {
      last.toMs = Math.max(last.toMs, toMs);
      continue;
    }
    const reason: ChartReason = { fromMs, toMs, text, ...(isFirst && { tone: 'neutral' }) };
    open.set(text, reason);
    all.push(reason);
  }
  return all;
}
