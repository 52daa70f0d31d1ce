/**
 * Breaks the code on purpose, one rule of the specification at a time, and shows which test notices.
 *
 * usage: npm run mutate [-- --list | --check] [RULE or PREFIX …]
 *   --list    prints the mutations and their tests, and runs nothing
 *   --check   only says whether each mutation still fits the code
 *
 * Works on a copy of the tree in a temporary folder, with databases in memory. First the tests of the chosen rules must
 * pass there unbroken; then each mutation is put in alone. A mutation that no test of its rule notices has survived, and
 * the exit code is 1.
 */
import { type SpawnSyncOptionsWithStringEncoding, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { silentReporter } from '#common/reporter/index.ts';
import { stopDetachedServer } from '#service-kit/postgres/detached.ts';
import { applyMutation, findTestsOfRules, type Mutation } from './mutations/mutation.ts';
import { mutationsOfApi } from './mutations/of-api.ts';
import { mutationsOfAssessments } from './mutations/of-assessments.ts';
import { mutationsOfEvidence } from './mutations/of-evidence.ts';
import { mutationsOfFindings } from './mutations/of-findings.ts';
import { mutationsOfIncidents } from './mutations/of-incidents.ts';
import { mutationsOfNet } from './mutations/of-net.ts';
import { mutationsOfNumbers } from './mutations/of-numbers.ts';
import { mutationsOfScanRequests } from './mutations/of-scan-requests.ts';
import { mutationsOfScanTargets } from './mutations/of-scan-targets.ts';
import { mutationsOfScanWires } from './mutations/of-scan-wires.ts';
import { mutationsOfScanner } from './mutations/of-scanner.ts';
import { mutationsOfScans } from './mutations/of-scans.ts';

const root = fileURLToPath(new URL('..', import.meta.url)).replace(/\/$/, '');

type Verdict = 'killed' | 'survived' | 'does not fit';

interface Outcome {
  mutation: Mutation;
  verdict: Verdict;
  /** The first test that failed, or why it could not be tried. */
  by: string;
}

function listFiles(): string[] {
  const git = spawnSync('git', ['ls-files', '-co', '--exclude-standard', '-z'], {
    cwd: root,
    encoding: 'utf8',
  });
  return git.stdout.split('\0').filter((file) => file !== '');
}

function copyTree(files: readonly string[]): string {
  const copy = mkdtempSync(join(tmpdir(), 'svc-mutate-'));
  for (const file of files) {
    mkdirSync(dirname(join(copy, file)), { recursive: true });
    cpSync(join(root, file), join(copy, file), { verbatimSymlinks: true });
  }
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
  return copy;
}

/** A test that waits for what the broken code never does has noticed it; an unbroken file takes a minute or two. */
const testsEndWithinMs = 10 * 60_000;

function endGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // None of it was left.
  }
}

/** The titles of the tests that failed in the copy; null when all passed. */
function runTests(copy: string, memoryDir: string, tests: readonly string[]): string[] | null {
  const result = spawnSync(
    process.execPath,
    ['--disable-warning=ExperimentalWarning', 'tools/test.ts', ...tests],
    {
      cwd: copy,
      encoding: 'utf8',
      env: {
        ...process.env,
        SVC_TEST_MEMORY_DIR: memoryDir,
        SVC_CORPUS_DIR: process.env.SVC_CORPUS_DIR ?? join(root, '../shared/corpus'),
      },
      maxBuffer: 64 * 2 ** 20,
      timeout: testsEndWithinMs,
      // A group of its own, so that what waits without end can be ended with everything that it started.
      detached: true,
    } as SpawnSyncOptionsWithStringEncoding & { detached: boolean },
  );
  if (result.signal) endGroup(result.pid);
  if (result.status === 0) return null;
  if (result.signal) return ['a test waits without end'];
  const failed = [...result.stdout.matchAll(/^FAIL {2}.*\n {6}(.*)$/gm)].map((match) => match[1]!);
  return failed.length > 0 ? failed : [`no test ended: ${result.stderr.trim().split('\n').at(-1) ?? ''}`];
}

function tryMutation(copy: string, memoryDir: string, mutation: Mutation, tests: readonly string[]): Outcome {
  const path = join(copy, mutation.file);
  const before = readFileSync(path, 'utf8');
  const mutated = applyMutation(mutation, before);
  if ('fault' in mutated) return { mutation, verdict: 'does not fit', by: mutated.fault };
  if (tests.length === 0) return { mutation, verdict: 'survived', by: 'no test names the rule' };
  writeFileSync(path, mutated.text);
  try {
    const failed = runTests(copy, memoryDir, tests);
    if (!failed) return { mutation, verdict: 'survived', by: `passed: ${tests.join(', ')}` };
    return {
      mutation,
      verdict: 'killed',
      by: failed.find((title) => title.includes(mutation.rule)) ?? failed[0]!,
    };
  } finally {
    writeFileSync(path, before);
  }
}

function checkAll(mutations: readonly Mutation[]): number {
  let faults = 0;
  for (const mutation of mutations) {
    const mutated = applyMutation(mutation, readFileSync(join(root, mutation.file), 'utf8'));
    if (!('fault' in mutated)) continue;
    faults += 1;
    console.log(`${mutation.rule}  ${mutation.what}: ${mutated.fault}`);
  }
  console.log(`${mutations.length - faults} of ${mutations.length} mutations fit the code`);
  return faults === 0 ? 0 : 1;
}

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { list: { type: 'boolean' }, check: { type: 'boolean' } },
  });
  const isChosen = ({ rule }: Mutation) =>
    positionals.length === 0 || positionals.some((wanted) => rule === wanted || rule.startsWith(wanted));
  const mutations = [
    ...mutationsOfApi,
    ...mutationsOfNet,
    ...mutationsOfScans,
    ...mutationsOfScanTargets,
    ...mutationsOfScanner,
    ...mutationsOfScanRequests,
    ...mutationsOfScanWires,
    ...mutationsOfFindings,
    ...mutationsOfAssessments,
    ...mutationsOfIncidents,
    ...mutationsOfEvidence,
    ...mutationsOfNumbers,
  ].filter(isChosen);
  if (mutations.length === 0) {
    console.error('no mutation of such a rule; see --list');
    return 2;
  }
  if (values.check) return checkAll(mutations);
  const files = listFiles();
  const testsOf = findTestsOfRules(root, files);
  const testsFor = (mutation: Mutation) => mutation.tests ?? testsOf.get(mutation.rule) ?? [];
  if (values.list) {
    for (const mutation of mutations)
      console.log(
        `${mutation.rule}  ${mutation.what}\n    ${mutation.file}; ${testsFor(mutation).join(', ')}`,
      );
    return 0;
  }
  const copy = copyTree(files);
  const memoryDir = mkdtempSync('/dev/shm/svc-mutate-');
  const outcomes: Outcome[] = [];
  try {
    const all = [...new Set(mutations.flatMap(testsFor))];
    console.log(`unbroken: ${all.length} test files ...`);
    const failed = runTests(copy, memoryDir, all);
    if (failed) {
      console.log(`these fail without any mutation: ${failed.join('; ')}`);
      return 1;
    }
    for (const mutation of mutations) {
      const outcome = tryMutation(copy, memoryDir, mutation, testsFor(mutation));
      outcomes.push(outcome);
      console.log(
        `${outcome.verdict.padEnd(12)} ${mutation.rule}  ${mutation.what}\n             ${outcome.by}`,
      );
    }
  } finally {
    await stopDetachedServer(`${memoryDir}/postgres`, silentReporter);
    rmSync(memoryDir, { recursive: true, force: true });
    rmSync(copy, { recursive: true, force: true });
  }
  const killed = outcomes.filter(({ verdict }) => verdict === 'killed').length;
  console.log(`${outcomes.length} mutations: ${killed} killed, ${outcomes.length - killed} not`);
  return killed === outcomes.length ? 0 : 1;
}

process.exitCode = await main();
