// Slow: fills a disk while a sensor writes.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fillStorages } from './storage-full.prove.ts';

const rounds = Number(process.env.SVC_TEST_STORAGE_ROUNDS ?? 1);

test('NET-7.3, NET-8.5: full disks and full spools pause collection, keep all that waits, and name exactly the paused minutes', (t) => {
  if (process.getuid?.() !== 0) {
    assert.ok(!process.env.CI, 'this test needs root to mount small disks: run the gate as root in CI');
    t.diagnostic('left out: needs root to mount small disks');
    return;
  }
  const { offences, paused } = fillStorages({ n: rounds, seed: 2, report: () => {} }, null);
  assert.deepEqual(offences, []);
  assert.ok(paused >= 5 * rounds);
});
