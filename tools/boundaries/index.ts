/**
 * The import law, executable: reads every module's imports, SQL texts and sizes, and names what breaks a rule.
 *
 * It parses with oxc, because a checker that reads nothing must not pass: it throws when it finds too few modules.
 */
import { readFileSync } from 'node:fs';
import { findFileCircles } from './circles.ts';
import { type Limits, limits as recorded } from './limits.ts';
import type { Module, Offence } from './module.ts';
import { readModule } from './read-module.ts';
import { checkCycles, rules } from './rules.ts';
import { checkSizes, medianLines } from './sizes.ts';
import { checkTables } from './tables.ts';

export interface BoundaryReport {
  offences: Offence[];
  /** The counted figures in one line, for people. */
  figures: string;
}

/** Checks the files (paths relative to `root`); throws when fewer than `modulesMin` could be read. */
export function checkBoundaries(
  root: string,
  files: readonly string[],
  modulesMin: number,
  limits: Limits = recorded,
): BoundaryReport {
  const sources = files.filter((file) => file.endsWith('.ts') && !file.endsWith('.d.ts'));
  const modules = sources.map((file) => readModule(root, file));
  const importCount = modules.reduce((sum, module) => sum + module.imports.length, 0);
  if (modules.length < modulesMin || importCount === 0) {
    throw new Error(
      `boundaries: only ${modules.length} modules with ${importCount} imports were read; the check is broken`,
    );
  }
  const offences: Offence[] = [];
  for (const module of modules) {
    for (const rule of rules) {
      for (const what of rule.faults(module))
        offences.push({ rule: rule.name, file: module.place.path, what });
    }
  }
  const circles = findFileCircles(modules);
  offences.push(
    ...checkCycles(modules),
    ...checkCircles(circles, limits.fileCircles),
    ...checkSizes(modules, limits.longFunctions),
    ...checkTables(modules, readMigrations(root, files), limits.foreignTables),
  );
  return { offences, figures: describe(modules, circles, limits) };
}

function readMigrations(root: string, files: readonly string[]) {
  return files
    .filter((file) => /^[\w-]+\/migrations\/.*\.sql$/.test(file))
    .sort()
    .map((file) => ({ top: file.split('/')[0]!, text: readFileSync(`${root}/${file}`, 'utf8') }));
}

function checkCircles(circles: readonly string[][], limit: number): Offence[] {
  const rule = 'files import one another in no circle';
  if (circles.length > limit)
    return circles.map((circle) => ({
      rule,
      file: circle[0]!,
      what: `${circle.join(', ')} import one another; at most ${limit} such circles are allowed`,
    }));
  if (circles.length < limit)
    return [
      { rule, file: 'tools/boundaries/limits.ts', what: `lower the limit of circles to ${circles.length}` },
    ];
  return [];
}

function describe(modules: readonly Module[], circles: readonly string[][], limits: Limits): string {
  return [
    `${modules.length} modules`,
    `${circles.length} circles of files`,
    `${Object.keys(limits.longFunctions).length} functions too long`,
    `${Object.keys(limits.foreignTables).length} pairs of features with SQL on each other's tables`,
    `median of ${medianLines(modules)} lines`,
  ].join(', ');
}
