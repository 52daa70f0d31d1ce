import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { silentReporter } from '#common/reporter/index.ts';
import { stopOrphan } from './orphan.ts';

test('a dead server that its parent has not collected yet is waited for, not taken for gone', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'svc-orphan-'));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  copyFileSync('/bin/true', join(dir, 'postgres'));
  // By then the shell has become `sleep`, which never asks what became of its child: a zombie until the sleep ends.
  const parent = spawn('sh', ['-c', '(sleep 0.3; exec ./postgres) & echo $!; exec sleep 2'], {
    cwd: dir,
    stdio: 'pipe',
  });
  const [line] = (await once(parent.stdout, 'data')) as [Buffer];
  const pid = Number(line.toString());
  while (!/\(postgres\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))) {
    await new Promise((resolve) => setImmediate(resolve));
  }
  writeFileSync(join(dir, 'postmaster.pid'), `${pid}\n`);
  await stopOrphan(dir, join(dir, 'socket'), silentReporter);
  assert.equal(existsSync(`/proc/${pid}`), false);
});
