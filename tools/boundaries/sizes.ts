/**
 * Sizes of files and functions: what is longer than the limits of docs and CONTRIBUTING is an offence. A file over 400
 * lines is counted, so that its author asks whether it is one thing.
 *
 * Tests, proofs, benches and generated code have no limit. A function may be longer where splitting it would hurt, on
 * the packet path for instance: the comment above it then says "Over 120 lines: " and the reason.
 */
import { functionLinesMax, type Module, type Offence } from './module.ts';

const fileLinesMax = 700;
const fileLinesUsual = 400;

const hasNoLimit = (module: Module) => module.place.isTest || module.place.path.includes('/generated/');

export function checkSizes(modules: readonly Module[]): Offence[] {
  const offences: Offence[] = [];
  for (const module of modules) {
    const { path } = module.place;
    if (hasNoLimit(module)) continue;
    if (module.lines > fileLinesMax)
      offences.push({ rule: 'files are short', file: path, what: `has ${module.lines} lines: split it` });
    for (const { name, lines } of module.longFunctions) {
      const what = `${name} has ${lines} lines, at most ${functionLinesMax} are allowed`;
      offences.push({ rule: 'functions are short', file: path, what });
    }
  }
  return offences;
}

/** The lines of all files that have a limit, for people. */
export function describeLines(modules: readonly Module[]): string {
  const lines = modules.filter((module) => !hasNoLimit(module)).map((module) => module.lines);
  const median = lines.sort((a, b) => a - b)[Math.floor(lines.length / 2)] ?? 0;
  const long = lines.filter((count) => count > fileLinesUsual).length;
  return `median of ${median} lines, ${long} files over ${fileLinesUsual}`;
}
