import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chownSync,
  copyFileSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { silentReporter } from '#common/reporter/index.ts';
import { stopOrphan } from './cluster.ts';

test('a dead server that its parent has not collected yet is waited for, not taken for gone', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'svc-orphan-'));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  copyFileSync('/bin/true', join(dir, 'postgres'));
  // The shell becomes `sleep`, which never asks what became of its child: a zombie until the sleep ends.
  const script = '(until [ -e go ]; do sleep 0.01; done; exec ./postgres) & echo $!; exec sleep 600';
  const parent = spawn('sh', ['-c', script], { cwd: dir, stdio: 'pipe' });
  const [line] = (await once(parent.stdout, 'data')) as [Buffer];
  const pid = Number(line.toString());
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  while (readFileSync(`/proc/${parent.pid}/comm`, 'utf8') !== 'sleep\n') await turn();
  writeFileSync(join(dir, 'go'), '');
  while (!/\(postgres\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))) await turn();
  writeFileSync(join(dir, 'postmaster.pid'), `${pid}\n`);
  let isGone = false;
  const stopped = stopOrphan(dir, join(dir, 'socket'), silentReporter).then(() => {
    isGone = !existsSync(`/proc/${pid}`);
  });
  // By then it has looked.
  for (let turns = 0; turns < 500; turns += 1) await turn();
  parent.kill();
  await stopped;
  assert.ok(isGone);
});

test("a server of another user is none of the folder's: its user has root end nothing that it may not end itself", {
  skip: process.getuid?.() === 0 ? false : 'needs root',
}, async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'svc-orphan-'));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  copyFileSync('/bin/sleep', join(dir, 'postgres'));
  const server = spawn(join(dir, 'postgres'), ['600'], { stdio: 'ignore' });
  t.after(() => server.kill('SIGKILL'));
  await once(server, 'spawn');
  writeFileSync(join(dir, 'postmaster.pid'), `${server.pid}\n`);
  chownSync(dir, 65_534, 65_534);
  await stopOrphan(dir, join(dir, 'socket'), silentReporter);
  assert.match(readFileSync(`/proc/${server.pid}/stat`, 'utf8'), /\(postgres\) [SRD]/);
});
