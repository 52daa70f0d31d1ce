import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'kysely';
import { createTestDatabase } from '#service-kit/testing/index.ts';
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
