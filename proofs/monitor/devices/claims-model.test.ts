import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runClaims } from './claims-model.prove.ts';

const runs = Number(process.env.SVC_TEST_CLAIM_RUNS ?? 3);

test(`NET-3.3, NET-6: claims, hand-overs and conflicts follow from all sightings, over ${runs} runs`, async () => {
  const { fault } = await runClaims({ n: runs, seed: 8 }, null);
  assert.equal(fault, null);
});
