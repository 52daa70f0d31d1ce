// Slow: runs five feeds through hundreds of faults.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runFeeds } from './feed-faults.prove.ts';

const size = { seed: 11, changesOfRound: 25, report: () => {} };

test('NET-2.6.5, NET-4.2, NET-4.3, NET-4.d, NET-4.f: after faults of each feed operations holds what the monitor knows', async () => {
  const { offences, faults } = await runFeeds({ ...size, n: 12, plant: null });
  assert.deepEqual(offences, []);
  assert.ok(faults >= 60);
});
