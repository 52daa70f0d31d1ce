import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'kysely';
import { createTestDatabase } from '../testing/index.ts';
import { copyRows } from './copy.ts';
import { RowWriter } from './row-writer.ts';

const columns = ['id', 'small', 'whole', 'count', 'is_set', 'name', 'at', 'address'];

const rows = [
  { small: 0, whole: 0, count: 0, isSet: false, name: '', at: 0, address: '0.0.0.0' },
  {
    small: 32_767,
    whole: 2_147_483_647,
    count: 2 ** 53 - 1,
    isSet: true,
    name: 'a',
    at: 1,
    address: '255.255.255.255',
  },
  {
    small: -32_768,
    whole: -2_147_483_648,
    count: -1,
    isSet: true,
    name: 'é',
    at: null,
    address: '128.0.0.1',
  },
  { small: 1, whole: null, count: 2 ** 32, isSet: false, name: 'ü€𝄞'.repeat(90), at: 1.7e12, address: null },
  {
    small: 2,
    whole: 1,
    count: 2 ** 32 - 1,
    isSet: false,
    name: 'x'.repeat(64),
    at: -1,
    address: '2001:db8::1',
  },
  {
    small: 3,
    whole: 2,
    count: 5,
    isSet: false,
    name: `${'x'.repeat(63)}é`,
    at: 2,
    address: '::ffff:192.0.2.1',
  },
  { small: 4, whole: 3, count: 6, isSet: false, name: 'x'.repeat(65), at: 3, address: '9.10.99.100' },
];

test('PostgreSQL reads what the writer wrote: limits, Unicode, both families, nothing', async () => {
  await using database = await createTestDatabase('service-kit');
  await sql`create table written (id int, small smallint, whole int, count bigint, is_set boolean, name text,
    at timestamptz, address inet)`.execute(database.db);
  // A small buffer grows on the way.
  const writer = new RowWriter(1);
  for (let id = 0; id < 500; id += 1) {
    const row = rows[id % rows.length]!;
    writer.row(columns.length);
    writer.integer(id);
    writer.smallint(row.small);
    writer.integer(row.whole);
    writer.bigint(row.count);
    writer.boolean(row.isSet);
    writer.text(row.name);
    writer.timestamp(row.at);
    writer.inet(row.address);
  }
  await copyRows(database.db, 'written', columns, writer.finish());
  const { rows: read } = await sql<(typeof rows)[number]>`
    select small, whole, count::float8 as count, is_set as "isSet", name,
      (extract(epoch from at) * 1000)::float8 as at, host(address) as address
    from written order by id`.execute(database.db);
  assert.equal(read.length, 500);
  for (const [id, row] of read.entries()) assert.deepEqual(row, rows[id % rows.length]);
});

test('a number that its column does not hold is refused, not cut', () => {
  const writer = new RowWriter();
  for (const value of [32_768, -32_769, 0.5, Number.NaN])
    assert.throws(() => writer.smallint(value), RangeError);
  for (const value of [2 ** 31, 0.5, Number.NaN]) assert.throws(() => writer.integer(value), RangeError);
  for (const value of [2 ** 53, 0.5, Number.NaN, Infinity])
    assert.throws(() => writer.bigint(value), RangeError);
});
