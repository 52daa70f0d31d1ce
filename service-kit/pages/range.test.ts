import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { rangePicker, readRange } from './range.ts';

const nowMs = Date.UTC(2026, 10, 21, 10, 14, 5);
const iso = (ms: number) => new Date(ms).toISOString();

describe('range', () => {
  test('a named range ends with the step that holds now and has 15 to 720 points', () => {
    for (const name of ['15m', '1h', '6h', '24h', '7d', '30d']) {
      const range = readRange({ range: name }, nowMs);
      const points = (range.toMs - range.fromMs) / (range.stepSeconds * 1000);
      assert.equal(range.name, name);
      assert.ok(Number.isInteger(points) && points >= 15 && points <= 720, `${name}: ${points}`);
      assert.ok(range.toMs >= nowMs && range.toMs - nowMs < range.stepSeconds * 1000);
    }
    assert.equal(iso(readRange({ range: '1h' }, nowMs).fromMs), '2026-11-21T09:15:00.000Z');
  });

  test('a custom range is read as UTC and widened to whole steps', () => {
    const range = readRange({ range: 'custom', from: '2026-11-20T10:00', to: '2026-11-21T10:07' }, nowMs);
    assert.equal(range.name, 'custom');
    assert.equal(range.stepSeconds, 300);
    assert.equal(iso(range.fromMs), '2026-11-20T10:00:00.000Z');
    assert.equal(iso(range.toMs), '2026-11-21T10:10:00.000Z');
  });

  test('what can not be read gives the fallback, and a custom range says why', () => {
    assert.equal(readRange({ range: 'constructor' }, nowMs).name, '6h');
    assert.equal(readRange({ range: ['1h', '6h'] }, nowMs, '24h').name, '24h');
    const wrong = [
      [{ from: 'x', to: '2026-11-21T10:00' }, /UTC/],
      [{ from: '2026-11-21T10:00', to: '2026-11-21T10:00' }, /after/],
      [{ from: '2020-01-01T00:00', to: '2026-01-01T00:00' }, /at most 400 days/],
      [{ from: '2026-99-99T00:00', to: '2026-11-21T10:00' }, /UTC/],
    ] as const;
    for (const [query, reason] of wrong) {
      const range = readRange({ range: 'custom', ...query }, nowMs);
      assert.equal(range.name, '6h');
      assert.match(range.error ?? '', reason);
    }
  });

  test('the picker keeps the rest of the query, in links and in the form', () => {
    const made = String(
      rangePicker({ url: '/t?ip=192.0.2.1&range=1h', range: readRange({ range: '1h' }, nowMs) }),
    );
    assert.match(made, /href="\/t\?ip=192\.0\.2\.1&amp;range=24h"/);
    assert.match(made, /<input type="hidden" name="ip" value="192\.0\.2\.1">/);
    assert.match(made, /range=1h" class="link-quiet" aria-current="page"/);
  });
});
