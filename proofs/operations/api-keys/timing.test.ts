// Slow: it measures times, which other work on the machine disturbs.
// Own process: it measures times.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { proveTiming } from './prove-timing.ts';

test('API-2.1.2: a verdict that leaves early for an unknown id is seen by its time', async () => {
  const planted = await proveTiming({ perClass: 3_000, isPlanted: true, random: Math.random });
  assert.ok(planted.worst > 10, `|t| ${planted.worst}`);
  assert.match(planted.pair, /unknown id/);
});
