import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { planTests } from './plan-tests.ts';

/** Plans these files, by their texts; `first` are those that begin before all others. */
function plan(
  texts: Record<string, string>,
  first: { waiting: string[][]; longest: string[][] } = { waiting: [], longest: [] },
) {
  const root = mkdtempSync(join(tmpdir(), 'svc-plan-'));
  try {
    for (const [file, text] of Object.entries(texts)) {
      mkdirSync(dirname(join(root, file)), { recursive: true });
      writeFileSync(join(root, file), text);
    }
    return planTests(root, Object.keys(texts), first);
  } finally {
    rmSync(root, { recursive: true });
  }
}

test('files that start no program share processes of at most fifteen, others have their own', () => {
  const names = Array.from({ length: 17 }, (_, i) => `monitor/a/${i}.test.ts`);
  const alone = [
    'lab/lab.test.ts',
    'proofs/sensor/a.test.ts',
    'sensor/commands/a.test.ts',
    'tools/a.test.ts',
  ];
  const last = ['lab/a/b.test.ts', 'sensor/a/b.test.ts', 'system-tests/testing/c.test.ts'];
  const texts = Object.fromEntries(
    [...names, ...alone, ...last, 'system-tests/c.test.ts'].map((file) => [file, "test('x', f);"]),
  );
  assert.deepEqual(plan(texts).batches, [
    names.slice(0, 15),
    [...names.slice(15), ...last],
    ...alone.map((file) => [file]),
    ['system-tests/c.test.ts'],
  ]);
});

test('a file that says so has a process of its own', () => {
  const texts = {
    'monitor/a.test.ts': 'beforeEach(f);',
    'monitor/b.test.ts': '// Own process: it makes passwords dear.\n',
    'monitor/c.test.ts': "before(f);\nprocess.env.HOME === '/'",
    'monitor/d.test.ts': '',
  };
  assert.deepEqual(plan(texts).batches, [
    ['monitor/a.test.ts', 'monitor/c.test.ts', 'monitor/d.test.ts'],
    ['monitor/b.test.ts'],
  ]);
});

test('a file that changes or measures its process without saying so is refused by name', () => {
  for (const text of [
    "process.env.HOME = '/';",
    'delete process.env.HOME',
    'mock.timers.enable({});',
    "process.chdir('/');",
    'process.memoryUsage().arrayBuffers',
  ])
    assert.throws(
      () => plan({ 'operations/a.test.ts': text }),
      /operations\/a\.test\.ts changes or measures its process/,
    );
});

test('the longest begin first, those that wait run beside them, and a name of none is refused', () => {
  const long = ['system-tests/long.test.ts', 'monitor/long.test.ts'];
  const waiting = ['system-tests/waits.test.ts', 'system-tests/a.test.ts'];
  const texts = Object.fromEntries(['monitor/a.test.ts', ...long, ...waiting].map((file) => [file, '']));
  const first = { waiting: [waiting], longest: [long] };
  assert.deepEqual(plan(texts, first), {
    waiting: [waiting],
    batches: [long, ['monitor/a.test.ts']],
  });
  assert.throws(() => plan(texts, { waiting: [], longest: [['gone.test.ts']] }), /gone\.test\.ts/);
});
