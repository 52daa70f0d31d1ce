import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runModel } from './device-model.prove.ts';

const runs = Number(process.env.SVC_TEST_DEVICE_RUNS ?? 12);

test(`NET-2.1.1, NET-2.1.2, NET-2.1.3, NET-3.3: devices match the model, over ${runs} runs of imports, notices, names and sightings`, async () => {
  const { fault } = await runModel({ n: runs, seed: 5 }, null);
  assert.equal(fault, null);
});
