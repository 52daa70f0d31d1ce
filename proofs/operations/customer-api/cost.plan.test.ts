import assert from 'node:assert/strict';
import { test } from 'node:test';
import { costOfCall } from './prove-cost.ts';

test('a call costs the same with 10 keys and with thousands: its statements read no table of customers to the end', async () => {
  const [few, many] = [await costOfCall(10), await costOfCall(3_000)];
  assert.ok(many.length >= 4 && many.length <= 5, many.map((one) => one.statement).join('\n'));
  for (const { statement, scanned } of many) assert.deepEqual(scanned, [], statement);
  const pages = (costs: typeof few) => costs.reduce((sum, cost) => sum + cost.pages, 0);
  assert.ok(pages(many) < pages(few) * 1.5 + 20, `${pages(few)} pages, then ${pages(many)}`);
});
