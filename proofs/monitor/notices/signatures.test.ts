import assert from 'node:assert/strict';
import { test } from 'node:test';
import { forge } from './signatures.prove.ts';

const share = Number(process.env.SVC_TEST_NOTICE_SHARE ?? 2);

test(`NET-2.8, NET-5.4: documented vectors and ${share} % of all forgeries are judged as a second HMAC judges them, and nothing refused is read`, async () => {
  const { offences, vectors, tampered, moments, forms } = await forge({ n: share, seed: 4 }, {});
  assert.deepEqual(offences, []);
  assert.ok(vectors > 174 * 2 && tampered > 100 && moments > 300 && forms > 30);
});
