/**
 * Runs test files one after the other in this process, and tells the parent what happens: files that share a process load
 * and compile the program once.
 *
 * usage: forked by tools/run-tests.ts with the files as arguments
 */
import asyncHooks from 'node:async_hooks';
import { readFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import type { HookFn } from 'node:test';
import type { TestEvent } from 'node:test/reporters';
import { fileURLToPath } from 'node:url';
import { getCallSites } from 'node:util';
import { describeFailure, type TestMessage } from './test-report.ts';

/** Hooks that the test runner makes. */
const runnersHooks: asyncHooks.AsyncHook[] = [];
const nodeTest = loadRunner();
/** Linux's unit of processor time, for programs. */
const ticksPerSecond = 100;
const files = process.argv.slice(2);
/** Where coverage is wanted, it is told apart by file. */
const divider = process.env.NODE_V8_COVERAGE
  ? [fileURLToPath(new URL('./mutations/divide-coverage.ts', import.meta.url))]
  : [];
keepHooksInFiles(files);

/**
 * The runner follows every promise of a process, to learn which test an uncaught error belongs to. This costs an eighth of
 * the processor time of tests that make many calls. It is needed only while files are loaded, for tests inside `describe`.
 */
function loadRunner() {
  const { createHook } = asyncHooks;
  asyncHooks.createHook = (callbacks) => {
    const hook = createHook(callbacks);
    runnersHooks.push(hook);
    return hook;
  };
  syncBuiltinESMExports();
  return process.getBuiltinModule('node:test');
}

/**
 * A hook outside of any group belongs to the tests of its own file. The runner would run it around those of every file in
 * the process, and one before the tests before the first of all files: a world would be made, and a time be taken, minutes
 * before its tests begin. To be called before the first import of `node:test`, which takes its functions as they are.
 */
function keepHooksInFiles(files: readonly string[]): void {
  const beginnings = new Map(files.map((file) => [file, createBeginning()]));
  const usual = { ...nodeTest };
  for (const name of ['beforeEach', 'afterEach'] as const) {
    nodeTest[name] = (hook, options) => {
      if (findCallers().some((caller) => divider.includes(caller))) return usual[name](hook, options);
      const file = findCaller(name, hook);
      const scoped: HookFn = async (context) => {
        if (context.filePath !== file) return;
        if (name === 'beforeEach') await beginnings.get(file)!.run(context);
        await hook!(context, () => {});
      };
      usual[name](scoped, options);
    };
  }
  nodeTest.before = (hook, options) => {
    const file = findCaller('before', hook);
    const beginning = beginnings.get(file)!;
    if (isInGroup()) {
      // That of the file runs first, as it does without this.
      usual.before(async (context) => {
        await beginning.run(context);
        await hook!(context, () => {});
      }, options);
      return;
    }
    beginning.hooks.push(hook!);
    usual.beforeEach((context) => (context.filePath === file ? beginning.run(context) : undefined), options);
  };
}

type HookContext = Parameters<HookFn>[0];

/** What runs once, before the first test of a file. */
interface Beginning {
  hooks: HookFn[];
  run(context: HookContext): Promise<void>;
}

function createBeginning(): Beginning {
  const hooks: HookFn[] = [];
  let done: Promise<void> | null = null;
  const runHooks = async (context: HookContext) => {
    for (const hook of hooks) await hook(context, () => {});
  };
  return {
    hooks,
    run(context) {
      done ??= runHooks(context);
      return done;
    },
  };
}

const findCallers = () =>
  getCallSites().map(({ scriptName }) =>
    scriptName.startsWith('file:') ? fileURLToPath(scriptName) : scriptName,
  );

function findCaller(name: string, hook: HookFn | undefined): string {
  const file = findCallers().find((caller) => files.includes(caller));
  if (!file || !hook || hook.length > 1)
    throw new Error(`${name} needs a hook without a callback, and a test file that calls it.`);
  return file;
}

/** The runner calls a group's function, and loads a file without being on its stack. */
function isInGroup(): boolean {
  return getCallSites(50).some(({ scriptName }) => scriptName.startsWith('node:internal/test_runner/'));
}

// An error that no test awaits fails the process, and the runner does not show it.
process.on('uncaughtExceptionMonitor', (error) => console.error(error));
process.on('unhandledRejection', (error) => console.error(error));

const tell = (message: TestMessage) => void process.send!(message);

/** What the tests of each file took that ended since processor time was read, in ms. */
let ended = new Map<string, number>();
/** Seconds by file, in the order in which they end. */
const spent = new Map<string, number>();
/** What was read last, in seconds; null until the files are loaded, which is a cost of all of them. */
let readSeconds: number | null = null;
let loadingEach = 0;

/**
 * Divides the processor time since the last call among the tests that ended: tests that never wait end without a turn of
 * the event loop between them. Tells of the files that are over.
 */
function divideTime(isEnd = false): void {
  const now = readProcessorTime();
  const wholeMs = [...ended.values()].reduce((sum, ms) => sum + ms, 0);
  for (const [file, ms] of ended) {
    const share = (now - readSeconds!) * (wholeMs > 0 ? ms / wholeMs : 1 / ended.size);
    spent.set(file, (spent.get(file) ?? loadingEach) + share);
  }
  if (ended.size > 0) readSeconds = now;
  ended = new Map();
  const last = isEnd ? undefined : [...spent.keys()].at(-1);
  for (const [file, cpuSeconds] of spent) {
    if (file === last) continue;
    tell({ kind: 'spent', file, cpuSeconds });
    spent.delete(file);
  }
}

/** Seconds of this process and of the programs it started that have ended. */
function readProcessorTime(): number {
  const fields = readFileSync('/proc/self/stat', 'utf8').split(') ')[1]!.split(' ');
  const [user, system, childrensUser, childrensSystem] = fields.slice(11, 15).map(Number);
  return (user! + system! + childrensUser! + childrensSystem!) / ticksPerSecond;
}

for await (const event of nodeTest.run({
  files: [...divider, ...files],
  isolation: 'none',
}) as AsyncIterable<TestEvent>) {
  if (event.type === 'test:dequeue') for (const hook of runnersHooks.splice(0)) hook.disable();
  if (event.data === undefined || !('file' in event.data) || event.data.file === undefined) continue;
  const { file } = event.data;
  if (readSeconds === null) {
    readSeconds = readProcessorTime();
    loadingEach = readSeconds / files.length;
  }
  if (event.type === 'test:diagnostic' && event.data.nesting > 0)
    tell({ kind: 'said', file, text: event.data.message });
  if (event.type !== 'test:pass' && event.type !== 'test:fail') continue;
  const { name, nesting, details, skip, todo } = event.data;
  const outcome = {
    ...{ file, name, nesting, ms: details.duration_ms, isSuite: details.type === 'suite' },
    isLeftOut: Boolean(skip || todo),
  };
  if (nesting === 0) {
    if (ended.size === 0) setImmediate(divideTime);
    ended.set(file, (ended.get(file) ?? 0) + details.duration_ms);
  }
  // An error may hold what can't be sent, so it goes as the text that is shown of it.
  // A file without a test passes by its own name.
  if (event.type === 'test:pass' && name !== file) tell({ kind: 'passed', ...outcome });
  if (event.type === 'test:fail')
    tell({ kind: 'failed', ...outcome, error: describeFailure(event.data.details.error) });
}
divideTime(true);
process.disconnect();
