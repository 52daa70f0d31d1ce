import assert from 'node:assert/strict';
import { test } from 'node:test';
import { watchStandstills } from './standstills.ts';

test('a suspended host and a clock step are detected as pauses between two looks; a slow host is not', () => {
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
