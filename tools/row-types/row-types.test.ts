import assert from 'node:assert/strict';
import { globSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { createTestDatabase } from '#service-kit/testing/index.ts';
import { checkRowTypes, readDeclaredRows } from './index.ts';
import { exceptions, given } from './known.ts';

const root = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '');

const storesOf = (program: string) =>
  globSync(`${program}/**/*store.ts`, { cwd: root })
    .filter((file) => /(^|[/-])store\.ts$/.test(file) && !file.includes('/testing/'))
    .sort();

const programs = ['operations', 'monitor', 'service-kit'] as const;
const planted = 'tools/row-types/testing/planted-store.ts';
const declared = readDeclaredRows(root, [...programs.flatMap(storesOf), planted]);

/** Calls that must have been compared: a check that sees less is broken. */
const comparedMin = { operations: 330, monitor: 260, 'service-kit': 60 };

for (const program of programs)
  test(`the row type of each statement of ${program} has the columns that PostgreSQL answers`, async () => {
    await using database = await createTestDatabase(program);
    const report = await checkRowTypes({
      root,
      files: storesOf(program),
      declared,
      url: database.url,
      given,
      exceptions: Object.keys(exceptions[program]!),
    });
    assert.deepEqual(report.faults, []);
    assert.ok(report.compared >= comparedMin[program], `only ${report.compared} calls were compared`);
  });

test('planted wrong row types are told apart', async () => {
  await using database = await createTestDatabase('operations');
  const { faults } = await checkRowTypes({ root, files: [planted], declared, url: database.url });
  assert.deepEqual(
    faults.map((fault) => fault.replace(/^[^:]*:\d+ \w+: /, '')),
    [
      '"id" is int8 (number), the type says string',
      '"created_at" is timestamptz (Date), the type says string',
      '"sum" is numeric (string), the type says number',
      '"password_hash" may be null in its table, the type has no null',
      'the type has "createdAt", the statement has no such column',
      'the statement has a column "created_at", the type has no such member',
      'PostgreSQL refuses it: column "surname" does not exist',
      '"labels" is jsonb (number or string or boolean or array or object or null), the type says Date',
      '"id" is int8 (number), the type says string',
      'no statement of this call was seen',
    ],
  );
});
