/**
 * The import law, executable: reads every module's imports, SQL texts and sizes, and names what breaks a rule.
 *
 * It parses with oxc, because a checker that reads nothing must not pass: it throws when it finds too few modules.
 */
import type { Tree } from '../tree.ts';
import { findFileCircles } from './circles.ts';
import type { Offence } from './module.ts';
import { readModule } from './read-module.ts';
import { checkCycles, rules } from './rules.ts';
import { checkSizes, describeLines } from './sizes.ts';
import { checkTables } from './tables.ts';

export interface BoundaryReport {
  offences: Offence[];
  /** The counted figures in one line, for people. */
  figures: string;
}

/** Checks the tree; throws when fewer than `modulesMin` modules could be read. */
export function checkBoundaries(tree: Tree, modulesMin: number): BoundaryReport {
  const sources = tree.files.filter((file) => file.endsWith('.ts') && !file.endsWith('.d.ts'));
  const modules = sources.map((file) => readModule(file, tree.read(file)));
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
    ...circles.map((circle) => ({
      rule: 'files import one another in no circle',
      file: circle[0]!,
      what: `${circle.join(', ')} import one another`,
    })),
    ...checkSizes(modules),
    ...checkTables(modules, readMigrations(tree)),
  );
  return { offences, figures: `${modules.length} modules, ${describeLines(modules)}` };
}

function readMigrations(tree: Tree) {
  return tree.files
    .filter((file) => /^[\w-]+\/migrations\/.*\.sql$/.test(file))
    .sort()
    .map((file) => ({ top: file.split('/')[0]!, text: tree.read(file) }));
}
