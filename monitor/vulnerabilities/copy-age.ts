/** How old the copy of the vulnerability database is, and whether that is a problem. */

export interface CopyAge {
  /** Since the records of a product were fetched last, of the product that waits longest; null: none ever were. */
  ageSeconds: number | null;
  /** Products whose records were asked for and never fetched, and since when. */
  missing: number;
  missingSeconds: number | null;
  /** Why the newest attempt that failed did. */
  error: string | null;
}

/** Records are refreshed once in 24 hours; older ones are still used. */
export const oldCopySeconds = 3 * 86_400;

/** Since when the copy, or a part of it, has been due; null where nothing was ever asked for. */
export function overdueSeconds({ ageSeconds, missingSeconds }: CopyAge): number | null {
  return ageSeconds === null && missingSeconds === null
    ? null
    : Math.max(ageSeconds ?? 0, missingSeconds ?? 0);
}

/** The problem in a sentence; null where there is none, or nothing that could be fetched. */
export function describeAge(age: CopyAge, hasSource: boolean): string | null {
  const seconds = overdueSeconds(age);
  if (!hasSource || seconds === null || seconds <= oldCopySeconds) return null;
  const why = age.error === null ? '' : `: ${age.error.replace(/\.$/, '')}`;
  return `The copy of the vulnerability database was not refreshed for ${Math.floor(seconds / 86_400)} days${why}. The last records are still used.`;
}
