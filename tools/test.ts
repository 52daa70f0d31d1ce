/**
 * The whole gate: installs what the tests need, then runs every check, cheap ones first, and all tests.
 *
 * usage: npm test [-- --checks | FILE …]      --checks: everything but the tests; FILE: these test files only
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdirSync, statfsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { freemem } from 'node:os';
import { resolve } from 'node:path';
import { PassThrough } from 'node:stream';
import { run } from 'node:test';
import { fileURLToPath } from 'node:url';
import { silentReporter } from '#common/reporter/index.ts';
import { stopDetachedServer } from '#service-kit/postgres/detached.ts';
import { testServerDir } from '#service-kit/testing/index.ts';
import { checkBoundaries } from './boundaries/index.ts';
import { checkGlossary } from './glossary/index.ts';
import { installSystemPackages } from './system-packages.ts';
import report from './test-reporter.ts';

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

function runTool(...command: string[]): string | null {
  const result = spawnSync(command[0]!, command.slice(1), { cwd: root, encoding: 'utf8' });
  if (result.error) return result.error.message;
  return result.status === 0 ? null : `${result.stdout}${result.stderr}`;
}

interface Check {
  name: string;
  /** What is wrong, or null. */
  run(): string | null;
}

const checks: Check[] = [
  {
    name: 'format and lint',
    run: () => runTool(bin('biome'), 'check', '--error-on-warnings', '--max-diagnostics=40', '.'),
  },
  { name: 'types', run: () => runTool(bin('tsc')) },
  {
    name: 'boundaries',
    run() {
      const offences = checkBoundaries(root, listFiles(), 200);
      return offences.length === 0
        ? null
        : offences.map((o) => `${o.file}: ${o.what}\n    (${o.rule})`).join('\n');
    },
  },
  {
    name: 'glossary',
    run() {
      const faults = checkGlossary(root, listFiles());
      return faults.length === 0 ? null : faults.map(({ file, what }) => `${file}: ${what}`).join('\n');
    },
  },
  { name: 'wire format', run: () => runTool(bin('buf'), 'lint') },
  {
    name: 'settings reference',
    run: () => runTool(process.execPath, `${root}/tools/settings-reference.ts`, '--check'),
  },
  { name: 'dead code', run: () => runTool(bin('knip')) },
];

function runChecks(): boolean {
  for (const check of checks) {
    const started = performance.now();
    let fault: string | null;
    try {
      fault = check.run();
    } catch (error) {
      fault = (error as Error).message;
    }
    const seconds = ((performance.now() - started) / 1000).toFixed(1);
    console.log(`${fault === null ? 'ok  ' : 'FAIL'}  ${check.name} (${seconds} s)`);
    if (fault !== null) {
      console.log(fault);
      return false;
    }
  }
  return true;
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

/** These run whole programs through real minutes and mostly wait, so they go beside the others, which use the processor. */
const waiting = ['system-tests/journey.test.ts', 'system-tests/kills.test.ts', 'system-tests/replay.test.ts'];

/** Of the others these take longest. They begin first, so that none of them runs alone when all others are done. */
const longest = [
  'operations/surfaces/customer-api/isolation.test.ts',
  'service-kit/pages/browser.test.ts',
  'sensor/spool/traced-cycles.test.ts',
  'system-tests/keyboard.test.ts',
  'system-tests/restart.test.ts',
  'sensor/collection/live-capture.test.ts',
  'sensor/spool/kill.test.ts',
  'monitor/inbox/faults.test.ts',
  'service-kit/postgres/backup.test.ts',
  'sensor/spool/storage-full.test.ts',
  'tools/package/package.test.ts',
];

/** All that is tested, in the order in which it begins. */
function listTests(): string[] {
  const files = listFiles().filter((file) => file.endsWith('.test.ts'));
  const first = [...waiting, ...longest];
  const gone = first.filter((file) => !files.includes(file));
  if (gone.length > 0) throw new Error(`tools/test.ts begins with files that are gone: ${gone.join(', ')}`);
  return [...first, ...files.filter((file) => !first.includes(file))];
}

/** A file that takes longer hangs. No test has a limit of its own: how long one takes is the machine's affair. */
const hangsAfterMs = 1_200_000;

/** Runs the files and returns the exit code. */
async function runTests(files: string[]): Promise<number> {
  const lanes = [
    { files: files.filter((file) => waiting.includes(file)), concurrency: waiting.length },
    { files: files.filter((file) => !waiting.includes(file)), concurrency: 3 },
  ];
  const events = new PassThrough({ objectMode: true });
  const ends = lanes
    .filter((lane) => lane.files.length > 0)
    .map(async (lane) => {
      const stream = run({
        files: lane.files.map((file) => resolve(root, file)),
        concurrency: lane.concurrency,
        timeout: hangsAfterMs,
        execArgv: ['--disable-warning=ExperimentalWarning'],
      });
      stream.pipe(events, { end: false });
      await once(stream, 'end');
    });
  void Promise.all(ends).finally(() => events.end());
  for await (const piece of report(events)) process.stdout.write(piece);
  return Number(process.exitCode ?? 0);
}

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
  if (named.length === 0) {
    if (!(await installSystemPackages())) return 1;
    if (!runChecks()) {
      console.log('0 passed, 1 failed');
      return 1;
    }
    if (process.argv.includes('--checks')) return 0;
  }
  if (named.length > 0) return runTests(named);
  const files = listTests();
  if (hasRoomInMemory()) {
    mkdirSync(memoryDir, { recursive: true, mode: 0o755 });
    process.env.SVC_TEST_MEMORY_DIR = memoryDir;
  }
  try {
    return await runTests(files);
  } finally {
    await stopDetachedServer(testServerDir(), silentReporter);
    await rm(memoryDir, { recursive: true, force: true });
  }
}

process.exitCode = await main();
