import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { isExecuted, readCoverage } from './read-coverage.ts';

const runner = new URL('../run-tests.ts', import.meta.url).href;

test('what a test file executes is told apart from what others execute in the same process, and from loading', () => {
  const dir = mkdtempSync(join(tmpdir(), 'svc-coverage-'));
  try {
    const code =
      'export const one = () => 1111;\nexport const two = () => 2222;\nexport const none = 3333;\n';
    writeFileSync(join(dir, 'code.mjs'), code);
    const files = ['one', 'two'].map((name) => {
      const text = `import { test } from 'node:test';\nimport { ${name} } from './code.mjs';\ntest('${name}', () => void ${name}());\n`;
      writeFileSync(join(dir, `${name}.test.mjs`), text);
      return join(dir, `${name}.test.mjs`);
    });
    const raw = join(dir, 'raw');
    mkdirSync(raw);
    const script = `
      import { runTests } from ${JSON.stringify(runner)};
      await runTests([{ batches: [${JSON.stringify(files)}], concurrency: 1 }]);`;
    const { NODE_TEST_CONTEXT: _, ...env } = process.env;
    const args = ['--input-type=module', '-e', script];
    const ran = spawnSync(process.execPath, args, {
      env: { ...env, NODE_V8_COVERAGE: raw },
      encoding: 'utf8',
    });
    assert.equal(ran.status, 0, ran.stdout + ran.stderr);
    const ofProcess = readdirSync(raw, { withFileTypes: true }).filter((entry) => entry.isDirectory());
    assert.equal(ofProcess.length, 1);
    const executedBy = (file: string) => {
      const parts = readCoverage(join(raw, ofProcess[0]!.name, encodeURIComponent(file)), dir).get(
        'code.mjs',
      )!;
      return ['1111', '2222', '3333'].filter((number) => isExecuted(parts, code.indexOf(number)));
    };
    assert.deepEqual(executedBy(files[0]!), ['1111']);
    assert.deepEqual(executedBy(files[1]!), ['2222']);
  } finally {
    rmSync(dir, { recursive: true });
  }
});
