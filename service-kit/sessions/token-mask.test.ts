import assert from 'node:assert/strict';
import { test } from 'node:test';
import { maskToken, unmaskToken } from './token-mask.ts';

test('a masked token is another text each time and unmasks to the token', () => {
  const token = 'Zk3-_token';
  const masked = Array.from({ length: 20 }, () => maskToken(token));
  assert.equal(new Set(masked).size, 20);
  for (const one of masked) {
    assert.ok(!one.includes(token));
    assert.equal(unmaskToken(one), token);
  }
});

test('what is no masked token stays as it is', () => {
  for (const text of ['', 'token', 'a.b.c', 'AAAA.AA', '.', 'x.'])
    assert.ok(['', text].includes(unmaskToken(text)), text);
  assert.equal(unmaskToken('token'), 'token');
  assert.equal(unmaskToken('AAAA.AA'), 'AAAA.AA');
});
