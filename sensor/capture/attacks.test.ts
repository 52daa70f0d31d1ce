import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as poisoning from './dns-poisoning.prove.ts';
import * as flood from './flow-flood.prove.ts';
import * as collisions from './hash-collisions.prove.ts';

test('NET-8.6: names known before a flood stay, totals and local addresses are exact, memory is bounded', async (t) => {
  const result = await flood.prove({ n: 60_000, seed: 1, report: (line) => t.diagnostic(line) });
  assert.equal(result.failures, 0);
  assert.equal(result.plantedBugsCaught, `${flood.plantedFaults.length} of ${flood.plantedFaults.length}`);
});

test('NET-8.6: flows made to collide cost no more than others, because the hash has a key', async (t) => {
  const result = await collisions.prove({
    n: 12_000,
    seed: 1,
    report: (line) => t.diagnostic(line),
    controlMin: 5,
  });
  assert.equal(result.failures, 0);
  assert.equal(result.plantedBugsCaught, '1 of 1');
});

test('NET-2.2.3: forged DNS answers name nothing, honest ones do', async (t) => {
  const result = await poisoning.prove({ n: 3000, seed: 1, report: (line) => t.diagnostic(line) });
  assert.equal(result.failures, 0);
  assert.equal(
    result.plantedBugsCaught,
    `${poisoning.plantedFaults.length} of ${poisoning.plantedFaults.length}`,
  );
});
