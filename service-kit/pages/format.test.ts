import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  formatAge,
  formatBitRate,
  formatBytes,
  formatCount,
  formatDuration,
  formatMoney,
  formatMoneyAbout,
  formatMonth,
  formatPacketRate,
  formatPercent,
  formatTime,
} from './format.ts';

describe('format', () => {
  test('sizes and rates carry three digits and the largest fitting unit', () => {
    assert.equal(formatBytes(0), '0 B');
    assert.equal(formatBytes(999), '999 B');
    assert.equal(formatBytes(1000), '1.00 kB');
    assert.equal(formatBytes(999_499), '999 kB');
    assert.equal(formatBytes(999_500), '1.00 MB');
    assert.equal(formatBitRate(12_400_000), '12.4 Mbit/s');
    assert.equal(formatBitRate(8 / 60), '0.13 bit/s');
    assert.equal(formatBitRate(9_996), '10.0 kbit/s');
    assert.equal(formatPacketRate(1_480_000), '1.48 Mpps');
    assert.equal(formatBytes(-2048), '−2.05 kB');
  });

  test('what is not known reads unknown, never 0', () => {
    for (const format of [
      formatBytes,
      formatBitRate,
      formatPacketRate,
      formatCount,
      formatPercent,
      formatMoney,
      formatTime,
      formatDuration,
    ]) {
      assert.equal(format(null), 'unknown');
      assert.equal(format(undefined), 'unknown');
    }
    assert.equal(formatAge(null, 0), 'never');
  });

  test('money keeps every quantum of 0.0001', () => {
    assert.equal(formatMoney(125), '$0.0125');
    assert.equal(formatMoney(1_234_567_800), '$123,456.78');
    assert.equal(formatMoney(-1), '−$0.0001');
    assert.equal(formatMoney(10_010), '$1.0010');
    assert.equal(formatMoney(0), '$0.00');
    assert.equal(formatMoney(90_071_992_547_409_931_234n), '$9,007,199,254,740,993.1234');
    assert.equal(formatMoney(5000, 'EUR'), '0.50 EUR');
  });

  test('moments are UTC, ages have one unit', () => {
    const ms = Date.UTC(2026, 10, 21, 10, 14, 5);
    assert.equal(formatTime(ms), '2026-11-21 10:14 UTC');
    assert.equal(formatTime(ms, 'seconds'), '2026-11-21 10:14:05 UTC');
    assert.equal(formatTime(ms, 'day'), '2026-11-21');
    assert.equal(formatAge(ms - 20_000, ms), '20 s ago');
    assert.equal(formatAge(ms - 47 * 3_600_000, ms), '47 h ago');
    assert.equal(formatAge(ms - 49 * 3_600_000, ms), '2 days ago');
    assert.equal(formatAge(ms + 240_000, ms), 'in 4 min');
    assert.equal(formatAge(ms - 100 * 86_400_000, ms), '3 months ago');
    assert.equal(formatAge(ms + 365 * 86_400_000 - 5000, ms), 'in 1 year');
    assert.equal(formatAge(ms + 730 * 86_400_000, ms), 'in 2 years');
    assert.equal(formatAge(ms, ms), 'now');
  });

  test('counts and shares', () => {
    assert.equal(formatCount(1_234_567), '1,234,567');
    assert.equal(formatPercent(0.9995, 2), '99.95 %');
    assert.equal(formatPercent(0.999999, 2), '99.99 %');
    assert.equal(formatPercent(1, 2), '100.00 %');
    assert.equal(formatPercent(0.0001), '< 0.1 %');
    assert.equal(formatPercent(0), '0.0 %');
  });
});

test('an estimate is told to the cent, a month by its name', () => {
  assert.deepEqual(
    [formatMoneyAbout(445_592), formatMoneyAbout(108), formatMoneyAbout(-445_549), formatMoneyAbout(null)],
    ['$44.56', '$0.01', '−$44.55', 'unknown'],
  );
  assert.deepEqual([formatMonth('2026-11'), formatMonth('2027-01')], ['November 2026', 'January 2027']);
});
