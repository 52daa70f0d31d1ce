import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { sensorVersion } from './version.ts';

test('programs, packages and images have one version', () => {
  const read = (path: string) => readFileSync(new URL(`../${path}`, import.meta.url), 'utf8');
  assert.equal(JSON.parse(read('package.json')).version, sensorVersion);
  for (const path of [
    'containers/compose.yaml',
    'containers/Dockerfile',
    'kubernetes/monitor.yaml',
    'kubernetes/operations.yaml',
  ]) {
    const tags = [...read(`packaging/${path}`).matchAll(/\bsvc:(\d[\w.]*)/g)].map(([, tag]) => tag);
    assert.deepEqual([...new Set(tags)], [sensorVersion], path);
  }
});
