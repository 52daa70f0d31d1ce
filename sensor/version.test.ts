import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { sensorVersion, versionText } from './version.ts';

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

test('NET-9.3: --version names the version and the wire of the specification', () => {
  const program = new URL('./svc-sensor.ts', import.meta.url).pathname;
  const { stdout } = spawnSync(process.execPath, [program, '--version'], { encoding: 'utf8' });
  assert.equal(stdout.trim(), versionText);
  assert.match(stdout, /^\d+\.\d+\.\d+ \(sensor wire of 0\.1\.24\)$/m);
});
