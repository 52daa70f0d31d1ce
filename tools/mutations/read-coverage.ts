/** What a test executed, by V8's coverage. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

interface Range {
  startOffset: number;
  endOffset: number;
  count: number;
}

interface Script {
  url: string;
  functions: { isBlockCoverage: boolean; functionName: string; ranges: Range[] }[];
}

/** The executed parts of a file: of the ranges around a place the smallest one says whether it was executed. */
export type Executed = readonly Range[];

/**
 * The executed parts of each file under `root`, by its path from there, of all processes that left their coverage in `folder`
 * (`NODE_V8_COVERAGE`). What runs when a module is loaded is left out: every test that imports it executes it.
 */
export function readCoverage(folder: string, root: string): Map<string, Executed[]> {
  const found = new Map<string, Executed[]>();
  const prefix = `file://${root}/`;
  for (const name of readdirSync(folder)) {
    const { result } = JSON.parse(readFileSync(join(folder, name), 'utf8')) as { result: Script[] };
    for (const { url, functions } of result) {
      if (!url.startsWith(prefix) || url.includes('/node_modules/')) continue;
      const file = url.slice(prefix.length);
      const ranges = functions.flatMap(({ functionName, ranges }) =>
        functionName === '' && ranges[0]!.startOffset === 0
          ? ranges.map((range) => ({ ...range, count: 0 }))
          : ranges,
      );
      if (ranges.some(({ count }) => count > 0)) found.set(file, [...(found.get(file) ?? []), ranges]);
    }
  }
  return found;
}

export function isExecuted(parts: readonly Executed[], at: number): boolean {
  return parts.some((ranges) => {
    let smallest: Range | undefined;
    for (const range of ranges) {
      if (range.startOffset > at || range.endOffset <= at) continue;
      if (!smallest || range.endOffset - range.startOffset <= smallest.endOffset - smallest.startOffset)
        smallest = range;
    }
    return smallest !== undefined && smallest.count > 0;
  });
}
