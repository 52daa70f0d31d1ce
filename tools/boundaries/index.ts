/**
 * The import law, executable: reads every module's imports, SQL texts and sizes, and names what breaks a rule.
 *
 * It parses with oxc, because a checker that reads nothing must not pass: it throws when it finds too few modules.
 */
import type { Tree } from '../tree.ts';
import { functionLinesMax, type Module, type Offence, type Place } from './module.ts';
import { readModule } from './read-module.ts';
import { checkCycles, rules } from './rules.ts';
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

/**
 * Counts circles of files: sets of files that import one another, directly or through each other.
 *
 * Type-only imports count too, except inside one feature: a file may name the types of the door that calls it.
 */
const featureOf = ({ path, unit, top }: Place) => `${top}/${unit ?? path.split('/')[1]}`;

/** Every circle of two or more files, each as a sorted list of paths (Tarjan's strongly connected components). */
function findFileCircles(modules: readonly Module[]): string[][] {
  const paths = new Set(modules.map((module) => module.place.path));
  const edges = new Map(
    modules.map(({ place, imports }) => [
      place.path,
      [
        ...new Set(
          imports.flatMap(({ target, isTypeOnly }) => {
            if (target === null || !paths.has(target.path)) return [];
            return isTypeOnly && featureOf(target) === featureOf(place) ? [] : [target.path];
          }),
        ),
      ],
    ]),
  );
  const order = new Map<string, number>();
  const lowest = new Map<string, number>();
  const stack: string[] = [];
  const onStack = new Set<string>();
  const circles: string[][] = [];
  const visit = (path: string): void => {
    order.set(path, order.size);
    lowest.set(path, order.get(path)!);
    stack.push(path);
    onStack.add(path);
    for (const next of edges.get(path)!) {
      if (!order.has(next)) visit(next);
      if (onStack.has(next)) lowest.set(path, Math.min(lowest.get(path)!, lowest.get(next)!));
    }
    if (lowest.get(path) !== order.get(path)) return;
    const circle = stack.splice(stack.lastIndexOf(path));
    for (const one of circle) onStack.delete(one);
    if (circle.length > 1) circles.push(circle.sort());
  };
  for (const path of edges.keys()) if (!order.has(path)) visit(path);
  return circles.sort((a, b) => a[0]!.localeCompare(b[0]!));
}

/**
 * Sizes of files and functions: what is longer than the limits of docs and CONTRIBUTING is an offence. A file over 400
 * lines is counted, so that its author asks whether it is one thing.
 *
 * Tests, proofs, benches and generated code have no limit. A function may be longer where splitting it would hurt, on
 * the packet path for instance: the comment above it then says "Over 120 lines: " and the reason.
 */
const fileLinesMax = 700;
const fileLinesUsual = 400;

const hasNoLimit = (module: Module) => module.place.isTest || module.place.path.includes('/generated/');

function checkSizes(modules: readonly Module[]): Offence[] {
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
function describeLines(modules: readonly Module[]): string {
  const lines = modules.filter((module) => !hasNoLimit(module)).map((module) => module.lines);
  const median = lines.sort((a, b) => a - b)[Math.floor(lines.length / 2)] ?? 0;
  const long = lines.filter((count) => count > fileLinesUsual).length;
  return `median of ${median} lines, ${long} files over ${fileLinesUsual}`;
}
