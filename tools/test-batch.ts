/**
 * Runs test files one after the other in this process, and tells the parent what happens: files that share a process load
 * and compile the program once.
 *
 * usage: forked by tools/run-tests.ts with the files as arguments
 */
import asyncHooks from 'node:async_hooks';
import { syncBuiltinESMExports } from 'node:module';
import type { HookFn } from 'node:test';
import type { TestEvent } from 'node:test/reporters';
import { fileURLToPath } from 'node:url';
import { getCallSites } from 'node:util';
import { describeFailure } from './test-reporter.ts';

/** Hooks that the test runner makes. */
const runnersHooks: asyncHooks.AsyncHook[] = [];
const nodeTest = loadRunner();
const files = process.argv.slice(2);
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
 * A hook around each test, outside of any group, belongs to the tests of its own file. The runner would run it around those
 * of every file in the process. To be called before the first import of `node:test`, which takes its functions as they are.
 */
function keepHooksInFiles(files: readonly string[]): void {
  for (const name of ['beforeEach', 'afterEach'] as const) {
    const usual = nodeTest[name];
    nodeTest[name] = (hook, options) => {
      const file = getCallSites()
        .map(({ scriptName }) => (scriptName.startsWith('file:') ? fileURLToPath(scriptName) : scriptName))
        .find((caller) => files.includes(caller));
      if (!file || !hook || hook.length > 1)
        throw new Error(`${name} needs a hook without a callback, and a test file that calls it.`);
      const scoped: HookFn = (context) => (context.filePath === file ? hook(context, () => {}) : undefined);
      usual(scoped, options);
    };
  }
}

// An error that no test awaits fails the process, and the runner does not show it.
process.on('uncaughtExceptionMonitor', (error) => console.error(error));
process.on('unhandledRejection', (error) => console.error(error));

for await (const event of nodeTest.run({ files, isolation: 'none' }) as AsyncIterable<TestEvent>) {
  if (event.type === 'test:dequeue') for (const hook of runnersHooks.splice(0)) hook.disable();
  if (event.type === 'test:pass' || event.type === 'test:diagnostic') process.send!(event);
  // An error may hold what can't be sent, so it goes as the text that is shown of it.
  if (event.type === 'test:fail') {
    const { error } = event.data.details;
    process.send!({
      ...event,
      data: { ...event.data, details: { ...event.data.details, error: describeFailure(error) } },
    });
  }
}
process.disconnect();
