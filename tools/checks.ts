/**
 * The checks of the gate: everything but the tests. The tools of others run as processes of their own, the checks that are
 * written here run one after the other in this one, and read each file once.
 *
 * usage: sh tools/with-node tools/checks.ts
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { checkBoundaries } from './boundaries/index.ts';
import { findDeadPaths } from './doc-paths/index.ts';
import { checkGlossary } from './glossary/index.ts';
import { planTests } from './plan-tests.ts';
import { openTree, type Tree } from './tree.ts';

const root = fileURLToPath(new URL('..', import.meta.url)).replace(/\/$/, '');
const bin = (name: string) => `${root}/node_modules/.bin/${name}`;

interface Check {
  name: string;
  /** What is wrong, or null. `tell` prints figures beside the name. */
  run(tell: (figures: string) => void): Promise<string | null> | string | null;
}

/** Checks that are processes of their own. */
const tools: Check[] = [
  {
    name: 'format and lint',
    run: () => runTool(bin('biome'), 'check', '--error-on-warnings', '--max-diagnostics=40', '.'),
  },
  // On one thread it takes two thirds of the processor time, and the others of the list have the other processors.
  { name: 'types', run: () => runTool(bin('tsc'), '--singleThreaded') },
  { name: 'wire format', run: () => runTool(bin('buf'), 'lint') },
  { name: 'dead code', run: () => runTool(bin('knip')) },
];

const ownChecks = (tree: Tree): Check[] => [
  {
    name: 'boundaries',
    run(tell) {
      const { offences, figures } = checkBoundaries(tree, 200);
      tell(figures);
      return linesOf(offences.map((o) => `${o.file}: ${o.what}\n    (${o.rule})`));
    },
  },
  {
    name: 'glossary',
    run: () => linesOf(checkGlossary(tree).map(({ file, what }) => `${file}: ${what}`)),
  },
  {
    name: 'paths in documents',
    run: () => linesOf(findDeadPaths(tree).map(({ at, path }) => `${at}: there is no ${path}`)),
  },
  {
    name: 'plan of the tests',
    run() {
      const tests = tree.files.filter((file) => file.endsWith('.test.ts'));
      try {
        for (const part of ['fast', 'slow'] as const) planTests(root, tests, part);
      } catch (error) {
        return (error as Error).message;
      }
      return null;
    },
  },
  // Those that load the programs are loaded late: code that does not load must not keep the others from running.
  {
    name: 'settings reference',
    run: async () => (await import('./settings-reference.ts')).checkReference(),
  },
  {
    name: 'tables of detection',
    run: async () => (await import('./detection-reference.ts')).checkDetectionTables(),
  },
  {
    name: 'closed lists',
    run: async () =>
      linesOf(
        (await import('./closed-lists/index.ts'))
          .findCopies(tree)
          .map(({ file, names }) => `${file}: names ${names.join(', ')} again; take them from contracts/`),
      ),
  },
  {
    name: 'row types',
    async run(tell) {
      const { checkStores } = await import('./row-types/index.ts');
      const { compared, faults } = await checkStores(root, tree.files);
      tell(`${compared} statements`);
      return linesOf(faults);
    },
  },
];

const linesOf = (faults: readonly string[]) => (faults.length === 0 ? null : faults.join('\n'));

async function runTool(...command: string[]): Promise<string | null> {
  const child = spawn(command[0]!, command.slice(1), { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] });
  const said: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (piece: Buffer) => void said.push(piece));
  try {
    const [code] = await once(child, 'close');
    return code === 0 ? null : Buffer.concat(said).toString();
  } catch (error) {
    return (error as Error).message;
  }
}

/** Runs a check and tells how it went. Returns whether it failed. */
async function runCheck(check: Check): Promise<boolean> {
  const startedMs = performance.now();
  let figures = '';
  let fault: string | null;
  try {
    fault = await check.run((text) => {
      figures = `: ${text}`;
    });
  } catch (error) {
    fault = (error as Error).message;
  }
  const seconds = ((performance.now() - startedMs) / 1000).toFixed(1);
  console.log(`${fault === null ? 'ok  ' : 'FAIL'}  ${check.name}${figures} (${seconds} s)`);
  if (fault !== null) console.log(fault);
  return fault !== null;
}

/** Of this process and the ended ones that it started; null where the system does not tell. */
function processorSeconds(): number | null {
  try {
    const fields = readFileSync('/proc/self/stat', 'utf8').split(') ')[1]!.split(' ');
    // Hundredths of a second on every Linux.
    return fields.slice(11, 15).reduce((sum, one) => sum + Number(one), 0) / 100;
  } catch {
    return null;
  }
}

async function main(): Promise<number> {
  const verdicts = tools.map(runCheck);
  for (const check of ownChecks(openTree(root))) {
    // Meanwhile the tools may say what they found.
    await nextTurn();
    verdicts.push(runCheck(check));
  }
  const failed = (await Promise.all(verdicts)).filter((isFailed) => isFailed).length;
  const seconds = processorSeconds();
  if (seconds !== null) console.log(`The checks took ${Math.round(seconds)} s of processor time.`);
  return failed;
}

// `tools/test.ts` reads it.
process.exitCode = await main();
