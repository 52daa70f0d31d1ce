/** The record: files of answers in `answers/`, one for each caller, and how they are compared with those of now. */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { diff } from 'node:util';
import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import type { Answers } from './ask-everything.ts';

/** A difference from the record that a change means to make, until the answers are recorded anew. */
export interface MeantDifference {
  /** Names of answers: who asks, and the path. */
  answers: RegExp;
  /** Each line that differs, with `- ` or `+ ` before it. */
  lines: RegExp;
  reason: string;
}

export const meantDifferences: readonly MeantDifference[] = [];

const folder = join(import.meta.dirname, 'answers');
const params = { [constants.ZSTD_c_compressionLevel]: 19, [constants.ZSTD_c_windowLog]: 23 };
/** Lines of a difference that are shown, and answers that are named with it. */
const [linesShown, namesShown] = [16, 6];

export function readRecord(): Answers {
  const files = readdirSync(folder).map((file) => zstdDecompressSync(readFileSync(join(folder, file))));
  return new Map(files.flatMap((file) => Object.entries<string>(JSON.parse(file.toString()))));
}

export function writeRecord(answers: Answers): void {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder);
  const sorted = [...answers].toSorted(([a], [b]) => (a < b ? -1 : 1));
  for (const [caller, own] of Map.groupBy(sorted, ([name]) => callerOf(name))) {
    const bytes = zstdCompressSync(JSON.stringify(Object.fromEntries(own)), { params });
    writeFileSync(join(folder, `${caller}.json.zst`), bytes);
  }
}

const callerOf = (name: string) =>
  /^[^/]*?(?= \/|$)/
    .exec(name)![0]
    .replace(/^command.*/, 'commands')
    .replace(/\W+/g, '-')
    .toLowerCase();

/** What differs and is not meant to, for a reader; answers that differ in the same way together. Blank: nothing. */
export function compareAnswers(recorded: Answers, answers: Answers, meant = meantDifferences): string {
  const used = new Set<MeantDifference>();
  const differences = new Map<string, string[]>();
  for (const name of new Set([...recorded.keys(), ...answers.keys()])) {
    const changed = changedLines(recorded.get(name), answers.get(name));
    const left = changed.filter((line) => {
      const reason = meant.find((one) => one.answers.test(name) && one.lines.test(line));
      if (reason) used.add(reason);
      return !reason;
    });
    if (left.length === 0) continue;
    const shown = left.slice(0, linesShown).join('\n');
    const text = left.length > linesShown ? `${shown}\n… ${left.length - linesShown} more` : shown;
    differences.set(text, [...(differences.get(text) ?? []), name]);
  }
  const told = [...differences].map(([text, names]) => {
    const more = names.length > namesShown ? [`and ${names.length - namesShown} more`] : [];
    return `${[...names.slice(0, namesShown), ...more].join('\n')}\n${text.replace(/^/gm, '    ')}`;
  });
  const unused = meant
    .filter((one) => !used.has(one))
    .map(({ reason }) => `no answer differs any more: ${reason}`);
  return [...told, ...unused].join('\n\n');
}

/** `- line` of the record, `+ line` of now. */
function changedLines(recorded: string | undefined, answer: string | undefined): string[] {
  if (recorded === answer) return [];
  if (recorded === undefined) return ['+ not in the record: a new route, or a link that was not there'];
  if (answer === undefined) return ['- not asked any more: the route is gone'];
  const lines = diff(recorded.split('\n'), answer.split('\n')) as unknown as [number, string][];
  return lines.flatMap(([change, line]) => (change === 0 ? [] : [`${change > 0 ? '-' : '+'} ${line}`]));
}
