import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Column, renderTable } from './text-output.ts';

const columns: Column[] = [
  { title: 'server', shrinksTo: 10, keepsEnd: true },
  { title: 'where', shrinksTo: 8 },
  { title: 'bytes', isNumber: true },
];

test('a table that is too wide shortens addresses and names at their start, so that ports and domains stay', () => {
  const rows = [['[2001:db8:5::2]:4443', 'somewhere else', '12']];
  const lines = [...renderTable(columns, rows, { width: 32, isColored: false })];
  assert.deepEqual(lines, ['server       where         bytes', '…5::2]:4443  somewhere e…     12']);
});

test('a table of half a million rows is rendered', () => {
  const rows = Array.from({ length: 500_000 }, () => ['192.0.2.1:443', 'here', '1']);
  const lines = [...renderTable(columns, rows, { width: 80, isColored: false })];
  assert.equal(lines.length, rows.length + 1);
});
