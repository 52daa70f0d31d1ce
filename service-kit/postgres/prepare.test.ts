import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'kysely';
import { createTestDatabase } from '#service-kit/testing/index.ts';
import { createPool, type PoolOptions } from './database.ts';
import { withCustomPlans } from './prepare.ts';

/** One connection, so that what one statement leaves behind is met by the next. */
async function connect(options: PoolOptions = {}) {
  const database = await createTestDatabase('service-kit');
  const { pool, db } = createPool(database.url, 1, options);
  return {
    db,
    pool,
    /** Texts that the connection has prepared, with how often a plan of values and a kept plan were used. */
    async prepared() {
      const { rows } = await pool.query<{ statement: string; custom_plans: number; generic_plans: number }>(
        'select statement, custom_plans, generic_plans from pg_prepared_statements order by statement',
      );
      return rows.map((row) => [row.statement, row.custom_plans, row.generic_plans]);
    },
    async [Symbol.asyncDispose]() {
      await db.destroy();
      await database.drop();
    },
  };
}

test('a statement is prepared once on a connection, and its plan is kept where values make no difference', async () => {
  await using at = await connect();
  for (let n = 0; n < 8; n += 1) await sql`select ${n}::int as n`.execute(at.db);
  const { rows } = await at.pool.query('select $1::int as n', [9]);
  assert.deepEqual(rows, [{ n: 9 }]);
  assert.deepEqual(await at.prepared(), [['select $1::int as n', 5, 4]]);
});

test('a statement over a range is planned for its values at each call, in transactions too', async () => {
  await using at = await connect();
  const db = withCustomPlans(at.db);
  const ask = (of: typeof db) => sql<{ n: number }>`select ${7}::int as n`.execute(of);
  assert.deepEqual((await ask(db)).rows, [{ n: 7 }]);
  await db.transaction().execute(ask);
  assert.deepEqual(await at.prepared(), []);
});

test('nothing is prepared behind a pooler', async () => {
  await using at = await connect({ prepares: false });
  await sql`select ${7}::int as n`.execute(at.db);
  assert.deepEqual(await at.prepared(), []);
});

test('made-up texts take no memory without end, and are answered all the same', async () => {
  await using at = await connect();
  for (let n = 0; n < 520; n += 1) {
    const { rows } = await at.pool.query(`select $1::int + ${n} as sum`, [1]);
    assert.deepEqual(rows, [{ sum: 1 + n }]);
  }
  assert.equal((await at.prepared()).length, 500);
});

test('a migration that changes a type fails no statement of a connection that is open', async () => {
  await using at = await connect();
  await at.pool.query(
    'create table things (id bigint primary key, name text); insert into things values (1, $$a$$)',
  );
  const find = async () => (await sql`select * from things where id = ${1}`.execute(at.db)).rows;
  assert.deepEqual(await find(), [{ id: 1, name: 'a' }]);
  await at.pool.query('alter table things add column kind text');
  for (let n = 0; n < 2; n += 1) assert.deepEqual(await find(), [{ id: 1, name: 'a', kind: null }]);
  await at.pool.query('alter table things drop column kind');
  const { rows } = await at.pool.query('select * from things where id = $1', [1]);
  assert.deepEqual(rows, [{ id: 1, name: 'a' }]);
});
