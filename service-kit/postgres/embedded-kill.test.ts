import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { until } from '#service-kit/testing/until.ts';
import { embeddedIn, query } from './testing/embedded-server.ts';

test('acknowledged rows survive the kill of the server, and it comes back by itself', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'svc-pg-'));
  const server = embeddedIn(dir);
  await server.start();
  t.after(async () => {
    await server.stop();
    rmSync(dir, { recursive: true });
  });
  await query(server.url, 'create table kept (n int)');
  await query(server.url, 'insert into kept values (1)');
  const pid = Number(readFileSync(join(dir, 'data/postmaster.pid'), 'utf8').split('\n')[0]);
  process.kill(pid, 'SIGKILL');
  await until(
    'the server is back',
    120_000,
    async () => (await query(server.url, 'select n from kept')).length === 1,
  );
  assert.notEqual(Number(readFileSync(join(dir, 'data/postmaster.pid'), 'utf8').split('\n')[0]), pid);
});

test('a folder that can not be made is said in one sentence that names the settings', async () => {
  await assert.rejects(embeddedIn('/proc/nothing/postgres').start(), /SVC_DATA_DIR/);
});
