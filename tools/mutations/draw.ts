/** Draws breaks of promised behaviour by chance: a rule, then a place in the code that its tests execute. */
import { seededRandom } from '#common/random/index.ts';
import { type Break, breakText, findBreaks, parses } from './break-code.ts';
import { type Executed, isExecuted } from './read-coverage.ts';

/** A break of one file, and the test files that must notice: those of the rule first. */
export interface RuleBreak extends Break {
  /** Of `rules.tsv`. */
  rule: string;
  file: string;
  tests: readonly string[];
}

export interface Coverage {
  testsOfRules: ReadonlyMap<string, readonly string[]>;
  /** By test file, then by file of the code. */
  executed: ReadonlyMap<string, ReadonlyMap<string, readonly Executed[]>>;
  readText(file: string): string;
  /** False for files that are no part of the product. */
  isCode(file: string): boolean;
}

/**
 * As many breaks as `count`, the same for the same seed. A place that few rules execute is drawn more often: what all of them
 * execute is no rule's own.
 */
export function drawBreaks(
  { testsOfRules, executed, readText, isCode }: Coverage,
  seed: number,
  count: number,
): RuleBreak[] {
  const random = seededRandom(seed);
  const breaksOf = new Map<string, Break[]>();
  const places = new Map<string, { file: string; at: Break; tests: string[]; rules: Set<string> }>();
  const rulesOfTests = new Map<string, string[]>();
  for (const [rule, tests] of testsOfRules)
    for (const test of tests) rulesOfTests.set(test, [...(rulesOfTests.get(test) ?? []), rule]);
  for (const [test, files] of executed)
    for (const [file, parts] of files) {
      if (!isCode(file)) continue;
      if (!breaksOf.has(file)) breaksOf.set(file, findBreaks(file, readText(file)));
      for (const [i, at] of breaksOf.get(file)!.entries()) {
        if (!isExecuted(parts, at.start)) continue;
        const key = `${file}:${i}`;
        const place = places.get(key) ?? { file, at, tests: [], rules: new Set() };
        places.set(key, place);
        place.tests.push(test);
        for (const rule of rulesOfTests.get(test) ?? []) place.rules.add(rule);
      }
    }
  const placesOf = new Map<string, { key: string; weight: number }[]>();
  for (const [key, { rules }] of places)
    for (const rule of rules) {
      if (!placesOf.has(rule)) placesOf.set(rule, []);
      placesOf.get(rule)!.push({ key, weight: rules.size ** -2 });
    }
  const rules = [...placesOf.keys()].sort();
  const drawn = new Map<string, RuleBreak>();
  while (drawn.size < count) {
    const rule = rules[Math.floor(random() * rules.length)]!;
    const candidates = placesOf.get(rule)!;
    let left = random() * candidates.reduce((sum, { weight }) => sum + weight, 0);
    const { key } =
      candidates.find(({ weight }) => {
        left -= weight;
        return left < 0;
      }) ?? candidates.at(-1)!;
    const { file, at, tests } = places.get(key)!;
    if (drawn.has(key) || !parses(file, breakText(readText(file), at))) continue;
    const own = new Set(testsOfRules.get(rule));
    // Slow ones last.
    const rank = (test: string) => (own.has(test) ? 0 : test.startsWith('system-tests/') ? 2 : 1);
    drawn.set(key, {
      ...at,
      rule,
      file,
      tests: [...tests].sort((a, b) => rank(a) - rank(b)),
    });
  }
  return [...drawn.values()];
}
