import type { TelemetryGap } from '#contracts/sensor-api/telemetry.ts';
import { isUnobserved, namesMinute, type ObservedMinute } from '#contracts/sensor-api/unobserved-gaps.ts';

/** Sets of UTC minutes as sorted, disjoint ranges: what has been covered, what is missing. Seconds, both ends inclusive. */
export type MinuteRange = readonly [from: number, to: number];

/** Ranges kept at most; each further one is a jump of the clock. */
const rangesMax = 256;

/** The ranges with one more; neighbours are joined, and the oldest are forgotten beyond a bound. */
export function addRange(ranges: readonly MinuteRange[], from: number, to: number): MinuteRange[] {
  const joined: MinuteRange[] = [];
  let [start, end] = [from, to];
  for (const range of ranges) {
    if (range[1] + 60 < start || range[0] - 60 > end) joined.push(range);
    else [start, end] = [Math.min(start, range[0]), Math.max(end, range[1])];
  }
  joined.push([start, end]);
  return joined.sort((a, b) => a[0] - b[0]).slice(-rangesMax);
}

/** True when some range holds the minute. */
export function hasMinute(ranges: readonly MinuteRange[], minute: number): boolean {
  return ranges.some(([from, to]) => from <= minute && minute <= to);
}

/** The last minute of the ranges before `minute`, or null. */
export function lastBefore(ranges: readonly MinuteRange[], minute: number): number | null {
  let last: number | null = null;
  for (const [from, to] of ranges) if (from < minute) last = Math.min(to, minute - 60);
  return last;
}

/** What of `ranges` after minute `after` no range of `taken` holds. */
export function subtractRanges(
  ranges: readonly MinuteRange[],
  taken: readonly MinuteRange[],
  after: number,
): MinuteRange[] {
  let left: MinuteRange[] = ranges.map(([from, to]) => [Math.max(from, after + 60), to] as const);
  for (const [from, to] of taken) {
    left = left.flatMap<MinuteRange>(([start, end]) =>
      to < start || from > end
        ? [[start, end]]
        : [
            [start, from - 60],
            [to + 60, end],
          ],
    );
  }
  return left.filter(([from, to]) => from <= to);
}

/** The minutes strictly between two minutes, or null when there are none or the earlier one is unknown. */
export function missingBetween(earlier: number | null, later: number): MinuteRange | null {
  return earlier === null || earlier + 60 >= later ? null : [earlier + 60, later - 60];
}

/** The ranges as far as they had begun by this minute. */
export function upTo(ranges: readonly MinuteRange[], minute: number): MinuteRange[] {
  return ranges.filter(([from]) => from <= minute).map(([from, to]) => [from, Math.min(to, minute)]);
}

/** What is covered after a record's gaps were moved: without what they covered before, and with what they cover now. */
export function coveredAfterMove(
  covered: readonly MinuteRange[],
  before: readonly { fromMinute: number; toMinute: number }[],
  now: readonly { fromMinute: number; toMinute: number }[],
): MinuteRange[] {
  const old = before.map((gap) => [gap.fromMinute, gap.toMinute] as const);
  return now.reduce(
    (all, gap) => addRange(all, gap.fromMinute, gap.toMinute),
    subtractRanges(covered, old, Number.NEGATIVE_INFINITY),
  );
}

// What an upload says about minutes that other uploads name too. It is decided when the upload is first in the queue: only
// then the times of all uploads before it are final. Nothing that it depends on changes before the receipt, so a repeated
// upload is the same.

/** What was delivered before an upload. */
export interface Before {
  delivered: readonly MinuteRange[];
  /** It goes on with the minutes of the upload before it, which has said what there is to say of them. */
  isPart: boolean;
}

/** True where the gap says that another upload reports a minute of its upload as well. */
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
