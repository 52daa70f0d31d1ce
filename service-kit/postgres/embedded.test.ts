import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import pg from 'pg';
import { silentReporter } from '#common/reporter/index.ts';
import { createEmbeddedPostgres } from './index.ts';

function embedded(dir: string) {
  return createEmbeddedPostgres({
    dir,
    databaseName: 'operations',
    urlSetting: 'SVC_X_URL',
    reporter: silentReporter,
  });
}

async function query(url: string, text: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => {});
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + 30_000;
  while (!(await condition().catch(() => false))) {
    assert.ok(Date.now() < deadline, 'in time');
    await new Promise((wake) => setImmediate(wake));
  }
}

test('acknowledged rows survive the kill of the server, and it comes back by itself', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'svc-pg-'));
  const server = embedded(dir);
  await server.start();
  t.after(async () => {
    await server.stop();
    rmSync(dir, { recursive: true });
  });
  await query(server.url, 'create table kept (n int)');
  await query(server.url, 'insert into kept values (1)');
  const pid = Number(readFileSync(join(dir, 'data/postmaster.pid'), 'utf8').split('\n')[0]);
  process.kill(pid, 'SIGKILL');
  await until(async () => (await query(server.url, 'select n from kept')).length === 1);
  assert.notEqual(Number(readFileSync(join(dir, 'data/postmaster.pid'), 'utf8').split('\n')[0]), pid);
});

test('a start after the kill of the owner takes over from the orphan and finds its rows', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'svc-pg-'));
  const script = `
    import { createEmbeddedPostgres } from '#service-kit/postgres/index.ts';
    import { silentReporter } from '#common/reporter/index.ts';
    const server = createEmbeddedPostgres({ dir: process.argv[1], databaseName: 'operations', urlSetting: 'X', reporter: silentReporter });
    await server.start();
    console.log(server.url);
    setInterval(() => {}, 1000);`;
  const owner = spawn(process.execPath, ['--input-type=module', '-e', script, dir], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const url = await new Promise<string>((done) =>
    owner.stdout.once('data', (text) => done(String(text).trim())),
  );
  await query(url, 'create table kept (n int)');
  await assert.rejects(embedded(dir).start(), /Another process already runs/);
  owner.kill('SIGKILL');
  await new Promise((done) => owner.once('exit', done));
  const server = embedded(dir);
  await server.start();
  t.after(async () => {
    await server.stop();
    rmSync(dir, { recursive: true });
  });
  assert.deepEqual(await query(server.url, 'select n from kept'), []);
});

test('a folder that can not be made is said in one sentence that names the settings', async () => {
  await assert.rejects(embedded('/proc/nothing/postgres').start(), /SVC_DATA_DIR/);
});
