// Slow: fills maps of tens of thousands of entries.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { prove } from './maps-full.prove.ts';

test('NET-8.6: in full maps of the kernel no number is wrong, and what has no room is counted', {
  skip: process.getuid?.() === 0 ? false : 'needs root',
}, async (t) => {
  const { failures } = await prove({ n: 40, report: (line) => t.diagnostic(line) });
  assert.equal(failures, 0);
});
