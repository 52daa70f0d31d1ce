/**
 * What an upload says about minutes that other uploads name too. It is decided when the upload is first in the queue: only
 * then the times of all uploads before it are final. Nothing that it depends on changes before the receipt, so a repeated
 * upload is the same.
 */

import type { TelemetryGap } from '#contracts/sensor-api/telemetry.ts';
import { isUnobserved, namesMinute, type ObservedMinute } from '#contracts/sensor-api/unobserved-gaps.ts';
import { hasMinute, type MinuteRange, subtractRanges } from './minute-ranges.ts';

/** What was delivered before an upload. */
export interface Before {
  delivered: readonly MinuteRange[];
  /** It goes on with the minutes of the upload before it, which has said what there is to say of them. */
  isPart: boolean;
}

/** True where the gap says that a minute of its upload is told of by another one as well. */
export function namesCommon(gap: TelemetryGap, minute: number): boolean {
  return (
    gap.reason === 'clock_step' && gap.capture === '' && gap.fromMinute === minute && gap.toMinute === minute
  );
}

/** The gaps of an upload with these minutes of captures as they are to be sent; null: as they are. */
export function settleGaps(
  minutes: readonly (ObservedMinute & { observedMs: number })[],
  gaps: readonly TelemetryGap[],
  { delivered, isPart }: Before,
): TelemetryGap[] | null {
  const settled = gaps.flatMap((gap) => withoutDelivered(gap, delivered));
  // Both uploads add to the minute, and the sum must not be taken for one whole minute. The parts of a minute in which the
  // sensor was restarted have gaps that say so, or with the kernel's counters make one whole minute.
  const isNamed = (by: readonly TelemetryGap[], one: ObservedMinute) =>
    by.some((gap) => namesMinute(gap, one));
  const told = minutes.filter(
    (one) =>
      hasMinute(delivered, one.minute) &&
      !isNamed(settled, one) &&
      (one.observedMs >= 60_000 || isNamed(gaps, one)),
  );
  if (!isPart)
    for (const minute of new Set(told.map((one) => one.minute)))
      settled.push({ fromMinute: minute, toMinute: minute, capture: '', reason: 'clock_step' });
  const isSame = settled.length === gaps.length && settled.every((gap, i) => gap === gaps[i]);
  return isSame ? null : settled;
}

/** A gap of unobserved minutes of every capture contains no minute of which something was delivered. */
function withoutDelivered(gap: TelemetryGap, delivered: readonly MinuteRange[]): TelemetryGap[] {
  if (gap.capture !== '' || !isUnobserved(gap)) return [gap];
  const { fromMinute, toMinute } = gap;
  if (!delivered.some(([from, to]) => from <= toMinute && to >= fromMinute)) return [gap];
  const left = subtractRanges([[fromMinute, toMinute]], delivered, Number.NEGATIVE_INFINITY);
  return left.map(([from, to]) => ({ ...gap, fromMinute: from, toMinute: to }));
}
