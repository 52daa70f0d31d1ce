import assert from 'node:assert/strict';
import { test } from 'node:test';
import { additionalMs, computePool, fullYears } from './pool.ts';
import { periodsBetween } from './read-bandwidth.ts';
import { compareReadings, splitByDay } from './reading.ts';

const gb = 1_000_000_000;
const hour = 3_600_000;
const month = { startMs: Date.UTC(2025, 10, 1), endMs: Date.UTC(2025, 11, 1) };
const at = (day: number, hours = 0) => Date.UTC(2025, 10, day, hours);
const rules = {
  baseBytes: 1000 * gb,
  perServerBytes: 500 * gb,
  tenureYearBytes: 100 * gb,
  tenureBytesMax: 250 * gb,
};

test('use is the difference of two totals; totals that fell are a new boot, and nothing is counted twice', () => {
  const before = { boot: 3, inboundTotal: 100, outboundTotal: 50, readAtMs: 0 };
  const now = (inboundTotal: number, outboundTotal: number) => ({ serverId: 1, inboundTotal, outboundTotal });
  assert.deepEqual(compareReadings(null, now(7, 9)), { boot: 1, inboundBytes: 7, outboundBytes: 9 });
  assert.deepEqual(compareReadings(before, now(100, 50)), { boot: 3, inboundBytes: 0, outboundBytes: 0 });
  assert.deepEqual(compareReadings(before, now(110, 50)), { boot: 3, inboundBytes: 10, outboundBytes: 0 });
  assert.deepEqual(compareReadings(before, now(120, 4)), { boot: 4, inboundBytes: 120, outboundBytes: 4 });
});

test('a use over midnight is shared out by time, and its parts are the whole', () => {
  const use = { inboundBytes: 1001, outboundBytes: 7 };
  assert.deepEqual(splitByDay(at(3, 22), at(4, 2), use), [
    { day: '2025-11-03', inboundBytes: 500, outboundBytes: 3 },
    { day: '2025-11-04', inboundBytes: 501, outboundBytes: 4 },
  ]);
  assert.deepEqual(splitByDay(at(3, 1), at(4), use), [{ day: '2025-11-03', ...use }]);
  assert.deepEqual(splitByDay(at(4), at(4), use), [{ day: '2025-11-03', ...use }]);
  const days = splitByDay(at(1, 5) + 1, at(9, 7) + 3, use);
  assert.equal(days.length, 9);
  assert.equal(
    days.reduce((sum, day) => sum + day.inboundBytes, 0),
    1001,
  );
});

test('API-2.5: servers beyond the first earn by the hour; the first earns nothing, whichever it is', () => {
  const half = { fromMs: at(1), toMs: at(16) };
  assert.equal(additionalMs([half], month.startMs, month.endMs), 0);
  assert.equal(additionalMs([half, { fromMs: at(1), toMs: null }], month.startMs, at(20)), 15 * 24 * hour);
  // One after the other is one server all along.
  assert.equal(additionalMs([half, { fromMs: at(16), toMs: null }], month.startMs, at(20)), 0);
  assert.equal(additionalMs([half, half, half], month.startMs, at(20)), 2 * 15 * 24 * hour);
});

test('API-2.5: what is earned may be used, what is only potential may not, and the free part is used first', () => {
  const lives = [
    { fromMs: Date.UTC(2024, 0, 1), toMs: null },
    { fromMs: at(1), toMs: null },
    { fromMs: at(1), toMs: at(4) },
  ];
  const pool = computePool({
    rules,
    month,
    nowMs: at(16),
    openedAt: new Date(Date.UTC(2023, 5, 1)),
    lives,
    usedBytes: 1300 * gb,
  });
  assert.deepEqual(pool, {
    baseBytes: 1000 * gb,
    tenureBytes: 200 * gb,
    freeBytes: 1200 * gb,
    perServerBytes: 500 * gb,
    earnedBytes: 250 * gb + 50 * gb,
    potentialEarnedBytes: 250 * gb,
    earnedRemainingBytes: 200 * gb,
    allowanceBytes: 1500 * gb,
    potentialBytes: 1750 * gb,
    usedBytes: 1300 * gb,
    remainingBytes: 200 * gb,
    projection: { bytes: 2600 * gb, hours: 15 * 24 },
  });
  const old = computePool({
    rules,
    month,
    nowMs: at(16),
    openedAt: new Date(0),
    lives: [],
    usedBytes: 5000 * gb,
  });
  assert.deepEqual([old.tenureBytes, old.remainingBytes, old.earnedRemainingBytes], [250 * gb, 0, 0]);
});

test('a projection of the pool rests on the hours since the first server, and there is none before the first', () => {
  const of = (fromMs: number, nowMs: number) =>
    computePool({
      rules,
      month,
      nowMs,
      openedAt: new Date(0),
      lives: [{ fromMs, toMs: null }],
      usedBytes: 30 * gb,
    }).projection;
  // On the 26th a day of the server is over, and five of the month are to come.
  assert.deepEqual(of(at(25), at(26)), { bytes: 180 * gb, hours: 24 });
  assert.equal(of(at(25), at(25) + 26 * 60_000), null);
});

test('years are counted by the calendar', () => {
  assert.equal(fullYears(new Date(Date.UTC(2023, 10, 16)), at(16)), 2);
  assert.equal(fullYears(new Date(Date.UTC(2023, 10, 16, 1)), at(16)), 1);
  assert.equal(fullYears(new Date(at(20)), at(16)), 0);
});

test('periods are whole UTC months and days, newest first', () => {
  assert.deepEqual(
    periodsBetween(Date.UTC(2025, 10, 30), Date.UTC(2026, 1, 1), 'month').map((period) => period.name),
    ['2026-01', '2025-12', '2025-11'],
  );
  assert.deepEqual(
    periodsBetween(Date.UTC(2024, 1, 28, 5), Date.UTC(2024, 2, 1, 1), 'day').map((period) => period.name),
    ['2024-03-01', '2024-02-29', '2024-02-28'],
  );
});
