import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { batchMax, planTests } from './plan-tests.ts';

/** Plans these files, by their texts; `first` are slow ones that begin before all others. */
function plan(
  texts: Record<string, string>,
  part: 'fast' | 'slow' = 'fast',
  first: { waiting: string[][]; longest: string[][] } = { waiting: [], longest: [] },
) {
  const root = mkdtempSync(join(tmpdir(), 'svc-plan-'));
  try {
    for (const [file, text] of Object.entries(texts)) {
      mkdirSync(dirname(join(root, file)), { recursive: true });
      writeFileSync(join(root, file), text);
    }
    return planTests(root, Object.keys(texts), part, first);
  } finally {
    rmSync(root, { recursive: true });
  }
}

test('files that start no program share processes of a bounded number, others have their own', () => {
  const names = Array.from({ length: batchMax.fast + 2 }, (_, i) => `monitor/a/${i}.test.ts`);
  const alone = [
    'lab/lab.test.ts',
    'proofs/sensor/a.test.ts',
    'sensor/commands/a.test.ts',
    'tools/a.test.ts',
  ];
  const last = ['lab/a/b.test.ts', 'sensor/a/b.test.ts', 'system-tests/c.test.ts'];
  const texts = Object.fromEntries([...names, ...alone, ...last].map((file) => [file, "test('x', f);"]));
  assert.deepEqual(plan(texts).batches, [
    ...alone.map((file) => [file]),
    names.slice(0, batchMax.fast),
    [...names.slice(batchMax.fast), ...last],
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
    ['monitor/b.test.ts'],
    ['monitor/a.test.ts', 'monitor/c.test.ts', 'monitor/d.test.ts'],
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

test('a file whose first line says why it is slow is planned with the slow ones only', () => {
  const texts = {
    'monitor/a.test.ts': '',
    'monitor/b.test.ts': '// Slow: it kills a monitor forty times.\n',
    'monitor/c.test.ts': '// Slow:\n',
    'monitor/d.test.ts': '\n// Slow: it says so too late.\n',
  };
  assert.deepEqual(plan(texts).batches, [['monitor/a.test.ts', 'monitor/c.test.ts', 'monitor/d.test.ts']]);
  assert.deepEqual(plan(texts, 'slow').batches, [['monitor/b.test.ts']]);
});

test('of the slow files the longest begin first, those that wait run beside them, small ones share processes, and others are refused', () => {
  const long = ['system-tests/long.test.ts', 'monitor/long.test.ts'];
  const waiting = ['system-tests/waits.test.ts', 'system-tests/a.test.ts'];
  const alone = 'lab/a.test.ts';
  const sharing = Array.from({ length: batchMax.slow + 1 }, (_, i) => `monitor/${i}.test.ts`);
  const slow = [alone, ...sharing, ...long, ...waiting];
  const texts = Object.fromEntries(slow.map((file) => [file, '// Slow: it waits.']));
  const first = { waiting: [waiting], longest: [long] };
  assert.deepEqual(plan(texts, 'slow', first), {
    waiting: [waiting],
    batches: [long, sharing.slice(0, batchMax.slow), sharing.slice(batchMax.slow), [alone]],
  });
  for (const refused of ['gone.test.ts', 'monitor/fast.test.ts'])
    assert.throws(
      () => plan({ ...texts, 'monitor/fast.test.ts': '' }, 'slow', { waiting: [], longest: [[refused]] }),
      new RegExp(`not slow: ${refused}`),
    );
});
