// Slow: makes and restores a whole server, beside a program that writes.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import {
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { zstdDecompressSync } from 'node:zlib';
import pg from 'pg';
import { silentReporter } from '#common/reporter/index.ts';
import { type BackupTarget, backUp, restore } from './backup.ts';
import { createEmbeddedPostgres } from './index.ts';

const folder = mkdtempSync(join(tmpdir(), 'svc-backup-'));
after(() => rmSync(folder, { recursive: true, force: true }));

const targetIn = (name: string): BackupTarget => ({
  program: 'monitor',
  urlSetting: 'SVC_X_URL',
  url: null,
  programDir: join(folder, name),
  reporter: silentReporter,
});
const serverOf = (target: BackupTarget) =>
  createEmbeddedPostgres({
    dir: join(target.programDir, 'postgres'),
    databaseName: target.program,
    urlSetting: target.urlSetting,
    reporter: silentReporter,
  });

test('a backup beside a writing program restores to one moment: all that was committed before its end, nothing by halves', async (t) => {
  const target = targetIn('first');
  const server = serverOf(target);
  await server.start();
  t.after(() => server.stop());
  const pool = new pg.Pool({ connectionString: server.url });
  pool.on('error', () => {});
  // Two tables that every transaction changes together, and one that no crash keeps.
  await pool.query(
    'create table a (n int primary key); create table b (n int primary key); create unlogged table u (n int)',
  );
  const file = join(folder, 'monitor.backup');
  let written = 0;
  let isDone = false;
  const writing = (async () => {
    while (!isDone) {
      written += 1;
      await pool.query(`with x as (insert into a values (${written})) insert into b values (${written})`);
    }
  })();
  while (written < 200) await new Promise((wake) => setImmediate(wake));
  const before = written - 1;
  const { bytes, manifest } = await backUp(target, file, { mayBeEmpty: true });
  const after = written;
  isDone = true;
  await writing;
  await pool.end();
  assert.equal(bytes, statSync(file).size);
  assert.equal(statSync(file).mode & 0o777, 0o600);
  assert.equal(manifest.program, 'monitor');
  await assert.rejects(backUp(target, file), /exists already; a backup is never overwritten/);
  await assert.rejects(restore(target, file), /move that folder away first/);

  const second = targetIn('second');
  assert.deepEqual(await restore(second, file), manifest);
  const restored = serverOf(second);
  await restored.start();
  t.after(() => restored.stop());
  const client = new pg.Client({ connectionString: restored.url });
  await client.connect();
  const { rows } = await client.query(
    `select (select count(*)::int from a) as a, (select max(n) from a) as max, (select count(*)::int from b join a using (n)) as both,
       (select count(*)::int from u) as unlogged`,
  );
  await client.query('insert into a values (1000000)');
  await client.end();
  const { a, max, both, unlogged } = rows[0] as Record<string, number>;
  assert.equal(a, max);
  assert.equal(both, a);
  assert.equal(unlogged, 0);
  assert.ok(a! >= before && a! <= after, `${before} ≤ ${a} ≤ ${after}`);
});

test('a backup by root holds no file that a link in the data names, and overwrites none beside its own', {
  skip: process.getuid?.() === 0 ? false : 'needs root',
}, async (t) => {
  const target = targetIn('linked');
  const server = serverOf(target);
  await server.start();
  t.after(() => server.stop());
  const secret = randomBytes(16).toString('hex');
  const aim = join(folder, 'secret');
  writeFileSync(aim, secret, { mode: 0o600 });
  const file = join(folder, 'linked.backup');
  symlinkSync(aim, join(target.programDir, 'postgres/data/pg_wal/00000009.history'));
  symlinkSync(aim, `${file}.part`);
  await backUp(target, file, { mayBeEmpty: true });
  assert.equal(zstdDecompressSync(readFileSync(file)).includes(secret), false);
  assert.equal(readFileSync(aim, 'utf8'), secret);
  const restored = targetIn('unlinked');
  await restore(restored, file);
  assert.notEqual(statSync(join(restored.programDir, 'postgres/data')).uid, 0);
});

test('what is cut, flipped or of another program is refused, and nothing stays of it', async () => {
  const file = join(folder, 'monitor.backup');
  const whole = readFileSync(file);
  const target = targetIn('third');
  const data = join(target.programDir, 'postgres/data');
  const refused = async (reason: RegExp, use: BackupTarget = target) => {
    await assert.rejects(restore(use, join(folder, 'bad.backup')), reason);
    assert.throws(() => statSync(data));
    assert.throws(() => statSync(`${data}.restoring`));
  };
  writeFileSync(join(folder, 'bad.backup'), whole);
  await refused(/backup of monitor in format 1, not of operations/, { ...target, program: 'operations' });
  truncateSync(join(folder, 'bad.backup'), Math.floor(whole.length * 0.9));
  await refused(/no whole backup/);
  const flipped = Buffer.from(whole);
  flipped[Math.floor(whole.length / 2)]! ^= 0x10;
  writeFileSync(join(folder, 'bad.backup'), flipped);
  await refused(/no whole backup/);
  await assert.rejects(
    backUp({ ...target, url: 'postgres://x' }, join(folder, 'y')),
    /pg_dump --format=custom --file=monitor.dump "\$SVC_X_URL"/,
  );
});
