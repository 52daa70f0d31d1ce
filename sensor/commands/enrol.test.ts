import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const svc = fileURLToPath(new URL('../../svc.ts', import.meta.url));

test('enrol reads its token from a pipe or a file, so that it is not in the process list', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-enrol-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'token');
  writeFileSync(file, 'from-a-file\n');
  const enrol = (args: string[], input: string) => {
    const command = ['--disable-warning=ExperimentalWarning', svc, 'sensor', 'enrol', ...args];
    return spawnSync(process.execPath, command, {
      input,
      encoding: 'utf8',
      // fetch calls no server of this port: the token is read before the monitor is called.
      env: { ...process.env, SVC_DATA_DIR: folder, SVC_MONITOR_URL: 'http://127.0.0.1:9' },
    });
  };
  for (const [args, input] of [
    [[], 'from-a-pipe\n'],
    [['--token-file', file], ''],
  ] as const) {
    const answer = enrol([...args], input);
    assert.equal(answer.status, 1);
    assert.match(answer.stderr, /The monitor at http:\/\/127\.0\.0\.1:9 did not answer/);
  }
  assert.match(enrol([], '').stderr, /No token was given/);
  assert.match(enrol(['--token-file', join(folder, 'none')], '').stderr, /token can not be read: .*none/);
});
