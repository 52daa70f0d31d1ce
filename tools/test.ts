/**
 * The whole gate: installs what the tests need, then runs all checks and all tests.
 *
 * usage: npm test [-- --checks | FILE …]      --checks: everything but the tests; FILE: these test files only
 */
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdirSync, statfsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { cpus, freemem } from 'node:os';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { silentReporter } from '#common/reporter/index.ts';
import { stopDetachedServer } from '#service-kit/postgres/detached.ts';
import { testServerDir } from '#service-kit/testing/index.ts';
import { checkBoundaries } from './boundaries/index.ts';
import { findDeadPaths } from './doc-paths/index.ts';
import { checkGlossary } from './glossary/index.ts';
import { planTests } from './plan-tests.ts';
import { runTests } from './run-tests.ts';
import { installSystemPackages } from './system-packages.ts';

const root = fileURLToPath(new URL('..', import.meta.url)).replace(/\/$/, '');
const bin = (name: string) => `${root}/node_modules/.bin/${name}`;

/** Files of the working tree that git knows or would add; without git, every file below. */
function listFiles(): string[] {
  const git = spawnSync('git', ['ls-files', '-co', '--exclude-standard'], { cwd: root, encoding: 'utf8' });
  const listed =
    git.status === 0
      ? git.stdout
      : spawnSync('find', ['.', '-path', './node_modules', '-prune', '-o', '-type', 'f', '-print'], {
          cwd: root,
          encoding: 'utf8',
        }).stdout;
  return listed
    .split('\n')
    .map((file) => file.replace(/^\.\//, ''))
    .filter((file) => file !== '' && existsSync(`${root}/${file}`))
    .sort();
}

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

interface Check {
  name: string;
  /** What is wrong, or null. `tell` prints figures beside the name. */
  run(tell: (figures: string) => void): Promise<string | null>;
}

const checks: Check[] = [
  {
    name: 'format and lint',
    run: () => runTool(bin('biome'), 'check', '--error-on-warnings', '--max-diagnostics=40', '.'),
  },
  // On one thread it takes two thirds of the processor time, and the others of the list have the other processors.
  { name: 'types', run: () => runTool(bin('tsc'), '--singleThreaded') },
  {
    name: 'boundaries',
    async run(tell) {
      const { offences, figures } = checkBoundaries(root, listFiles(), 200);
      tell(figures);
      return offences.length === 0
        ? null
        : offences.map((o) => `${o.file}: ${o.what}\n    (${o.rule})`).join('\n');
    },
  },
  {
    name: 'glossary',
    async run() {
      const faults = checkGlossary(root, listFiles());
      return faults.length === 0 ? null : faults.map(({ file, what }) => `${file}: ${what}`).join('\n');
    },
  },
  {
    name: 'paths in documents',
    async run() {
      const dead = findDeadPaths(root, listFiles());
      return dead.length === 0 ? null : dead.map(({ at, path }) => `${at}: there is no ${path}`).join('\n');
    },
  },
  { name: 'wire format', run: () => runTool(bin('buf'), 'lint') },
  {
    name: 'settings reference',
    run: () => runTool(process.execPath, `${root}/tools/settings-reference.ts`, '--check'),
  },
  {
    name: 'proofs page',
    run: () => runTool(process.execPath, `${root}/tools/proofs-page.ts`, '--check'),
  },
  { name: 'dead code', run: () => runTool(bin('knip')) },
];

interface Verdict {
  fault: string | null;
  figures: string;
  seconds: number;
}

async function runCheck(check: Check): Promise<Verdict> {
  const started = performance.now();
  let figures = '';
  let fault: string | null;
  try {
    fault = await check.run((text) => {
      figures = `: ${text}`;
    });
  } catch (error) {
    fault = (error as Error).message;
  }
  return { fault, figures, seconds: (performance.now() - started) / 1000 };
}

/**
 * All begin at once: half of them use one processor only. They are told in the order of the list. Returns how many failed.
 */
async function runChecks(): Promise<number> {
  const verdicts = checks.map((check) => ({ check, verdict: runCheck(check) }));
  let failed = 0;
  for (const { check, verdict } of verdicts) {
    const { fault, figures, seconds } = await verdict;
    console.log(`${fault === null ? 'ok  ' : 'FAIL'}  ${check.name}${figures} (${seconds.toFixed(1)} s)`);
    if (fault === null) continue;
    console.log(fault);
    failed += 1;
  }
  return failed;
}

/**
 * Where databases of tests keep their files when memory has room for them: each is hundreds of small files, and making
 * those on a disk takes ten times as long.
 */
const memoryDir = `/dev/shm/svc-tests-${createHash('sha256').update(root).digest('hex').slice(0, 12)}`;

function hasRoomInMemory(): boolean {
  try {
    const { bavail, bsize } = statfsSync('/dev/shm');
    return Math.min(bavail * bsize, freemem()) >= 4 * 2 ** 30;
  } catch {
    return false;
  }
}

/** Returns what tells the time since now, and how busy the machine was: idle processors could run more tests at once. */
function watchProcessors(): () => string {
  const read = () => {
    const times = cpus().map((one) => one.times);
    const all = times.flatMap((one) => Object.values(one)).reduce((sum, ms) => sum + ms, 0);
    return { all, idle: times.reduce((sum, one) => sum + one.idle, 0) };
  };
  const [before, startedMs] = [read(), performance.now()];
  return () => {
    const now = read();
    const busy = 1 - (now.idle - before.idle) / Math.max(1, now.all - before.all);
    const seconds = Math.round((performance.now() - startedMs) / 1000);
    return `checks and tests took ${Math.floor(seconds / 60)} min ${seconds % 60} s; the processors were ${Math.round(busy * 100)} % busy`;
  };
}

/** Processes of tests at once, beside those that mostly wait. */
const processesMax = 3;

const usage =
  'usage: npm test [-- --checks | FILE …]      --checks: everything but the tests; FILE: these test files only';

async function main(): Promise<number> {
  const options = process.argv.slice(2).filter((argument) => argument.startsWith('--'));
  const unknown = options.find((option) => option !== '--checks' && option !== '--help');
  if (unknown || options.includes('--help')) {
    console.log(unknown ? `There is no option ${unknown}.\n${usage}` : usage);
    return unknown ? 2 : 0;
  }
  const named = process.argv.slice(2).filter((argument) => !argument.startsWith('--'));
  if (named.length > 0)
    return runTests([{ batches: named.map((file) => [file]), concurrency: processesMax }]);
  if (!(await installSystemPackages())) return 1;
  if (options.includes('--checks')) {
    const failed = await runChecks();
    if (failed > 0) console.log(`0 passed, ${failed} failed`);
    return failed > 0 ? 1 : 0;
  }
  const plan = planTests(
    root,
    listFiles().filter((file) => file.endsWith('.test.ts')),
  );
  if (hasRoomInMemory()) {
    mkdirSync(memoryDir, { recursive: true, mode: 0o755 });
    process.env.SVC_TEST_MEMORY_DIR = memoryDir;
  }
  try {
    // The tests that mostly wait begin before the checks, some of which hold this process. A check that fails keeps no
    // test from running.
    const failedChecks = nextTurn().then(runChecks);
    const tellUse = watchProcessors();
    const status = await runTests(
      [
        { batches: plan.waiting, concurrency: plan.waiting.length },
        { batches: plan.batches, concurrency: processesMax, after: failedChecks },
      ],
      failedChecks,
    );
    console.log(tellUse());
    return status;
  } finally {
    await stopDetachedServer(testServerDir(), silentReporter);
    await rm(memoryDir, { recursive: true, force: true });
  }
}

process.exitCode = await main();
