/**
 * How early a guesser would come to a password, by an offline list of some fifty thousand common passwords and the
 * patterns that people make of them (zxcvbn). The list is loaded when a password is first set, not at start.
 */
import type { ZxcvbnFactory } from '@zxcvbn-ts/core';

/** A hundred million guesses: what a slow hash withstands when a database is stolen. */
const guessesMin = 1e8;
/** Longer passwords are judged by their beginning, because the time grows with the square of the length. */
const judgedLengthMax = 64;

let estimator: Promise<ZxcvbnFactory> | null = null;

/** True for a password that a guesser with the list tries among the first. `words` are those of its person. */
export async function isEasilyGuessed(password: string, words: readonly string[]): Promise<boolean> {
  estimator ??= load();
  const { guesses } = (await estimator).check(password.slice(0, judgedLengthMax), [...words]);
  return guesses < guessesMin;
}

async function load(): Promise<ZxcvbnFactory> {
  const [{ ZxcvbnFactory }, { adjacencyGraphs, dictionary }] = await Promise.all([
    import('@zxcvbn-ts/core'),
    import('@zxcvbn-ts/language-common'),
  ]);
  return new ZxcvbnFactory({ dictionary, graphs: adjacencyGraphs });
}
