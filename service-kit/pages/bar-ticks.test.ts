/** The times below bars, as the browser reckons them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

const dayMs = 86_400_000;
const values: string = './browser/chart-values.js';
const { barTicks, formatBarTicks } = await import(values);

test('bars of a month have its days below them, also those without a bar and those to come', () => {
  const range = { fromMs: Date.UTC(2026, 10, 1), toMs: Date.UTC(2026, 11, 1) };
  const data = { timesMs: [Date.UTC(2026, 10, 28)], stepMs: dayMs, range };
  const all = barTicks(data, 40);
  assert.equal(all.length, 30);
  assert.equal(all[0], range.fromMs);
  const few = barTicks(data, 10);
  assert.ok(few.length <= 10, 'no more than there is room for');
  assert.deepEqual(formatBarTicks(data, few).slice(0, 3), ['Nov 1', 'Nov 4', 'Nov 7']);
});

test('bars without a range have a time below each, or below each second', () => {
  const timesMs = [Date.UTC(2026, 8), Date.UTC(2026, 9), Date.UTC(2026, 10)];
  const data = { timesMs, stepMs: null, range: null };
  assert.deepEqual(formatBarTicks(data, barTicks(data, 3)), ['Sept 2026', 'Oct 2026', 'Nov 2026']);
  assert.deepEqual(barTicks(data, 2), [timesMs[0], timesMs[2]]);
  const empty = { timesMs: [], stepMs: dayMs, range: { fromMs: 0, toMs: dayMs } };
  assert.deepEqual(barTicks(empty, 5), []);
});
