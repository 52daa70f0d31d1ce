/** Repeatable randomness of proofs: the same seed, the same run. */
import { seededRandom } from '#common/random/index.ts';

export interface Random {
  /** From 0 up to and without 1. */
  next(): number;
  /** A whole number from 0 up to and without `below`. */
  below(below: number): number;
  shuffle<T>(items: readonly T[]): T[];
}

export function createRandom(seed: number): Random {
  const next = seededRandom(seed);
  const below = (limit: number) => Math.floor(next() * limit);
  return {
    next,
    below,
    shuffle(items) {
      const shuffled = [...items];
      for (let i = shuffled.length - 1; i > 0; i -= 1) {
        const other = below(i + 1);
        [shuffled[i], shuffled[other]] = [shuffled[other]!, shuffled[i]!];
      }
      return shuffled;
    },
  };
}
