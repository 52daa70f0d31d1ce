/** Rows that are sent as columns are the same rows. */
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
  const names = ['id', 'isOn', 'name', 'share'];
  const statement = sql`
    select id, id = 2 as "isOn", name, share from (values
      (1::bigint, 'a "quoted" one', 0.1::float8), (9007199254740991, null, null), (2, 'ü', 1e-7)) as given (id, name, share)
    order by id desc`;
  const { rows } = await statement.execute(database.db);
  assert.equal(rows.length, 3);
  assert.deepEqual(await read(statement, names), rows);
  assert.deepEqual(await read(sql`select 1 as id where false`, ['id']), []);
  await assert.rejects(read(sql`select 9007199254740993::bigint as id`, ['id']), /id .* exceeds 2\^53/);
});
