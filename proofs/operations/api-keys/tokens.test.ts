import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createWorld } from '#operations/testing/dated-world.ts';
import { isCapMissed, isNoteMissed, proveKeyCap, proveUseNotes } from './prove-key-cap.ts';
import { proveRoundTrips, proveSpellings } from './prove-tokens.ts';

test('API-2.1.1: every token comes apart into what it was made of; a plain split would break half of them', () => {
  const result = proveRoundTrips(2_000);
  assert.equal(result.failures, 0);
  assert.ok(result.naiveFailures > 800 && result.naiveFailures < 1_200, String(result.naiveFailures));
});

test('API-2.1.2: of all spellings of a key one is accepted; comparing decoded bytes would accept more', () => {
  const result = proveSpellings(2_000);
  assert.equal(result.accepted, 0);
  assert.ok(result.decodedAccepted > 0);
});

test('API-2.1.3, API-2.1.h: creates at once never pass 25, a use is written once a minute; without lock and condition both are seen', async () => {
  await using world = await createWorld();
  assert.deepEqual(await proveKeyCap(world, { rounds: 2, atOnce: 30 }), {
    tried: 60,
    passed: 0,
    wrongWins: 0,
  });
  assert.equal(await proveUseNotes(world, 100), 1);
  assert.deepEqual([await isCapMissed(), await isNoteMissed()], [true, true]);
});
