import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runOrders } from './archive-orders.prove.ts';

const times = Number(process.env.SVC_TEST_ARCHIVE_TIMES ?? 1);

test(`NET-3.3, NET-4.7: a notice, an earlier import, and traffic from before and after, in all 24 orders × ${times}`, async () => {
  const { tried, offences } = await runOrders({ n: times, seed: 2 }, null);
  assert.deepEqual(offences, []);
  assert.equal(tried, 24 * times);
});
