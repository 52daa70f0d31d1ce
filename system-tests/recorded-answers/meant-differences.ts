/** What is meant to differ from the record, until it is recorded anew. */

export interface MeantDifference {
  /** Names of answers: who asks, and the path. */
  answers: RegExp;
  /** Each line that differs, with `- ` or `+ ` before it. */
  lines: RegExp;
  reason: string;
}

export const meantDifferences: readonly MeantDifference[] = [];
