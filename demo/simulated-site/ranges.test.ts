import assert from 'node:assert/strict';
import { test } from 'node:test';
import { addRange, countLoaded, newestMissing, type Range } from './ranges.ts';

const hour = 3_600;

test('the newest missing part comes first, at most to the start of its hour', () => {
  const wanted: Range = [0, 3 * hour + 600];
  assert.deepEqual(newestMissing([], wanted), [3 * hour, 3 * hour + 600]);
  assert.deepEqual(newestMissing([[3 * hour, 3 * hour + 600]], wanted), [2 * hour, 3 * hour]);
  assert.deepEqual(newestMissing([[hour + 120, 3 * hour + 600]], wanted), [hour, hour + 120]);
});

test('a hole between what is loaded is found, and nothing of it twice', () => {
  const loaded: Range[] = [
    [0, hour],
    [hour + 600, 2 * hour],
  ];
  assert.deepEqual(newestMissing(loaded, [0, 2 * hour]), [hour, hour + 600]);
  assert.equal(newestMissing(addRange(loaded, [hour, hour + 600]), [0, 2 * hour]), null);
});

test('going from the newest to the oldest covers every minute exactly once, from any start', () => {
  for (const wanted of [[60, 5 * hour + 180] as const, [1_740, 1_800] as const, [0, 2 * hour] as const]) {
    let loaded: Range[] = [];
    let minutes = 0;
    for (let next = newestMissing(loaded, wanted); next; next = newestMissing(loaded, wanted)) {
      assert.ok(next[1] > next[0] && next[1] - next[0] <= hour);
      minutes += (next[1] - next[0]) / 60;
      loaded = addRange(loaded, next);
      assert.equal(countLoaded(loaded, wanted), minutes);
    }
    assert.deepEqual(loaded, [[...wanted]]);
    assert.equal(minutes, (wanted[1] - wanted[0]) / 60);
  }
});

test('what is older than wanted stays out of the count', () => {
  assert.equal(countLoaded([[0, 2 * hour]], [hour, 3 * hour]), 60);
  assert.equal(newestMissing([[0, 2 * hour]], [hour, 2 * hour]), null);
});
