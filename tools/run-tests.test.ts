import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { closeRun } from './test-report.ts';

const runner = new URL('./run-tests.ts', import.meta.url).href;
const reporter = new URL('./test-report.ts', import.meta.url).href;

/** Runs these files in one process as the gate does; the others are expressions. */
function runTogether(
  texts: Record<string, string>,
  { after = 'undefined', options = '{}', closing = '{}' } = {},
): {
  status: number | null;
  output: string;
  errors: string;
} {
  const dir = mkdtempSync(join(tmpdir(), 'svc-run-tests-'));
  try {
    const files = Object.entries(texts).map(([name, text]) => {
      writeFileSync(join(dir, name), text);
      return join(dir, name);
    });
    const script = `
      import { runTests } from ${JSON.stringify(runner)};
      import { closeRun } from ${JSON.stringify(reporter)};
      const lane = { batches: [${JSON.stringify(files)}], concurrency: 1, after: ${after} };
      process.exitCode = closeRun(await runTests([lane], ${options}), ${closing});`;
    // Within a test, the runner would report to the one that runs this file.
    const { NODE_TEST_CONTEXT: _, ...env } = process.env;
    const result = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
      env,
      encoding: 'utf8',
    });
    return { status: result.status, output: result.stdout, errors: result.stderr };
  } finally {
    rmSync(dir, { recursive: true });
  }
}

const passing = "import { test } from 'node:test';\ntest('it passes', () => {});\n";

test('files that share a process are counted apart, and a failure is shown with its reason', () => {
  const failing =
    "import { test } from 'node:test';\ntest('it fails', () => { throw new Error('the reason'); });\n";
  const { status, output } = runTogether({ 'a.test.mjs': passing, 'b.test.mjs': failing });
  assert.equal(status, 1);
  assert.match(output, /^FAIL .*b\.test\.mjs\n {6}it fails\n {6}Error: the reason/m);
  assert.match(output, /^ok .*a\.test\.mjs {2}1 tests/m);
  assert.match(output, /1 passed, 1 failed/);
});

test('a file without a test, and one that cannot be loaded, fails', () => {
  const { status, output } = runTogether({
    'a.test.mjs': passing,
    'b.test.mjs': 'export {};\n',
    'c.test.mjs': "throw new Error('not loaded');\n",
  });
  assert.equal(status, 1);
  assert.match(output, /b\.test\.mjs\n {6}The file ran no test/);
  assert.match(output, /c\.test\.mjs\n {6}Error: not loaded/);
  assert.match(output, /1 passed, 2 failed/);
});

test('a process that dies fails, and so do the files that it had not run', () => {
  const dying =
    "import { test } from 'node:test';\ntest('it dies', () => process.kill(process.pid, 'SIGKILL'));\n";
  const { status, output } = runTogether({
    'a.test.mjs': passing,
    'b.test.mjs': dying,
    'c.test.mjs': passing,
  });
  assert.equal(status, 1);
  assert.match(output, /The process of .* ended with SIGKILL/);
  assert.match(output, /c\.test\.mjs\n {6}The file ran no test/);
});

test('a process that tells nothing for too long is ended, and fails', () => {
  const hanging =
    "import { test } from 'node:test';\ntest('it hangs', () => new Promise(() => setInterval(() => {}, 1000)));\n";
  const { status, output } = runTogether({ 'a.test.mjs': hanging }, { options: '{ silentMs: 1000 }' });
  assert.equal(status, 1);
  assert.match(output, /a\.test\.mjs\n {6}The file ran no test/);
  assert.match(output, /The process of .* ended with SIGTERM/);
});

test('failures that are not of tests count with theirs', () => {
  const { status, output } = runTogether({ 'a.test.mjs': passing }, { closing: '{ failedChecks: 2 }' });
  assert.equal(status, 1);
  assert.match(output, /1 passed, 2 failed/);
});

/** It fails in its first process, and leaves a mark for the second. */
const flaky = `
  import { test } from 'node:test';
  import { existsSync, writeFileSync } from 'node:fs';
  const mark = import.meta.filename + '.mark';
  test('it fails once', () => {
    if (existsSync(mark)) return;
    writeFileSync(mark, '');
    throw new Error('not alone');
  });`;

test('a failing file of a run with retries runs once more alone, and is named as flaky when it passes then', () => {
  const always =
    "import { test } from 'node:test';\ntest('it fails', () => { throw new Error('the reason'); });\n";
  const texts = { 'a.test.mjs': passing, 'b.test.mjs': flaky };
  const mended = runTogether(texts, { options: '{ retries: true }' });
  assert.equal(mended.status, 0, mended.output);
  assert.match(mended.output, /^Flaky: .*:\n {2}.*b\.test\.mjs$/m);
  assert.doesNotMatch(mended.output, /^Failed:/m);
  assert.match(mended.output, /^2 passed, 0 failed$/m);
  const failing = runTogether({ ...texts, 'c.test.mjs': always }, { options: '{ retries: true }' });
  assert.equal(failing.status, 1);
  assert.match(failing.output, /^Failed:\n {2}.*c\.test\.mjs: it fails$/m);
  assert.match(failing.output, /^2 passed, 1 failed$/m);
  const strict = runTogether(texts);
  assert.equal(strict.status, 1);
  assert.match(strict.output, /^1 passed, 1 failed$/m);
});

test('the closing lines name the ten slowest files, and those that take long without saying why', (t) => {
  const said: string[] = [];
  t.mock.method(console, 'log', (line: string) => void said.push(line));
  const results = Array.from({ length: 12 }, (_, i) => ({
    ...{ file: `${i}.test.ts`, passed: 2, failed: 0, failures: [] },
    ...{ seconds: i, cpuSeconds: i === 10 ? 5.1 : 5 },
  }));
  const status = closeRun(results, { times: ['it took long'], isFast: true });
  assert.equal(status, 0);
  const [slowest, heavy, end] = said;
  assert.equal(said.length, 3);
  assert.match(slowest!, /^\nThe slowest files:\n {2}11\.0 s, 5\.0 s of processor time: 11\.test\.ts\n/);
  assert.equal(slowest!.split('\n').length, 2 + 10);
  assert.match(heavy!, /^\nOver 5 s .*:\n {2}10\.0 s, .*: 10\.test\.ts$/);
  assert.equal(end, '\nit took long\n\n24 passed, 0 failed');
});

test('a lane that waits begins no test before', () => {
  const after = "Promise.reject(new Error('it did not come'))";
  const { status, output, errors } = runTogether({ 'a.test.mjs': passing }, { after });
  assert.equal(status, 1);
  assert.match(errors, /it did not come/);
  assert.doesNotMatch(output, /a\.test\.mjs/);
});

test('an error that no test awaits fails the run and is shown', () => {
  const throwing = `
    import { test } from 'node:test';
    test('it leaves a rejection behind', async () => {
      void Promise.reject(new Error('it is left alone'));
      await new Promise((wake) => setImmediate(wake));
    });`;
  const { status, output, errors } = runTogether({ 'a.test.mjs': throwing });
  assert.equal(status, 1);
  assert.match(errors, /Error: it is left alone/);
  assert.match(output, /[1-9] failed/);
});

test('tests inside a group run its hooks, and hooks of one group do not run around another', () => {
  const grouped = (name: string) => `
    import { beforeEach, describe, test } from 'node:test';
    globalThis.ranHooks ??= [];
    describe('${name}', () => {
      beforeEach(() => void ranHooks.push('${name}'));
      test('${name} inside', () => {
        const ran = ranHooks.splice(0).join();
        if (ran !== '${name}') throw new Error('hooks ran: ' + ran);
      });
    });`;
  const { status, output } = runTogether({ 'a.test.mjs': grouped('one'), 'b.test.mjs': grouped('two') });
  assert.equal(status, 0, output);
  assert.match(output, /2 passed, 0 failed/);
});

test('a hook around each test of a file does not run around those of another', () => {
  const hooked = (name: string) => `
    import { afterEach, beforeEach, describe, test } from 'node:test';
    globalThis.ranHooks ??= [];
    const look = (wanted) => {
      const ran = ranHooks.splice(0).join();
      if (ran !== wanted) throw new Error('hooks ran: ' + ran);
    };
    beforeEach(() => void ranHooks.push('before ${name}'));
    afterEach(async () => void ranHooks.push('after ${name}'));
    test('${name} first', () => {
      if (ranHooks[0] === 'after one') ranHooks.shift();
      look('before ${name}');
    });
    describe('group', () => test('${name} inside', () => look('after ${name},before ${name}')));`;
  const { status, output } = runTogether({ 'a.test.mjs': hooked('one'), 'b.test.mjs': hooked('two') });
  assert.equal(status, 0, output);
  assert.match(output, /4 passed, 0 failed/);
});

test('a hook before the tests of a file runs once, when its first test begins, and before that of a group', () => {
  const hooked = (name: string) => `
    import { after, before, beforeEach, describe, test } from 'node:test';
    globalThis.steps ??= [];
    beforeEach(() => void steps.push('each ${name}'));
    before(async () => void steps.push('first ${name}'));
    before(() => void steps.push('second ${name}'));
    after(() => console.error(steps.splice(0).join('; ')));
    describe('group', () => {
      before(() => void steps.push('group ${name}'));
      test('${name} inside', () => void steps.push('test ${name}'));
    });
    test('${name} outside', () => void steps.push('test ${name}'));`;
  const { status, output, errors } = runTogether({
    'a.test.mjs': hooked('one'),
    'b.test.mjs': hooked('two'),
  });
  assert.equal(status, 0, output);
  const steps = (name: string) =>
    `first ${name}; second ${name}; group ${name}; each ${name}; test ${name}; each ${name}; test ${name}`;
  assert.ok(errors.includes(`${steps('one')}; ${steps('two')}`), errors);
});

test('a hook before the tests of a file that throws fails these tests, and no others', () => {
  const throwing = `
    import { before, test } from 'node:test';
    before(() => { throw new Error('it can not begin'); });
    test('one', () => {});
    test('two', () => {});`;
  const { status, output } = runTogether({ 'a.test.mjs': throwing, 'b.test.mjs': passing });
  assert.equal(status, 1);
  assert.match(output, /^FAIL .*a\.test\.mjs\n {6}one\n {6}Error: it can not begin/m);
  assert.match(output, /1 passed, 2 failed/);
});
