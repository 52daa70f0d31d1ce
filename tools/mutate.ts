/**
 * Breaks the code on purpose, and shows which test notices.
 *
 * Works on copies of the tree in temporary folders, one a processor, with databases in memory. First the fast tests and the
 * recorded answers run unbroken to see what they execute: those that name a rule say where its code is, and all of them may
 * notice; `.cache/coverage` keeps that for the same tree. Then each break is put in alone. One that neither a test that
 * executes it nor the check of types notices has survived, and the exit code is 1.
 */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { silentReporter } from '#common/reporter/index.ts';
import { stopDetachedServer } from '#service-kit/postgres/embedded.ts';
import { breakText } from './mutations/break-code.ts';
import { drawBreaks } from './mutations/draw.ts';
import { type Executed, readCoverage } from './mutations/read-coverage.ts';
import { isSlow } from './plan-tests.ts';
import { openTree } from './tree.ts';

const root = fileURLToPath(new URL('..', import.meta.url)).replace(/\/$/, '');
/** A test that waits for what the broken code never does has noticed it; an unbroken file takes a minute or two. */
const testsEndWithinMs = 5 * 60_000;
/** Test files that one run has: those of the rule come first, and a run ends with its first failure. */
const together = 12;
/** Slow tests that may notice. The others need interfaces of the machine, of which two copies would take the same ones, or minutes. */
const slowTests = /^sensor\/(capture|detector)\/|^system-tests\/recorded-answers\//;
const isCode = (file: string) =>
  /^(clients|common|contracts|monitor|operations|sensor|service-kit)\//.test(file) &&
  !/\.(test|bench)\.ts$|\/(testing|migrations|stand-in)\//.test(file);

/** A copy of the tree, and databases in memory. */
class Copy {
  readonly path = mkdtempSync(join(tmpdir(), 'svc-mutate-'));
  readonly #memory = mkdtempSync('/dev/shm/svc-mutate-');

  constructor(files: readonly string[]) {
    for (const file of files) {
      mkdirSync(dirname(join(this.path, file)), { recursive: true });
      cpSync(join(root, file), join(this.path, file), { verbatimSymlinks: true });
    }
    symlinkSync(join(root, 'node_modules'), join(this.path, 'node_modules'));
    // A scan runs as a person without rights, who reads the program from here.
    chmodSync(this.path, 0o755);
  }

  /** The title of the first test that failed, or null: what runs after it has nothing to say. */
  async run(tests: readonly string[]): Promise<string | null> {
    const child = this.#start(tests);
    const end = () => child.exitCode === null && process.kill(-child.pid!, 'SIGKILL');
    let text = '';
    let failed: string | undefined;
    child.stdout.setEncoding('utf8').on('data', (part: string) => {
      text += part;
      if (failed !== undefined) return;
      failed = /^FAIL {2}.*\n {6}(.*)\n/m.exec(text)?.[1];
      if (failed !== undefined) end();
    });
    const timer = setTimeout(end, testsEndWithinMs);
    const [code, signal] = (await once(child, 'close')) as [number | null, string | null];
    clearTimeout(timer);
    return failed ?? (signal ? 'a test did not end in time' : code === 0 ? null : 'no test ended');
  }

  /** The first error of the types, which `npm test` checks as well, or null. */
  async checkTypes(): Promise<string | null> {
    const child = spawn(join(root, 'node_modules/.bin/tsc'), ['--singleThreaded', '--pretty', 'false'], {
      cwd: this.path,
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    let text = '';
    child.stdout.setEncoding('utf8').on('data', (part: string) => {
      text += part;
    });
    const [code] = (await once(child, 'close')) as [number | null];
    return code === 0 ? null : (text.split('\n')[0] ?? 'the types were not checked');
  }

  /** What each of these tests executes of the code. One that fails notices nothing, and is named. */
  async measureCoverage(tests: readonly string[]): Promise<Map<string, Map<string, Executed[]>>> {
    const folder = mkdtempSync(join(tmpdir(), 'svc-coverage-'));
    // Tests start programs that give up their rights.
    chmodSync(folder, 0o777);
    const child = this.#start(tests, { NODE_V8_COVERAGE: folder });
    const failing = new Set<string>();
    for await (const line of createInterface({ input: child.stdout })) {
      const file = /^(?:ok|FAIL) +(\S+\.test\.ts)/.exec(line)?.[1];
      if (!file) continue;
      if (line.startsWith('FAIL')) failing.add(file);
      console.log(line.startsWith('FAIL') ? `fails unbroken: ${file}` : line);
    }
    const executed = new Map<string, Map<string, Executed[]>>();
    for (const process of readdirSync(folder, { withFileTypes: true })) {
      if (!process.isDirectory()) continue;
      for (const name of readdirSync(join(folder, process.name))) {
        const file = relative(this.path, decodeURIComponent(name));
        if (!tests.includes(file) || failing.has(file)) continue;
        const parts = [...readCoverage(join(folder, process.name, name), this.path)];
        executed.set(file, new Map(parts.filter(([code]) => isCode(code))));
      }
    }
    rmSync(folder, { recursive: true, force: true });
    return executed;
  }

  /** In a group of its own, so that what never ends can be killed with everything that it started. */
  #start(tests: readonly string[], environment: Record<string, string> = {}) {
    const args = ['--disable-warning=ExperimentalWarning', 'tools/test.ts', ...tests];
    return spawn(process.execPath, args, {
      cwd: this.path,
      detached: true,
      stdio: ['ignore', 'pipe', 'ignore'],
      env: {
        ...process.env,
        SVC_TEST_MEMORY_DIR: this.#memory,
        SVC_CORPUS_DIR: process.env.SVC_CORPUS_DIR ?? join(root, '../shared/corpus'),
        ...environment,
      },
    });
  }

  async remove(): Promise<void> {
    await stopDetachedServer(`${this.#memory}/postgres`, silentReporter);
    for (const folder of [this.#memory, this.path]) rmSync(folder, { recursive: true, force: true });
  }
}

/** These test files by the rules that their titles name. */
function findTestsOfRules(tests: readonly string[], read: (file: string) => string): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const file of tests) {
    const rules = new Set<string>();
    for (const [, , title] of read(file).matchAll(/\b(?:test|it|describe)\(\s*(['"`])([\s\S]*?)\1/g))
      for (const [rule] of title!.matchAll(/\b(?:API|NET)-\d+(?:\.[0-9A-Za-z]+)*/g)) rules.add(rule);
    for (const rule of rules) found.set(rule, [...(found.get(rule) ?? []), file]);
  }
  return found;
}

/** What each test executes of the code, kept for the same tree. */
async function readExecuted(copy: Copy, tests: readonly string[], kept: string) {
  if (!existsSync(kept)) {
    const partly = `${kept}.part`;
    mkdirSync(partly, { recursive: true });
    for (const [test, files] of await copy.measureCoverage(tests))
      writeFileSync(join(partly, encodeURIComponent(test)), JSON.stringify([...files]));
    renameSync(partly, kept);
  }
  const executed = new Map<string, Map<string, Executed[]>>();
  for (const name of readdirSync(kept)) {
    const files = JSON.parse(readFileSync(join(kept, name), 'utf8')) as [string, Executed[]][];
    executed.set(decodeURIComponent(name), new Map(files));
  }
  return executed;
}

const usage = `usage: npm run mutate [-- --seed N --count N] [--at I …]
  --seed N --count N   draws so many breaks (120) from a seed (1): a rule of the specification, a place that its tests execute and
                       few others do, and an operator, condition, number, statement or SQL comparison there
  --at I               only the I-th of them; may be repeated`;

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      help: { type: 'boolean', default: false },
      seed: { type: 'string', default: '1' },
      count: { type: 'string', default: '120' },
      at: { type: 'string', multiple: true },
    },
  });
  if (values.help) {
    console.log(usage);
    return 0;
  }
  const tree = openTree(root);
  const readText = (file: string) => tree.read(file);
  const copies = Array.from({ length: availableParallelism() }, () => new Copy(tree.files));
  try {
    const tests = tree.files.filter(
      (name) =>
        name.endsWith('.test.ts') &&
        !name.startsWith('tools/') &&
        (!isSlow(root, name) || slowTests.test(name)),
    );
    const hash = createHash('sha256');
    for (const file of tree.files.filter((name) => /^(?!tools\/).*\.ts$/.test(name)))
      hash.update(`${file}\0${readText(file)}\0`);
    const kept = `${root}/.cache/coverage/${hash.digest('hex').slice(0, 16)}`;
    const executed = await readExecuted(copies[0]!, tests, kept);
    const testsOfRules = findTestsOfRules(tests, readText);
    const places = { testsOfRules, executed, readText, isCode };
    const breaks = drawBreaks(places, Number(values.seed), Number(values.count));
    const waiting = [...breaks.entries()].filter(([i]) => !values.at || values.at.includes(`${i + 1}`));
    const tried = waiting.length;
    let survivors = 0;
    const work = async (copy: Copy) => {
      for (let next = waiting.shift(); next; next = waiting.shift()) {
        const [i, one] = next;
        const text = readText(one.file);
        writeFileSync(join(copy.path, one.file), breakText(text, one));
        let failed: string | null = null;
        for (let at = 0; at < one.tests.length && failed === null; at += together)
          failed = await copy.run(one.tests.slice(at, at + together));
        failed ??= await copy.checkTypes();
        writeFileSync(join(copy.path, one.file), text);
        if (failed === null) survivors += 1;
        const line = text.slice(0, one.start).split('\n').length;
        const was = text.slice(one.start, one.end).replace(/\s+/g, ' ');
        const place = `${i + 1}  ${one.rule}  ${one.file}:${line}  ${was} → ${one.replacement}`;
        console.log(`${failed === null ? 'survived' : 'noticed '} ${place}`);
        console.log(`           ${failed ?? `passed: ${one.tests.length} files`}`);
      }
    };
    await Promise.all(copies.map(work));
    console.log(`${tried} breaks: ${tried - survivors} noticed, ${survivors} survived`);
    return survivors === 0 ? 0 : 1;
  } finally {
    for (const copy of copies) await copy.remove();
  }
}

process.exitCode = await main();
