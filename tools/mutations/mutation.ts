/** One way to break a rule of the specification, as a replacement of text in one file. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseSync } from 'oxc-parser';

export interface Mutation {
  /** Of `rules.tsv`: `API-8.4`. */
  rule: string;
  /** What is wrong with the mutated product, in its user's terms. */
  what: string;
  file: string;
  /** Must stand exactly once in the file. */
  find: string;
  replace: string;
  /** The tests that must notice; by default all files with a test whose title names the rule. */
  tests?: readonly string[];
}

/** The mutated text, or why the mutation does not fit. A file that no longer parses would be noticed by any test. */
export function applyMutation(mutation: Mutation, text: string): { text: string } | { fault: string } {
  const parts = text.split(mutation.find);
  if (parts.length !== 2) return { fault: `its text stands ${parts.length - 1} times in ${mutation.file}` };
  const mutated = parts.join(mutation.replace);
  if (mutation.file.endsWith('.ts')) {
    const { errors } = parseSync(mutation.file, mutated);
    if (errors.length > 0) return { fault: `${mutation.file} would not parse: ${errors[0]!.message}` };
  }
  return { text: mutated };
}

/** Test files by the rules that their titles name. */
export function findTestsOfRules(root: string, files: readonly string[]): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const file of files.filter((name) => name.endsWith('.test.ts'))) {
    const text = readFileSync(join(root, file), 'utf8');
    const rules = new Set<string>();
    for (const [, , title] of text.matchAll(/\b(?:test|it|describe)\(\s*(['"`])([\s\S]*?)\1/g))
      for (const [rule] of title!.matchAll(/\b(?:API|NET)-\d+(?:\.[0-9A-Za-z]+)*/g)) rules.add(rule);
    for (const rule of rules) found.set(rule, [...(found.get(rule) ?? []), file]);
  }
  return found;
}
