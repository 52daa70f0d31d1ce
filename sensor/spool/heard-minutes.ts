/** Minutes of which something was collected: what was delivered, and what waits in the queue. */
import { addRange, hasMinute, type MinuteRange, subtractRanges } from './minute-ranges.ts';

export interface HeardMinutes {
  delivered(): MinuteRange[];
  has(minute: number): boolean;
  unheard(range: MinuteRange): MinuteRange[];
  /** These wait in the queue from now on. */
  add(minutes: readonly number[]): void;
  /** These do not any more. */
  remove(minutes: readonly number[]): void;
}

export function createHeardMinutes(
  delivered: () => readonly MinuteRange[],
  waiting: Iterable<number>,
): HeardMinutes {
  /** How many uploads hold each minute. */
  const counts = new Map<number, number>();
  const add = (minutes: Iterable<number>) => {
    for (const minute of minutes) counts.set(minute, (counts.get(minute) ?? 0) + 1);
  };
  add(waiting);
  return {
    delivered: () => [...delivered()],
    has: (minute) => counts.has(minute) || hasMinute(delivered(), minute),
    unheard([from, to]) {
      const pending = [...counts.keys()].filter((minute) => from <= minute && minute <= to);
      const known = pending.reduce<MinuteRange[]>(
        (ranges, minute) => addRange(ranges, minute, minute),
        delivered().filter((range) => range[1] >= from && range[0] <= to),
      );
      return subtractRanges([[from, to]], known, Number.NEGATIVE_INFINITY);
    },
    add,
    remove(minutes) {
      for (const minute of minutes) {
        const left = (counts.get(minute) ?? 0) - 1;
        if (left > 0) counts.set(minute, left);
        else counts.delete(minute);
      }
    },
  };
}
