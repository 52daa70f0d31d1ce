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

test('the way out of a range that was dragged over is in the URL, one step at a time', () => {
  const out = 'default,2026-11-21T08:00Z~2026-11-21T10:00Z';
  const url = (query: Record<string, string>) => `/a?${new URLSearchParams({ x: '1', ...query })}`;
  const hrefOf = (path: string) => {
    const html = String(rangePicker({ url: path, range: readRange({}, nowMs), nowMs }));
    return /<a href="([^"]+)" class="link-quiet" data-zoom-out>Zoom out</
      .exec(html)?.[1]
      ?.replaceAll('&amp;', '&');
  };
  const custom = { range: 'custom', from: '2026-11-21T09:00Z', to: '2026-11-21T09:10Z' };
  const first = hrefOf(url({ ...custom, out }))!;
  const query = new URLSearchParams(first.split('?')[1]);
  assert.deepEqual(Object.fromEntries(query), {
    x: '1',
    range: 'custom',
    from: '2026-11-21T08:00Z',
    to: '2026-11-21T10:00Z',
    out: 'default',
  });
  assert.equal(hrefOf(first), '/a?x=1');
  assert.equal(hrefOf('/a?x=1'), undefined);
  for (const forged of ['javascript:x', '//evil.example', '6h,', '<b>', `2026~2027`])
    assert.equal(hrefOf(url({ ...custom, out: forged })), undefined, forged);
});
