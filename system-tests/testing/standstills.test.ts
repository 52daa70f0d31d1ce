import assert from 'node:assert/strict';
import { test } from 'node:test';
import { watchStandstills } from './standstills.ts';

test('a host that slept, or whose clock was set, stood still from one look to the next; a slow one did not', () => {
  let nowMs = 1_000_000;
  const watch = watchStandstills(() => nowMs);
  nowMs += 20_000;
  assert.deepEqual(watch.times(), []);
  nowMs += 90_000;
  assert.deepEqual(watch.times(), [{ fromMs: 1_020_000, toMs: 1_110_000 }]);
  nowMs -= 40_000;
  assert.deepEqual(watch.times()[1], { fromMs: 1_070_000, toMs: 1_110_000 });
  watch.stop();
});
