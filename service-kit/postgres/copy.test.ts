import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'kysely';
import { createTestDatabase } from '#service-kit/testing/index.ts';
import { until } from '#service-kit/testing/until.ts';
import { copyText, readLines } from './index.ts';

async function* pieces(...all: string[]) {
  for (const one of all) yield Buffer.from(one);
}

test('rows in text arrive in pieces of any length, and a source that fails leaves none', async () => {
  await using database = await createTestDatabase('service-kit');
  const { db } = database;
  await sql`create table words (id int, word text)`.execute(db);
  await copyText(db, 'words', ['id', 'word'], pieces('1\ton', 'e\n2\t\\N\n3', '\tta\\tb\n'));
  async function* failing() {
    yield* pieces('4\tfour\n');
    throw new Error('the source ended');
  }
  await assert.rejects(copyText(db, 'words', ['id', 'word'], failing()), /the source ended/);
  const { rows } = await sql`select id, word from words order by id`.execute(db);
  assert.deepEqual(rows, [
    { id: 1, word: 'one' },
    { id: 2, word: null },
    { id: 3, word: 'ta\tb' },
  ]);
});

test('lines are read as they are, and a reader that fails leaves its connection usable', async () => {
  await using database = await createTestDatabase('service-kit');
  const line = `1\t"quoted", it's \\x41 \\\\ 100 %`;
  await database.db.connection().execute(async (db) => {
    const read: Buffer[] = [];
    await readLines(db, sql`select ${sql.lit(line)} from generate_series(1, 2)`, async (piece) => {
      read.push(piece);
    });
    assert.equal(Buffer.concat(read).toString(), `${line}\n${line}\n`);
    const many = sql`select repeat('x', 1000) from generate_series(1, 20000)`;
    await assert.rejects(
      readLines(db, many, () => Promise.reject(new Error('enough'))),
      /enough/,
    );
    const { rows } = await sql`select 1 as one`.execute(db);
    assert.deepEqual(rows, [{ one: 1 }]);
  });
  const value = 'a parameter';
  await assert.rejects(
    readLines(database.db, sql`select ${value}`, async () => {}),
    /no parameters/,
  );
});

const silentMs = 120_000;

test('a copy goes on for as long as rows come, also when all of them take longer than an answer may', async (t) => {
  await using database = await createTestDatabase('service-kit');
  t.mock.timers.enable({ apis: ['setInterval'] });
  // More than any buffer on the way holds, so that bytes come between two looks.
  const between = 4_000_000;
  let bytes = 0;
  let looks = 0;
  const rows = sql`select repeat('x', 1000) from generate_series(1, 20000)`;
  await readLines(database.db, rows, async (piece) => {
    bytes += piece.length;
    if (bytes < between * (looks + 1)) return;
    looks += 1;
    t.mock.timers.tick(silentMs);
  });
  assert.deepEqual({ bytes, looks }, { bytes: 20_020_000, looks: 5 });
});

test('a copy of which nothing comes any more is given up', async (t) => {
  await using database = await createTestDatabase('service-kit');
  t.mock.timers.enable({ apis: ['setInterval'] });
  const asleep = sql`select pid from pg_stat_activity where wait_event = 'PgSleep' and datname = current_database()`;
  const copy = readLines(database.db, sql`select pg_sleep(3600)`, async () => {});
  const outcome = copy.then(
    () => 'it came to its end',
    (error: Error) => error.message,
  );
  await until('the copy waits', 120_000, async () => (await asleep.execute(database.db)).rows.length === 1);
  // What was sent before the first look has moved.
  t.mock.timers.tick(silentMs);
  t.mock.timers.tick(silentMs);
  assert.equal(await outcome, 'Connection terminated: no answer for 120 s');
  await sql`select pg_terminate_backend(pid) from (${asleep}) a`.execute(database.db);
});
