import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { readDeclaredRows } from './declared-rows.ts';
import { checkRowTypes } from './index.ts';

test('planted wrong row types are told apart', async () => {
  const root = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '');
  const files = ['tools/row-types/testing/planted-store.ts'];
  const { faults } = await checkRowTypes(root, 'operations', files, readDeclaredRows(root, files));
  assert.deepEqual(
    faults.map((fault) => fault.replace(/^[^:]*:\d+ \w+: /, '')),
    [
      '"id" is int8 (number), the type says string',
      '"createdAt" is timestamptz (Date), the type says string',
      '"sum" is numeric (string), the type says number',
      '"passwordHash" may be null in its table, the type has no null',
      'the type has "created_at", the statement has no such column',
      'the statement has a column "createdAt", the type has no such member',
      'PostgreSQL refuses it: column "surname" does not exist',
      '"labels" is jsonb (number or string or boolean or array or object or null), the type says Date',
      '"id" is int8 (number), the type says string',
      'no statement of this call was seen',
    ],
  );
});
