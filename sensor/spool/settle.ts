/**
 * What an upload says of minutes that others tell of too. Decided when it is the first in the queue: only then the times of
 * all before it are final, whatever clock stamped them. It depends on nothing that changes until its receipt, so what was
 * sent once is not changed any more.
 */
import { isSilence } from '#contracts/sensor-api/silences.ts';
import type { TelemetryGap } from '#contracts/sensor-api/telemetry.ts';
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

/** The gaps of an upload with these minutes as they are to be sent; null: as they are. */
export function settleGaps(
  minutes: readonly number[],
  gaps: readonly TelemetryGap[],
  { delivered, isPart }: Before,
): TelemetryGap[] | null {
  const settled = gaps.flatMap((gap) => withoutDelivered(gap, delivered));
  // What is heard now adds to what was heard then, and the sum must not be taken for one minute.
  if (!isPart)
    for (const minute of minutes)
      if (hasMinute(delivered, minute) && !gaps.some((gap) => namesCommon(gap, minute)))
        settled.push({ fromMinute: minute, toMinute: minute, capture: '', reason: 'clock_step' });
  const isSame = settled.length === gaps.length && settled.every((gap, i) => gap === gaps[i]);
  return isSame ? null : settled;
}

/** A silence of every capture holds no minute of which something was delivered. */
function withoutDelivered(gap: TelemetryGap, delivered: readonly MinuteRange[]): TelemetryGap[] {
  if (gap.capture !== '' || !isSilence(gap)) return [gap];
  const { fromMinute, toMinute } = gap;
  if (!delivered.some(([from, to]) => from <= toMinute && to >= fromMinute)) return [gap];
  const left = subtractRanges([[fromMinute, toMinute]], delivered, Number.NEGATIVE_INFINITY);
  return left.map(([from, to]) => ({ ...gap, fromMinute: from, toMinute: to }));
}
