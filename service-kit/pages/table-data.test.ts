import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isoTime, tableCsv, tableValues } from './table.ts';

const fields = [
  { field: 'name', value: (row: { name: string; bytes?: number | null }) => row.name },
  { field: 'in_bytes', value: (row: { name: string; bytes?: number | null }) => row.bytes },
];

test('a file holds bare numbers under names with units, and leaves empty what is not known', () => {
  const rows = [{ name: 'a', bytes: 1_234_567 }, { name: 'b', bytes: null }, { name: 'c' }];
  assert.equal(tableCsv(fields, rows), 'name,in_bytes\r\na,1234567\r\nb,\r\nc,\r\n');
  assert.deepEqual(tableValues(fields, rows), [
    { name: 'a', in_bytes: 1_234_567 },
    { name: 'b', in_bytes: null },
    { name: 'c', in_bytes: null },
  ]);
  assert.equal(isoTime(0), '1970-01-01T00:00:00.000Z');
  assert.equal(isoTime(null), null);
});

test('no text of a stranger is a formula in a spreadsheet, breaks a line or closes its quotes', () => {
  const cell = (name: string) => tableCsv(fields, [{ name }]).slice('name,in_bytes\r\n'.length, -3);
  for (const formula of ['=1+1', '+1', '-1+1', '-1.', '@sum(a)', ' =1', '\u00a0=1', '＝1']) {
    assert.equal(cell(formula), `'${formula}`);
  }
  assert.equal(cell('\t=1'), `"'\t'=1"`);
  // Where lists are separated by semicolons the quote stands in the middle of a cell, and does not quote.
  assert.equal(cell('a;=cmd|x'), `"a;'=cmd|x"`);
  assert.equal(cell('a; =1\t-cmd\n@x'), `"a;' =1\t'-cmd\n'@x"`);
  assert.equal(cell('-1.50'), '-1.50', 'a number');
  assert.equal(cell('a,"b"\r\nc'), '"a,""b""\r\nc"');
  assert.equal(tableCsv(fields, [{ name: 'x', bytes: -5 }]).split('\r\n')[1], 'x,-5');
});
