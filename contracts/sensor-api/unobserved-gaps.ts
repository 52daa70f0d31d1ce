/**
 * Gaps of minutes that were not observed, and minutes that contradict them. A sensor that was down while its clock was
 * minutes ahead stamps its gap with minutes that it observes later, once the clock is set. A minute that was observed from
 * end to end is removed from such a gap.
 *
 * Minutes that were observed and then lost (`refused`, `spool_damaged`), and minutes that are longer or shorter than one
 * (`clock_step`), stay in their gaps.
 */
import { unobservedReasons } from '../minute-reasons.ts';
import type { TelemetryGap, TelemetryMinute } from './telemetry.ts';

const unobserved: ReadonlySet<string> = new Set(unobservedReasons);

/** A minute of one capture. */
export interface ObservedMinute {
  capture: string;
  minute: number;
}

type Gap = Omit<TelemetryGap, 'reason'> & { reason: string };

/** The minutes of an upload that were observed from end to end, and that no gap of the same upload names. */
export function wholeMinutes(upload: {
  minutes: readonly Pick<TelemetryMinute, 'minute' | 'capture' | 'observedMs'>[];
  gaps: readonly Gap[];
}): ObservedMinute[] {
  return upload.minutes
    .filter((one) => one.observedMs >= 60_000 && !upload.gaps.some((gap) => namesMinute(gap, one)))
    .map(({ capture, minute }) => ({ capture, minute }));
}

/** True when the gap says that nothing was observed, or that nothing was kept. */
export function isUnobserved(gap: Gap): boolean {
  return unobserved.has(gap.reason);
}

/** True when the gap says that this minute of this capture was not observed; a blank name means every capture. */
export function namesUnobserved(gap: Gap, observed: ObservedMinute): boolean {
  return isUnobserved(gap) && namesMinute(gap, observed);
}

/**
 * The rest of a gap after these minutes of its sensor were observed whole. A gap of every capture, of which some observed a
 * minute, keeps that minute for the other `captures`.
 */
export function withoutObserved<G extends Gap>(
  gap: G,
  observed: readonly ObservedMinute[],
  captures: readonly string[],
): G[] {
  const contradicted = Map.groupBy(
    observed.filter((one) => namesUnobserved(gap, one)),
    (one) => one.minute,
  );
  if (contradicted.size === 0) return [gap];
  const left: G[] = [];
  let fromMinute = gap.fromMinute;
  const keepUntil = (end: number) => {
    if (fromMinute < end) left.push({ ...gap, fromMinute, toMinute: end - 60 });
  };
  for (const [minute, observers] of [...contradicted].sort(([a], [b]) => a - b)) {
    keepUntil(minute);
    fromMinute = minute + 60;
    if (gap.capture !== '') continue;
    const others = captures.filter((name) => !observers.some((one) => one.capture === name));
    for (const capture of others) left.push({ ...gap, fromMinute: minute, toMinute: minute, capture });
  }
  keepUntil(gap.toMinute + 60);
  return left;
}

/** True when the gap names this minute of this capture; a blank name means every capture. */
export function namesMinute(gap: Gap, { capture, minute }: ObservedMinute): boolean {
  return (
    (gap.capture === '' || gap.capture === capture) && gap.fromMinute <= minute && minute <= gap.toMinute
  );
}
