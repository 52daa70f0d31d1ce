import assert from 'node:assert/strict';
import { test } from 'node:test';
import { preferredType } from './negotiate.ts';

test('the type of the greatest weight is chosen; ranges count for what no narrower one names', () => {
  const choose = (accept: string | undefined) => preferredType(accept, ['application/json', 'text/csv']);
  for (const [accept, chosen] of [
    [undefined, 'application/json'],
    ['*/*', 'application/json'],
    ['text/*', 'text/csv'],
    ['text/*;q=0.4, application/*;q=0.5', 'application/json'],
    ['application/json;q=0.2, */*;q=0.1', 'application/json'],
    ['application/json;q=0.2, */*;q=0.3', 'text/csv'],
    ['application/json;q=0, */*', 'text/csv'],
    ['TEXT/*;Q=0.9, application/json;q=0.8', 'text/csv'],
    ['image/png', 'application/json'],
    ['text/csv;charset=utf-8', 'text/csv'],
  ] as const)
    assert.equal(choose(accept), chosen, String(accept));
});
