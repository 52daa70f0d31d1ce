/**
 * How early a guesser would come to a password, by an offline list of some fifty thousand common passwords and the
 * patterns that people make of them (zxcvbn). The list is loaded when a password is first set, not at start.
 */
import type { ZxcvbnFactory } from '@zxcvbn-ts/core';

/** A billion guesses: what a slow hash withstands when a database is stolen. */
const guessesMin = 1e9;
/**
 * One word of any language with a year and a few signs around it: what people make of a rule that asks for all of these. Random
 * hexadecimal digits, where letters are few and others many, are not that.
 */
const wordAndYear = /^(?=.*(19|20)\d\d)(?=\p{L}*(\P{L}\p{L}*){4,8}$)\P{L}*\p{L}{3,12}\P{L}*$/u;
/** Longer passwords are judged by their beginning, because the time grows with the square of the length. */
const judgedLengthMax = 64;

let estimator: Promise<ZxcvbnFactory> | null = null;

/** True for a password that a guesser with the list tries among the first. `words` are those of its person. */
export async function isEasilyGuessed(password: string, words: readonly string[]): Promise<boolean> {
  if (wordAndYear.test(password)) return true;
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
