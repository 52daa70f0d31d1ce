/**
 * When ratios of single seconds are enough for an incident. Pure; the newest second is last.
 *
 * The ratio of the fast trigger leaves an attack at 2.0 slack for its first, partial second, and for the time until the
 * second is known to be over.
 */
import { decisionSecondsMax, fastTriggerRatio, type Trigger } from '#contracts/sensor-api/detection.ts';

/** Seconds that a decision looks at. */
export const windowSeconds = decisionSecondsMax;
/** Seconds of the fast trigger; two of them decide. */
const fastSeconds = 3;
/** Seconds of at least this ratio belong to the attack. */
const partOfAttack = 0.5;

/** One second has at most half of what the mean takes: in its last second it is not known which pairs will converse. */
const meanShareMax = windowSeconds / 2;

/** What the seconds are enough for; null: for none. One second alone never is. */
export function triggerOf(ratios: readonly number[]): Trigger | null {
  const loud = ratios.slice(-fastSeconds).filter((ratio) => ratio >= fastTriggerRatio).length;
  if (loud >= 2) return 'two_of_three';
  const mean = ratios.reduce((sum, ratio) => sum + Math.min(ratio, meanShareMax), 0) / windowSeconds;
  return mean >= 1 && ratios.filter((ratio) => ratio >= 1).length >= 2 ? 'mean_of_five' : null;
}

/** Index of the second in which the attack began: the first of the unbroken run up to the last second of the attack. */
export function firstSecondOf(ratios: readonly number[]): number {
  let last = ratios.length - 1;
  while (last > 0 && ratios[last]! < partOfAttack) last -= 1;
  let first = last;
  while (first > 0 && ratios[first - 1]! > 0.05) first -= 1;
  return first;
}

/** Indices of the seconds that show what the attack consists of. */
export function loudSeconds(ratios: readonly number[]): number[] {
  return ratios.flatMap((ratio, i) => (ratio >= partOfAttack ? [i] : []));
}
