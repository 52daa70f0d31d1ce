import assert from 'node:assert/strict';
import { test } from 'node:test';
import { renderPage } from './proofs-page.ts';

const fields = ['kills', 'what |t| says', '50 tried, 0 failed', '1', '5142b22', '7.0 min', '3 of 3'];

test('the page has a row for each run, and shows bars in a claim', () => {
  const page = renderPage(`${fields.join('\t')}\n${['orders', ...fields.slice(1)].join('\t')}\n`);
  const rows = page.split('\n').filter((line) => line.startsWith('| '));
  assert.equal(rows.length, 3);
  assert.equal(
    rows[1],
    String.raw`| kills | what \|t\| says | 50 tried, 0 failed | 1 | 5142b22 | 7.0 min | 3 of 3 |`,
  );
});

test('a run with a missing field is refused by its name', () => {
  assert.throws(
    () => renderPage(`${fields.slice(1).join('\t')}\n`),
    /"what \|t\| says" has 6 fields instead of 7/,
  );
});
