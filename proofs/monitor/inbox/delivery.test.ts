import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deliverWindows, lateness } from './delivery.prove.ts';

const windows = Number(process.env.SVC_TEST_DELIVERY_WINDOWS ?? 4);

test(`NET-2.2.9: ${windows} spools delivered in any order, with duplicates up to ${lateness.at(-1)} later: every total is the truth`, async () => {
  const { offences, duplicates } = await deliverWindows({ n: windows, seed: 6, report: () => {} }, null);
  assert.deepEqual(offences, []);
  assert.ok(duplicates >= windows * lateness.length);
});
