import assert from 'node:assert/strict';
import { createPrivateKey, createPublicKey, generateKeyPairSync, sign } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import {
  type Assertion,
  beginUrl,
  isTargetPath,
  keyIdOf,
  keyText,
  parseKeyText,
  placePath,
  signAssertion,
  stateOf,
  verifyAssertion,
} from './index.ts';

const vectors = JSON.parse(readFileSync(new URL('./vectors.json', import.meta.url), 'utf8')) as {
  seed: string;
  public_key: string;
  key_id: string;
  audience: string;
  secret: string;
  assertion: Assertion & { state: string };
  text: string;
};
/** An Ed25519 seed before its DER form (RFC 8410). */
const key = createPrivateKey({
  key: Buffer.concat([
    Buffer.from('302e020100300506032b657004220420', 'hex'),
    Buffer.from(vectors.seed, 'hex'),
  ]),
  format: 'der',
  type: 'pkcs8',
});
const publicKey = createPublicKey(key);
const issuedAt = vectors.assertion.issued_at;
const verify = (text: string, change: Partial<Parameters<typeof verifyAssertion>[1]> = {}) =>
  verifyAssertion(text, { key: publicKey, audience: vectors.audience, nowSeconds: issuedAt, ...change });

/** A payload that the issuer's key has signed, with any content. */
function signed(payload: object): string {
  const text = `svcso1.${Buffer.from(JSON.stringify(payload)).toString('base64url')}`;
  return `${text}.${sign(null, Buffer.from(text), key).toString('base64url')}`;
}
const whole = {
  issuer: vectors.key_id,
  ...vectors.assertion,
  expires_at: issuedAt + 60,
};

describe('assertions of a sign-on', () => {
  test('keys, key ids, states and assertions are byte by byte those of the vectors', () => {
    assert.equal(keyText(publicKey), vectors.public_key);
    assert.equal(keyIdOf(publicKey), vectors.key_id);
    assert.equal(stateOf(vectors.secret, vectors.assertion.path), vectors.assertion.state);
    assert.equal(signAssertion(key, publicKey, vectors.assertion), vectors.text);
    assert.deepEqual(verify(vectors.text), whole);
  });

  test('an assertion is valid for one minute, with thirty seconds for clocks that differ', () => {
    const at = (seconds: number) => verify(vectors.text, { nowSeconds: issuedAt + seconds });
    assert.deepEqual(at(-30), whole);
    assert.equal(at(-31), 'not_yet_valid');
    assert.deepEqual(at(89), whole);
    assert.equal(at(90), 'expired');
  });

  test('an assertion of another key, or for another receiver, is refused', () => {
    const other = generateKeyPairSync('ed25519').publicKey;
    assert.equal(verify(vectors.text, { key: other }), 'not_genuine');
    assert.equal(verify(vectors.text, { audience: keyIdOf(other) }), 'wrong_audience');
    assert.equal(verify(signed({ ...whole, issuer: keyIdOf(other) })), 'not_genuine');
  });

  test('no byte of an assertion can be changed, and there is one spelling of it', () => {
    for (const at of [3, 8, 40, vectors.text.length - 60]) {
      const change = vectors.text[at] === 'A' ? 'B' : 'A';
      const text = `${vectors.text.slice(0, at)}${change}${vectors.text.slice(at + 1)}`;
      assert.equal(verify(text), 'not_genuine', String(at));
    }
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
    const last = alphabet.indexOf(vectors.text.at(-1)!);
    const respelled = `${vectors.text.slice(0, -1)}${alphabet[last ^ 1]}`;
    assert.equal(verify(respelled), 'not_genuine', 'unused bits of the last character');
    for (const text of ['', '.', `${vectors.text}.`, `${vectors.text} `, 'svcso1..', vectors.text.slice(1)])
      assert.equal(verify(text), 'not_genuine', text);
  });

  test('what the issuer signed but may not say is refused', () => {
    const cases: [object, string][] = [
      [{ ...whole, expires_at: issuedAt + 61 }, 'not_genuine'],
      [{ ...whole, expires_at: issuedAt }, 'not_genuine'],
      [{ ...whole, authenticated_at: issuedAt + 1 }, 'not_genuine'],
      [{ ...whole, operator_id: 0 }, 'not_genuine'],
      [{ ...whole, operator_id: '7' }, 'not_genuine'],
      [{ ...whole, nonce: 'short' }, 'not_genuine'],
      [{ ...whole, second_factor: 'true' }, 'not_genuine'],
      [{ ...whole, role: 'operator' }, 'not_genuine'],
      [{ ...whole, state: undefined }, 'not_genuine'],
      [{ ...whole, path: '//evil.example' }, 'bad_path'],
    ];
    for (const [payload, fault] of cases)
      assert.equal(verify(signed(payload)), fault, JSON.stringify(payload));
    assert.throws(() => signAssertion(key, publicKey, { ...vectors.assertion, path: '//evil.example' }));
    assert.throws(() => signAssertion(key, publicKey, { ...vectors.assertion, operator_email: '' }));
  });

  test('a sign-on leads to pages of the receiver only, and to none that signs on or out', () => {
    for (const path of ['/', '/console/servers/7', '/find/server?cluster_id=1&server_id=2', '/a?b=//c'])
      assert.ok(isTargetPath(path), path);
    const refused = [
      '//evil.example',
      '/\\evil.example',
      '/\t/evil.example',
      '/ /evil.example',
      'https://evil.example/',
      'javascript:alert(1)',
      'evil.example',
      '',
      '/..//evil.example',
      '/a/../..//evil.example',
      '/%2e//evil.example',
      '/é',
      '/sign-on?to=/sign-on',
      '/sign-on/finish',
      '/x/../sign-out',
      '/sign-in',
      `/${'a'.repeat(2_000)}`,
    ];
    for (const path of refused) assert.ok(!isTargetPath(path), path);
    assert.ok(isTargetPath('/sign-once'), 'other words that begin alike');
  });

  test('a public key is taken in one spelling', () => {
    assert.ok(parseKeyText(vectors.public_key)?.equals(publicKey));
    for (const text of [
      '',
      'svcpub_',
      vectors.public_key.slice(0, -1),
      ` ${vectors.public_key}`,
      `${vectors.public_key}A`,
    ])
      assert.equal(parseKeyText(text), null, text);
  });

  test('links name places by what both programs know, and escape it', () => {
    assert.equal(
      placePath({ kind: 'server', clusterId: 1, serverId: 2 }),
      '/find/server?cluster_id=1&server_id=2',
    );
    assert.equal(placePath({ kind: 'customer', accountId: 3 }), '/find/customer?account_id=3');
    assert.equal(
      placePath({ kind: 'customer', accountId: 3 }, { range: 'custom', from: '2026-11-20T10:00Z' }),
      '/find/customer?account_id=3&range=custom&from=2026-11-20T10%3A00Z',
      'the range of the page goes along',
    );
    const odd = placePath({ kind: 'address', address: 'a&b=//c' });
    assert.equal(odd, '/find/address?address=a%26b%3D%2F%2Fc');
    assert.equal(beginUrl('https://m.example', '/a?b=1'), 'https://m.example/sign-on?to=%2Fa%3Fb%3D1');
  });
});
