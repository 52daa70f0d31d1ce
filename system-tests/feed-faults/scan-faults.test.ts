// Slow: runs a feed through hundreds of faults.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runFeeds } from './feed-faults.prove.ts';

const size = { seed: 3, changesOfRound: 40, report: () => {} };

test('NET-1.6, NET-2.7.2, NET-2.7.9, NET-4.f: after faults scans are at operations as the monitor knows them, and no request that has ended comes back', async () => {
  const { offences, faults } = await runFeeds({ ...size, n: 12, plant: null, feeds: ['port-scans'] });
  assert.deepEqual(offences, []);
  assert.ok(faults >= 12);
});
