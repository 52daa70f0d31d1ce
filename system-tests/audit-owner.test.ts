// Slow: starts a PostgreSQL as an operator has it, and dumps and restores it twice.
/** The audit trail's own role on a PostgreSQL of the operator's, as docs/operating/databases.md, restore.md and move.md say. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { silentReporter } from '#common/reporter/index.ts';
import { createDatabase } from '#service-kit/postgres/index.ts';
import { startOwnPostgres } from './testing/own-postgres.ts';

const fileAt = (path: string) => fileURLToPath(new URL(`../${path}`, import.meta.url));

test('each start warns until audit.sql was run; a restore by the administrator keeps it, a move runs it again', async (t) => {
  await using server = await startOwnPostgres();
  const folder = mkdtempSync(join(tmpdir(), 'svc-audit-owner-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const url = (program: string) => `postgres://svc_${program}:secret@${server.host}/${program}`;
  for (const program of ['operations', 'monitor'])
    writeFileSync(join(folder, `${program}-database-url`), `${url(program)}\n`);
  server.setPasswords(folder);
  /** Starts the program's database once: whether the start warned, and whether the role could switch the triggers off. */
  const start = async () => {
    const warnings: string[] = [];
    const reporter = { ...silentReporter, warn: (message: string) => void warnings.push(message) };
    const database = createDatabase({
      ...{ program: 'operations', urlSetting: 'X', url: url('operations'), programDir: folder, reporter },
      migrations: fileAt('operations/migrations'),
    });
    await database.start();
    const disable = 'begin; alter table audit_entries disable trigger all; rollback';
    const disabled = await database.pool.query(disable).then(
      () => true,
      () => false,
    );
    await database.stop();
    return {
      warns: warnings.includes("the program's own role can change and delete the audit trail"),
      disabled,
    };
  };
  const protect = () =>
    server.run('psql', '-v', 'ON_ERROR_STOP=1', '-f', fileAt('packaging/postgres/audit.sql'), 'operations');
  const empty = () => {
    server.run('psql', '-c', 'drop database operations with (force)', 'postgres');
    const make = "create database operations owner svc_operations encoding 'UTF8' template template0";
    server.run('psql', '-c', make, 'postgres');
  };
  const [open, closed] = [
    { warns: true, disabled: true },
    { warns: false, disabled: false },
  ];
  assert.deepEqual(await start(), open);
  protect();
  assert.deepEqual(await start(), closed);

  const [kept, moved] = [join(folder, 'kept.dump'), join(folder, 'moved.dump')];
  server.run('pg_dump', '--format=custom', `--file=${kept}`, 'operations');
  const plain = ['--format=custom', '--no-owner', '--no-privileges', `--file=${moved}`];
  server.run('pg_dump', ...plain, url('operations'));
  empty();
  server.run('pg_restore', '--exit-on-error', '--dbname=operations', kept);
  assert.deepEqual(await start(), closed, 'restored');
  empty();
  const asProgram = ['--exit-on-error', '--no-owner', '--role=svc_operations', '--dbname=operations'];
  server.run('pg_restore', ...asProgram, moved);
  assert.deepEqual(await start(), open, 'moved');
  protect();
  assert.deepEqual(await start(), closed);
});
