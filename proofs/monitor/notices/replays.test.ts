import assert from 'node:assert/strict';
import { test } from 'node:test';
import { replay } from './replays.prove.ts';

const replays = Number(process.env.SVC_TEST_NOTICE_REPLAYS ?? 20);

test(`NET-4.7, NET-4.8: ${replays} replays over replicas change no row, and a new secret replaces the old one everywhere at once`, async () => {
  const { offences, rotations } = await replay({ n: replays, seed: 3 }, null);
  assert.deepEqual(offences, []);
  assert.ok(rotations >= 2);
});
