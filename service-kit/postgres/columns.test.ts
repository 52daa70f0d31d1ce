/** The names of columns, and rows that are sent as columns. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type RawBuilder, sql } from 'kysely';
import { createTestDatabase } from '#service-kit/testing/index.ts';
import { asColumns, type Columns, fromColumns } from './index.ts';

test('rows sent as columns are the rows of the statement in its order, and a number that is too large is refused', async () => {
  await using database = await createTestDatabase('service-kit');
  const read = async (statement: RawBuilder<unknown>, names: readonly string[]) => {
    const { rows } = await sql<{ listed: Columns }>`select ${asColumns(statement, names)} as listed`.execute(
      database.db,
    );
    return fromColumns(rows[0]!.listed);
  };
  const names = ['id', 'is_on', 'name', 'share'];
  const statement = sql`
    select id, id = 2 as is_on, name, share from (values
      (1::bigint, 'a "quoted" one', 0.1::float8), (9007199254740991, null, null), (2, 'ü', 1e-7)) as given (id, name, share)
    order by id desc`;
  const { rows } = await statement.execute(database.db);
  assert.equal(rows.length, 3);
  assert.deepEqual(await read(statement, names), rows);
  assert.deepEqual(await read(sql`select 1 as id where false`, ['id']), []);
  await assert.rejects(read(sql`select 9007199254740993::bigint as id`, ['id']), /id .* exceeds 2\^53/);
});

test("kysely's rows have their columns' names in camel case, the keys of JSON and the rows of the pool keep theirs", async () => {
  await using database = await createTestDatabase('service-kit');
  const text = `select 1 as tenant_id, null as p95_bps, 2 as "isOn", 3 as name, '{"tenant_id": {"is_on": 4}}'::jsonb as said`;
  const said = { tenant_id: { is_on: 4 } };
  const named = { tenantId: 1, p95Bps: null, isOn: 2, name: 3, said };
  const plain = { tenant_id: 1, p95_bps: null, isOn: 2, name: 3, said };
  const ask = async () => (await sql.raw(text).execute(database.db)).rows;
  assert.deepEqual(await ask(), [named]);
  assert.deepEqual((await database.pool.query(text)).rows, [plain]);
  // Prepared, in a transaction, which fails and gives its connection back.
  const failed = database.db.transaction().execute(async (trx) => {
    assert.deepEqual((await sql`select svc_now() = ${new Date(0)} as is_now`.execute(trx)).rows, [
      { isNow: false },
    ]);
    throw new Error('undone');
  });
  await assert.rejects(failed, /undone/);
  assert.deepEqual((await database.pool.query(text)).rows, [plain]);
  await database.pool.query('select pg_terminate_backend(pg_backend_pid())').catch(() => {});
  assert.deepEqual(await ask(), [named]);
});
