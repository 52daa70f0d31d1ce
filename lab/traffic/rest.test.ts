import assert from 'node:assert/strict';
import { test } from 'node:test';
import { msUntilCut, msUntilExchange } from './talk.ts';

const minute = 1_795_257_180_000;

test('no exchange begins, and none is left open, from half a second before to half a second after a minute', () => {
  for (let at = 0; at < 60_000; at += 10) {
    const begins = at + msUntilExchange(minute + at);
    assert.ok(begins >= at);
    const within = begins % 60_000;
    assert.ok(within > 500 && within < 59_000, `an exchange begins at ${within} ms`);
    const cut = begins + msUntilCut(minute + begins);
    assert.ok(cut % 60_000 < 59_500 && Math.floor(cut / 60_000) === Math.floor(begins / 60_000));
  }
});

test('an exchange may begin at once in the middle of a minute', () => {
  assert.equal(msUntilExchange(minute + 30_000), 0);
});
