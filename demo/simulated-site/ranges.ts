/** Ranges of minutes, in seconds since 1970: which are loaded, and which is to be loaded next. */

/** The end is not of the range. */
export type Range = readonly [from: number, end: number];

const hourSeconds = 3_600;

/** Adds a range to others; those that meet become one. In order of time. */
export function addRange(ranges: readonly Range[], added: Range): Range[] {
  let [from, end] = added;
  const apart: Range[] = [];
  for (const range of ranges) {
    if (range[1] < from || range[0] > end) apart.push(range);
    else {
      from = Math.min(from, range[0]);
      end = Math.max(end, range[1]);
    }
  }
  return [...apart, [from, end] as const].sort((a, b) => a[0] - b[0]);
}

/** The newest part of `wanted` that is missing, within one hour of UTC; null when nothing is. */
export function newestMissing(loaded: readonly Range[], [from, end]: Range): Range | null {
  let newest = end;
  for (const [loadedFrom, loadedEnd] of [...loaded].reverse()) {
    if (loadedEnd < newest) break;
    newest = Math.min(newest, loadedFrom);
  }
  if (newest <= from) return null;
  const below = loaded.findLast(([, loadedEnd]) => loadedEnd < newest)?.[1] ?? from;
  const hour = Math.floor((newest - 60) / hourSeconds) * hourSeconds;
  return [Math.max(from, below, hour), newest];
}

/** How many minutes of `wanted` are loaded. */
export function countLoaded(loaded: readonly Range[], [from, end]: Range): number {
  const seconds = loaded.reduce(
    (sum, range) => sum + Math.max(0, Math.min(range[1], end) - Math.max(range[0], from)),
    0,
  );
  return seconds / 60;
}
