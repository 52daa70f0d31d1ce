/**
 * Sizes of files and functions: what is longer than the limits of docs and CONTRIBUTING is an offence.
 *
 * Tests, proofs, benches and generated code have no limit. A function may be longer where splitting it would hurt, on
 * the packet path for instance: the comment above it then says "Over 80 lines: " and the reason.
 */
import type { Module, Offence } from './module.ts';

export const fileLinesMax = 400;
export const functionLinesMax = 80;

const hasNoLimit = (module: Module) => module.place.isTest || module.place.path.includes('/generated/');

/** `known`: `file:function` → its length when it was recorded; it may only become shorter. */
export function checkSizes(modules: readonly Module[], known: Readonly<Record<string, number>>): Offence[] {
  const offences: Offence[] = [];
  const found = new Set<string>();
  for (const module of modules) {
    const { path } = module.place;
    if (hasNoLimit(module)) continue;
    if (module.lines > fileLinesMax)
      offences.push({ rule: 'files are short', file: path, what: `has ${module.lines} lines: split it` });
    for (const { name, lines, isExempt } of module.functions) {
      if (lines <= functionLinesMax || isExempt) continue;
      const key = `${path}:${name}`;
      found.add(key);
      const limit = known[key] ?? functionLinesMax;
      if (lines > limit)
        offences.push({
          rule: 'functions are short',
          file: path,
          what: `${name} has ${lines} lines, at most ${limit} are allowed`,
        });
    }
  }
  for (const key of Object.keys(known)) {
    if (found.has(key)) continue;
    offences.push({
      rule: 'functions are short',
      file: key.split(':')[0]!,
      what: `${key.split(':')[1]} is not too long any more: delete its line in tools/boundaries/limits.ts`,
    });
  }
  return offences;
}

/** The median of the lines of all files that have a limit. */
export function medianLines(modules: readonly Module[]): number {
  const lines = modules.filter((module) => !hasNoLimit(module)).map((module) => module.lines);
  return lines.sort((a, b) => a - b)[Math.floor(lines.length / 2)] ?? 0;
}
