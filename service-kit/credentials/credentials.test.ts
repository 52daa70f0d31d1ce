import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import { digestSecret, mintCredential, parseCredential, readBearer, secretMatches } from './index.ts';

test('API-2.1.a: a token has the shape svc_<key_id>_<secret>', () => {
  const minted = mintCredential('svc');
  assert.match(minted.token, /^svc_[a-z0-9]{16}_[A-Za-z0-9_-]{43}$/);
  assert.deepEqual(parseCredential('svc', minted.token), { id: minted.id, secret: minted.secret });
});

test('API-2.1.b: the id holds no underscore and the secret is 32 bytes in base64url', () => {
  const seen = new Set<string>();
  for (let i = 0; i < 500; i += 1) {
    const minted = mintCredential('svc');
    assert.ok(!minted.id.includes('_'));
    assert.equal(Buffer.from(minted.secret, 'base64url').length, 32);
    seen.add(minted.token);
  }
  assert.equal(seen.size, 500);
});

test('API-2.1.c: the digest is the bare SHA-256 of the secret as written', () => {
  const minted = mintCredential('svc');
  assert.deepEqual(minted.digest, createHash('sha256').update(minted.secret).digest());
  assert.deepEqual(digestSecret(minted.secret), minted.digest);
});

test('API-2.1.1: a secret with any number of underscores survives the split', () => {
  const character = fc.constantFrom(...'abcABC019-____');
  const secret = fc.string({ unit: character, minLength: 43, maxLength: 43 });
  fc.assert(
    fc.property(secret, (text) => {
      assert.deepEqual(parseCredential('svc', `svc_abcdefgh01234567_${text}`), {
        id: 'abcdefgh01234567',
        secret: text,
      });
    }),
    { seed: 1 },
  );
});

test('API-2.1.1: what is no token of this kind is refused before any look-up', () => {
  const { token } = mintCredential('svc');
  const secret = token.slice(21);
  for (const bad of [
    '',
    'svc',
    'svc_',
    'svc_abc',
    token.slice(0, -1),
    `${token}a`,
    token.toUpperCase(),
    ` ${token}`,
    `${token}=`,
    `svcadm${token.slice(3)}`,
    `svc__${secret}`,
    `svc_abcdefgh0123456_${secret}`,
    token.replace('_', '-'),
    `svc_abcdefgh01234567_${'é'.repeat(43)}`,
    `${token}${'a'.repeat(100)}`,
  ]) {
    assert.equal(parseCredential('svc', bad), null, bad);
  }
});

test('API-2.1.2: only the exact secret matches, and no stored digest matches nothing', () => {
  const { secret, digest } = mintCredential('svc');
  assert.ok(secretMatches(digest, secret));
  assert.ok(!secretMatches(null, secret));
  assert.ok(!secretMatches(null, 'unknown'));
  const last = secret.at(-1)!;
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  // Four last characters decode to the same bytes; only one of them is the key.
  const others = [...alphabet].filter((character) => character !== last);
  for (const other of others) assert.ok(!secretMatches(digest, secret.slice(0, -1) + other));
});

test('API-1.4: the credential is read from one Authorization header with the scheme Bearer', () => {
  assert.equal(readBearer(['Host', 'x', 'authorization', 'bEaReR abc']), 'abc');
  assert.equal(readBearer(['Host', 'x']), null);
  assert.equal(readBearer(['Authorization', 'Bearer a', 'Authorization', 'Bearer a']), null);
  for (const bad of ['Basic abc', 'Bearer', 'Bearer  abc', 'Bearer a b', 'abc', 'Bearer\tabc']) {
    assert.equal(readBearer(['Authorization', bad]), null, bad);
  }
});
