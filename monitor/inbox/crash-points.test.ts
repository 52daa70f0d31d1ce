// Slow: crashes after each statement of applying uploads, and again with planted faults.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { crashEverywhere, doubling, engines, losing, marking } from './testing/crash-everywhere.ts';

const outcomes: string[][] = [];

for (const [name, open] of Object.entries(engines)) {
  test(`NET-7.1: a process that crashes between any two statements of applying uploads, and is repeated, leaves what one without a crash does; ${name}`, async () => {
    const { offences, points, outcome } = await crashEverywhere(open);
    assert.deepEqual(offences, []);
    assert.ok(points > 15, `${points} points`);
    outcomes.push(outcome);
    assert.deepEqual(outcome, outcomes[0], 'engines answer alike');
  });
}

test('the crash points show an append that is lost, one that counts twice, and a mark before the append', async () => {
  assert.notDeepEqual((await crashEverywhere(engines.memory!, losing())).offences, []);
  for (const plant of [doubling, marking])
    assert.notDeepEqual((await crashEverywhere(engines.memory!, plant, { every: 3 })).offences, []);
});
