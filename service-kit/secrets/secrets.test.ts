import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, open, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { hasCode } from '#common/errors/index.ts';
import { createReporter, silentReporter } from '#common/reporter/index.ts';
import { factorSecrets } from '#service-kit/second-factors/index.ts';
import { createTestDatabase, type TestDatabase } from '#service-kit/testing/index.ts';
import { createKeyWrapper, createSecrets, type KeyWrapper, type Secrets } from './index.ts';
import { createTestSecrets, testWrapper } from './testing/test-secrets.ts';

const [column] = factorSecrets;
const actor = { kind: 'system', job: 'test' } as const;

function openSecrets(database: TestDatabase, wrapper: KeyWrapper = testWrapper): Secrets {
  const deps = { db: () => database.db, program: 'test', columns: factorSecrets };
  return createSecrets({ ...deps, wrapper, reporter: silentReporter });
}

/** Seals a secret in a row of its own, as a feature does. */
async function put({ db }: TestDatabase, secrets: Secrets, row: number, secret: string): Promise<void> {
  await secrets.ready();
  await db.transaction().execute(async (trx) => {
    const sealed = await secrets.seal(trx, column, row, secret);
    await trx
      .insertInto('totp_secrets')
      .values({ person_id: row, sealed_secret: sealed })
      .onConflict((at) => at.column('person_id').doUpdateSet({ sealed_secret: sealed }))
      .execute();
  });
}

async function get({ db, pool }: TestDatabase, secrets: Secrets, row: number): Promise<string> {
  await secrets.ready();
  const { rows } = await pool.query('select sealed_secret from totp_secrets where person_id = $1', [row]);
  return (await secrets.open(db, column, row, rows[0].sealed_secret)).toString();
}

const count = async ({ pool }: TestDatabase, from: string): Promise<number> =>
  (await pool.query(`select count(*)::int as count from ${from}`)).rows[0].count;

async function makeFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-secrets-'));
  t.after(() => rm(folder, { recursive: true }));
  return folder;
}

function keyFile(folder: string, file: string | null = null): KeyWrapper {
  return createKeyWrapper({ settingPrefix: 'SVC_TEST_SECRETS_KEY', file, command: null, programDir: folder });
}

const keyService = fileURLToPath(new URL('./testing/key-service.ts', import.meta.url));
function keyCommand(name: string): KeyWrapper {
  const command = `${process.execPath} ${keyService} ${name}`;
  return createKeyWrapper({
    settingPrefix: 'SVC_TEST_SECRETS_KEY',
    file: null,
    command,
    programDir: '/nowhere',
  });
}

test('a sealed secret opens in its own row alone: moved, changed and foreign bytes are refused', async () => {
  await using database = await createTestDatabase('service-kit');
  const secrets = openSecrets(database);
  await put(database, secrets, 1, 'first secret');
  await put(database, secrets, 2, 'second secret');
  assert.equal(await get(database, secrets, 1), 'first secret');
  const { rows } = await database.pool.query('select sealed_secret from totp_secrets where person_id = 1');
  const sealed: Buffer = rows[0].sealed_secret;
  assert.ok(!sealed.includes('first secret'), 'no clear text');
  const refused = (error: unknown) => hasCode(error, 'secrets.refused');
  await assert.rejects(secrets.open(database.db, column, 2, sealed), refused, 'another row');
  for (let at = 5; at < sealed.length; at += 1) {
    const changed = Buffer.from(sealed);
    changed[at]! ^= 1;
    await assert.rejects(secrets.open(database.db, column, 1, changed), refused, `byte ${at}`);
  }
  for (const bytes of [
    null,
    Buffer.alloc(0),
    sealed.subarray(0, 20),
    Buffer.from('a clear secret of before'),
  ])
    await assert.rejects(secrets.open(database.db, column, 1, bytes), refused);
  const elsewhere = { ...column, sealed: 'another_column' };
  const other = createTestSecrets({ db: () => database.db, program: 'test', columns: [elsewhere] });
  await assert.rejects(other.open(database.db, elsewhere, 1, sealed), refused, 'another column');
  const program = createTestSecrets({ db: () => database.db, program: 'other', columns: factorSecrets });
  await assert.rejects(program.ready(), /not wrapped/, 'another program');
  await assert.rejects(secrets.open(database.db, elsewhere, 1, sealed), /not declared/);
  await assert.rejects(secrets.seal(database.db, column, 1, 'x'), /in the transaction/);
});

test('clear values of before are sealed at the start, and the files of the database hold none any more', async () => {
  await using database = await createTestDatabase('service-kit');
  const { pool } = database;
  const clear = (row: number) => `a clear secret of before ${row}!`;
  const insert = (row: number) =>
    pool.query('insert into totp_secrets (person_id, clear_secret) values ($1, $2)', [row, clear(row)]);
  for (let row = 1; row <= 3; row += 1) await insert(row);
  await pool.query('analyze totp_secrets');
  for (let row = 4; row <= 250; row += 1) await insert(row);
  assert.ok(
    (await filesWith(database, 'a clear secret of before')).length >= 2,
    'the table and its statistics',
  );
  const log: string[] = [];
  const reporter = createReporter({ program: 'test', write: (line) => log.push(line) });
  const deps = { db: () => database.db, program: 'test', columns: factorSecrets, wrapper: testWrapper };
  await createSecrets({ ...deps, reporter }).part.start();
  assert.match(log.join(), /^[^,]*secrets sealed[^,]*$/);
  assert.equal(await count(database, 'totp_secrets where clear_secret is not null'), 0);
  assert.equal(await get(database, openSecrets(database), 250), clear(250));
  assert.deepEqual(await filesWith(database, 'a clear secret of before'), []);
});

/** Files of this database, beside the write-ahead log, that hold these words. */
async function filesWith({ pool }: TestDatabase, words: string): Promise<string[]> {
  await pool.query('checkpoint');
  const { rows } = await pool.query<{ file: string }>(
    `select coalesce((select relname from pg_class c where pg_relation_filenode(c.oid)::text = file), file) as file from pg_database d, pg_ls_dir('base/' || d.oid) file
     where datname = current_database() and position($1::bytea in pg_read_binary_file('base/' || d.oid || '/' || file)) > 0`,
    [Buffer.from(words)],
  );
  return rows.map((row) => row.file);
}

test('a rotation seals every row anew while other processes write, and deletes the former key', async () => {
  await using database = await createTestDatabase('service-kit');
  const [first, second] = [openSecrets(database), openSecrets(database)];
  const expected = new Map<number, string>();
  for (let row = 1; row <= 120; row += 1) {
    await put(database, first, row, `secret ${row}`);
    expected.set(row, `secret ${row}`);
  }
  let isOver = false;
  const writer = (async () => {
    for (let round = 0; !isOver; round += 1) {
      const row = 1 + (round % 150);
      await put(database, second, row, `round ${round}`);
      expected.set(row, `round ${round}`);
      assert.equal(await get(database, second, row), `round ${round}`);
    }
  })();
  for (const keyId of [2, 3]) {
    const result = await first.rotate(actor);
    assert.equal(result.keyId, keyId);
    assert.equal(result.deletedKeys, 1);
  }
  isOver = true;
  await writer;
  assert.equal(await count(database, 'data_keys'), 1);
  const fresh = openSecrets(database);
  for (const [row, secret] of expected) {
    assert.equal(await get(database, fresh, row), secret);
    assert.equal(await get(database, second, row), secret);
  }
  const { rows } = await database.pool.query(
    "select after from audit_entries where operation = 'secrets.rotate_key'",
  );
  assert.deepEqual(
    rows.map((row) => row.after),
    [{ keyId: 2 }, { keyId: 3 }],
  );
});

test('a rotation waits for a transaction that seals with the former key, and seals its row anew', async () => {
  await using database = await createTestDatabase('service-kit');
  const [rotating, writing] = [openSecrets(database), openSecrets(database)];
  await put(database, writing, 1, 'first');
  let finish = () => {};
  const isFinishing = new Promise<void>((done) => {
    finish = done;
  });
  let isSealed = () => {};
  const sealing = new Promise<void>((done) => {
    isSealed = done;
  });
  const write = database.db.transaction().execute(async (trx) => {
    const sealed = await writing.seal(trx, column, 2, 'second');
    isSealed();
    await isFinishing;
    await trx.insertInto('totp_secrets').values({ person_id: 2, sealed_secret: sealed }).execute();
  });
  await sealing;
  const rotation = rotating.rotate(actor);
  const waits = "pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
  while ((await count(database, waits)) === 0) await new Promise((wake) => setImmediate(wake));
  finish();
  await write;
  assert.deepEqual(await rotation, { keyId: 2, sealed: 2, deletedKeys: 1 });
  assert.equal(await get(database, openSecrets(database), 2), 'second');
});

test('a rotation that is killed at any statement loses nothing, and the next one ends it', async () => {
  await using database = await createTestDatabase('service-kit');
  for (let row = 1; row <= 5; row += 1) await put(database, openSecrets(database), row, `secret ${row}`);
  const script = fileURLToPath(new URL('./testing/killed-rotation.ts', import.meta.url));
  const rotate = async (statement: number) => {
    const child = spawn(process.execPath, [script, database.url, String(statement)], { stdio: 'ignore' });
    const [code, signal] = await once(child, 'close');
    return signal ?? code;
  };
  let killed = 0;
  for (const statement of [7, 13, 27, 37]) {
    killed += Number((await rotate(statement)) === 'SIGKILL');
    const reader = openSecrets(database);
    for (let row = 1; row <= 5; row += 1)
      assert.equal(await get(database, reader, row), `secret ${row}`, `killed before statement ${statement}`);
  }
  assert.equal(killed, 4);
  assert.equal(await rotate(0), 0);
  assert.equal(await count(database, 'data_keys'), 1);
  assert.equal(await get(database, openSecrets(database), 5), 'secret 5');
});

test('a row that does not open is named by the rotation, and the key that it may need is kept', async () => {
  await using database = await createTestDatabase('service-kit');
  const secrets = openSecrets(database);
  for (const row of [1, 2, 3]) await put(database, secrets, row, `secret ${row}`);
  // Row 2 gets the bytes of row 1.
  await database.pool.query(
    'update totp_secrets set sealed_secret = (select sealed_secret from totp_secrets where person_id = 1) where person_id = 2',
  );
  await assert.rejects(
    secrets.rotate(actor),
    (error: Error) => hasCode(error, 'secrets.refused') && /rows 2\b/.test(error.message),
  );
  assert.equal(await count(database, 'data_keys'), 2);
  assert.equal(await get(database, secrets, 3), 'secret 3');
  await put(database, secrets, 2, 'set anew');
  assert.equal((await secrets.rotate(actor)).deletedKeys, 2);
});

test('the first start makes the key file, for its owner alone; two at once make one key', async (t) => {
  await using database = await createTestDatabase('service-kit');
  const folder = await makeFolder(t);
  const both = [1, 2].map(() => openSecrets(database, keyFile(folder)));
  await Promise.all(both.map((one) => one.part.start()));
  assert.deepEqual(await readdir(folder), ['secrets.key']);
  assert.equal((await stat(join(folder, 'secrets.key'))).mode & 0o777, 0o600);
  assert.equal(await count(database, 'data_keys'), 1);
  await put(database, both[0]!, 1, 'secret');
  assert.equal(await get(database, both[1]!, 1), 'secret');
  const dump = JSON.stringify((await database.pool.query('select * from data_keys')).rows);
  const key = (await readFile(join(folder, 'secrets.key'), 'utf8')).split(':').at(-1)!.trim();
  assert.ok(!dump.includes(key), 'the key of the file is not in the database');
});

test('a key file that is there is enough: nothing is written to its folder, where a mounted secret is', async (t) => {
  const made = await makeFolder(t);
  await using first = await createTestDatabase('service-kit');
  await openSecrets(first, keyFile(made)).part.start();
  await using mounted = await open(join(made, 'secrets.key'));
  await using database = await createTestDatabase('service-kit');
  // No file can be made in this folder, also by root.
  await openSecrets(database, keyFile(made, `/proc/self/fd/${mounted.fd}`)).part.start();
  assert.equal(await count(database, 'data_keys'), 1);
});

test('without its key file, with another or an open one, a program does not start, says what to do, and changes nothing', async (t) => {
  await using database = await createTestDatabase('service-kit');
  const folder = await makeFolder(t);
  const path = join(folder, 'secrets.key');
  await put(database, openSecrets(database, keyFile(folder)), 1, 'secret');
  await database.pool.query("insert into totp_secrets (person_id, clear_secret) values (2, 'clear')");
  const key = await readFile(path, 'utf8');
  const state = async () =>
    JSON.stringify(
      (await database.pool.query('select t.*, k.* from totp_secrets t, data_keys k order by 1')).rows,
    );
  const before = await state();
  const refuses = async (code: string, message: RegExp) => {
    await assert.rejects(
      openSecrets(database, keyFile(folder)).part.start(),
      (error: Error) => hasCode(error, code) && error.message.includes(path) && message.test(error.message),
    );
    assert.equal(await state(), before);
  };
  await rm(path);
  await refuses('secrets.no_key', /SVC_TEST_SECRETS_KEY_FILE/);
  assert.deepEqual(await readdir(folder), [], 'no new key is made');
  await writeFile(path, 'svc-secrets-key-1:\n', { mode: 0o600 });
  await refuses('secrets.no_key', /holds no key/);
  await writeFile(path, `svc-secrets-key-1:${Buffer.alloc(32, 9).toString('base64url')}\n`);
  await refuses(
    'secrets.wrong_key',
    /holds the key file:[0-9a-f]{16}, but .* need the key file:[0-9a-f]{16}/,
  );
  await writeFile(path, key);
  await chmod(path, 0o644);
  await refuses('secrets.open_key_file', /chmod 600/);
  await chmod(path, 0o600);
  await openSecrets(database, keyFile(folder)).part.start();
  // The data keys were lost with the table: no new key is made beside secrets that it can't open.
  await database.pool.query('delete from data_keys');
  await assert.rejects(openSecrets(database, keyFile(folder)).part.start(), (error) =>
    hasCode(error, 'secrets.no_key'),
  );
  assert.equal(await count(database, 'data_keys'), 0);
  assert.throws(() => keyFile(folder, join(folder, 'postgres', 'secrets.key')), /database's folder/);
});

test('a key management command wraps and unwraps the data key; its failure says its name and changes nothing', async () => {
  await using database = await createTestDatabase('service-kit');
  await put(database, openSecrets(database, keyCommand('one')), 1, 'secret');
  const again = openSecrets(database, keyCommand('one'));
  assert.equal(await get(database, again, 1), 'secret');
  const { rows } = await database.pool.query('select wrapped, wrapped_by from data_keys');
  assert.match(rows[0].wrapped, /^vault:v1:/);
  const before = JSON.stringify(rows);
  for (const [name, message] of [
    ['away', /key-service|exit code 7.*does not answer/],
    ['two', /unwrap failed/],
    ['talkative', /32 bytes/],
  ] as const)
    await assert.rejects(
      openSecrets(database, keyCommand(name)).part.start(),
      (error: Error) => hasCode(error, 'secrets.no_key') && message.test(error.message),
    );
  const after = await database.pool.query('select wrapped, wrapped_by from data_keys');
  assert.equal(JSON.stringify(after.rows), before);
});

test('the wrapping key changes from a file to another and to a command; each former key is refused then', async (t) => {
  await using database = await createTestDatabase('service-kit');
  const folder = await makeFolder(t);
  const old = keyFile(folder);
  const next = keyFile(folder, join(folder, 'next.key'));
  const running = openSecrets(database, old);
  await put(database, running, 1, 'secret');
  await assert.rejects(openSecrets(database, next).rewrap(actor, old), (error) =>
    hasCode(error, 'secrets.no_key'),
  );
  assert.equal(await running.rewrap(actor, next), 1);
  assert.equal(await get(database, running, 1), 'secret', 'a running process goes on');
  await assert.rejects(running.rotate(actor), (error) => hasCode(error, 'secrets.wrong_key'));
  await assert.rejects(openSecrets(database, old).part.start(), (error) =>
    hasCode(error, 'secrets.wrong_key'),
  );
  assert.equal(await openSecrets(database, next).rewrap(actor, keyCommand('one')), 1);
  const last = openSecrets(database, keyCommand('one'));
  assert.equal(await get(database, last, 1), 'secret');
  assert.equal((await last.rotate(actor)).deletedKeys, 1);
  await assert.rejects(openSecrets(database, next).part.start(), (error) =>
    hasCode(error, 'secrets.wrong_key'),
  );
});
