/**
 * The gate: installs what it needs, then runs the checks and the fast tests, or the slow tests.
 *
 * A test file whose first line says why it is slow (`// Slow: <reason>`) is a slow one.
 */
import { spawn } from 'node:child_process';
import { createHash, randomInt } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdirSync, statfsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { cpus, freemem } from 'node:os';
import { relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { silentReporter } from '#common/reporter/index.ts';
import { stopDetachedServer } from '#service-kit/postgres/embedded.ts';
import { shareBrowser } from '#service-kit/testing/browser.ts';
import { testServerDir } from '#service-kit/testing/index.ts';
import { batchMax, planTests, shareProcesses } from './plan-tests.ts';
import { type Lane, runTests } from './run-tests.ts';
import { installSystemPackages } from './system-packages.ts';
import { closeRun } from './test-report.ts';
import { listFiles } from './tree.ts';

const usage = `usage: npm test                   the checks and the fast tests
       npm run test:slow          the slow tests; one that fails runs once more, alone, at the end
       npm run check              the checks
       npm test -- FILE …         these test files
  --seed N                        the test files in another order, which N decides; 0 chooses one and says it`;

const root = fileURLToPath(new URL('..', import.meta.url)).replace(/\/$/, '');

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

/** Returns what tells the share of processor time since now that was used: idle processors could run more tests at once. */
function watchProcessors(): () => string {
  const read = () => {
    const times = cpus().map((one) => one.times);
    const all = times.flatMap((one) => Object.values(one)).reduce((sum, ms) => sum + ms, 0);
    return { all, idle: times.reduce((sum, one) => sum + one.idle, 0) };
  };
  const before = read();
  return () => {
    const now = read();
    const usedMs = now.all - before.all - (now.idle - before.idle);
    const share = usedMs / Math.max(1, now.all - before.all);
    return `the machine used ${Math.round(usedMs / 1000)} s of processor time; its processors were ${Math.round(share * 100)} % busy`;
  };
}

const formatTime = (ms: number) =>
  ms < 60_000
    ? `${Math.round(ms / 1000)} s`
    : `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;

/** The same order for the same seed. */
function shuffle(files: readonly string[], seed: number): string[] {
  const rank = (file: string) => createHash('sha256').update(`${seed} ${file}`).digest('hex');
  return [...files].sort((a, b) => (rank(a) < rank(b) ? -1 : 1));
}

/** Processes of tests at once, beside those that mostly wait: fast ones wait for the database, slow ones for programs that they kill. */
const processesMax = 4;
/** In a process of their own, which prints what is wrong. Returns how many failed; when it is killed, one. */
async function runChecks(): Promise<number> {
  const child = spawn(process.execPath, [...process.execArgv, `${root}/tools/checks.ts`], {
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const [code] = await once(child, 'close');
  return code ?? 1;
}

async function runPart(part: 'fast' | 'slow', order: (files: string[]) => string[]): Promise<number> {
  const files = order(listFiles(root).filter((file) => file.endsWith('.test.ts')));
  const plan = planTests(root, files, part);
  await using _browser = await shareBrowser();
  const tellUse = watchProcessors();
  const startedMs = performance.now();
  const sinceStart = () => formatTime(performance.now() - startedMs);
  const times: string[] = [];
  // A check that fails keeps no test from running.
  const checked = part === 'fast' ? runChecks() : 0;
  if (checked !== 0) void checked.then(() => times.push(`the checks took ${sinceStart()}`));
  const lanes: Lane[] = [
    { batches: plan.waiting, concurrency: plan.waiting.length },
    { batches: plan.batches, concurrency: processesMax },
  ];
  const results = await runTests(lanes, { retries: part === 'slow' });
  const failedChecks = await checked;
  times.push(`the ${part} tests took ${sinceStart()}`, tellUse());
  return closeRun(results, { failedChecks, times, isFast: part === 'fast' });
}

/** What an ordinary user is told before anything runs. */
const needsRoot = `Some tests need root: those that make network namespaces and interfaces (the lab, captures on real
interfaces, port scans), control groups, guests of libvirt, and service users. As root: sudo npm test`;

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      help: { type: 'boolean' },
      checks: { type: 'boolean' },
      slow: { type: 'boolean' },
      seed: { type: 'string' },
    },
  });
  if (values.help) {
    console.log(usage);
    return 0;
  }
  if (positionals.length > 0) {
    const files = positionals.map((file) => relative(root, resolve(root, file)));
    const missing = files.filter((file) => !existsSync(`${root}/${file}`));
    if (missing.length > 0) {
      console.log(`There is no file ${missing.join(', ')}.`);
      return 2;
    }
    // A few files are done sooner each in its own process; many load the programs once for several.
    const together = Math.min(batchMax.fast, Math.ceil(files.length / 6));
    const { alone, shared } = shareProcesses(root, files, together);
    return closeRun(await runTests([{ batches: [...alone, ...shared], concurrency: processesMax }]));
  }
  const seed = values.seed === undefined ? null : Number(values.seed) || randomInt(1, 1_000_000);
  if (seed !== null) console.log(`The order of the files is of --seed ${seed}.`);
  if (process.getuid?.() !== 0 && !values.checks) {
    console.log(needsRoot);
    if (process.env.CI) {
      console.log('Nothing may be left out where CI is set.\n\n0 passed, 1 failed');
      return 1;
    }
    console.log('They are left out.\n');
  }
  if (!(await installSystemPackages())) return 1;
  if (hasRoomInMemory()) {
    mkdirSync(memoryDir, { recursive: true, mode: 0o755 });
    process.env.SVC_TEST_MEMORY_DIR = memoryDir;
  }
  try {
    if (!values.checks)
      return await runPart(values.slow ? 'slow' : 'fast', (files) =>
        seed === null ? files : shuffle(files, seed),
      );
    const failed = await runChecks();
    if (failed > 0) console.log(`0 passed, ${failed} failed`);
    return failed > 0 ? 1 : 0;
  } finally {
    await stopDetachedServer(testServerDir(), silentReporter);
    await rm(memoryDir, { recursive: true, force: true });
  }
}

try {
  process.exitCode = await main();
} catch (error) {
  if (!(error as NodeJS.ErrnoException).code?.startsWith('ERR_PARSE_ARGS')) throw error;
  console.log(`${(error as Error).message}\n${usage}`);
  process.exitCode = 2;
}
