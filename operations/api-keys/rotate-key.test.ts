import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hasCode } from '#common/errors/index.ts';
import { systemActor } from '#operations/accounts/index.ts';
import { createWorld } from '#operations/testing/dated-world.ts';
import { moveWorldClock } from '#operations/testing/world-time.ts';

test('API-2.1.6, API-2.1.3: a rotated key has a successor that may do the same, and a day to be replaced in', async () => {
  await using world = await createWorld();
  const customer = await world.createCustomer('Rotating');
  const other = await world.createCustomer('Another');
  const old = await world.createKey(customer, 'read', [customer.tenant.id]);
  const keyId = old.split('_')[1]!;
  const owner = (await world.accounts.customerActorOf(customer.owner.id))!;
  const stranger = (await world.accounts.customerActorOf(other.owner.id))!;
  const isMissing = (error: unknown) => hasCode(error, 'api_keys.not_found');
  await assert.rejects(world.apiKeys.rotateKey(stranger, keyId), isMissing);
  const { token } = await world.apiKeys.rotateKey(owner, keyId);
  const [before, after] = [await world.apiKeys.verifyKey(old), await world.apiKeys.verifyKey(token)];
  assert.deepEqual(
    { ...after, keyId: '', isUseStale: false },
    { ...before, keyId: '', isUseStale: false },
    'scope, grants and organization are the old ones',
  );
  await assert.rejects(world.apiKeys.rotateKey(owner, keyId), isMissing, 'a key is rotated once');
  // Owner's page: the token stands in the answer to the POST and on no later page.
  const cookie = await world.signIn(customer.email);
  const page = async (path: string, fields?: Record<string, string>) => {
    const options = fields ? { method: 'POST', body: new URLSearchParams(fields) } : {};
    const answer = await fetch(`${world.url}${path}`, {
      ...options,
      headers: { accept: 'text/html', cookie },
    });
    return { status: answer.status, text: await answer.text(), cache: answer.headers.get('cache-control') };
  };
  const csrf_token = /name="csrf_token" value="([^"]+)"/.exec((await page('/client/developer/')).text)![1]!;
  const rotated = await page('/client/developer/rotate', { csrf_token, key_id: token.split('_')[1]! });
  const shown = /svc_[a-z0-9]{16}_[A-Za-z0-9_-]{43}/.exec(rotated.text)![0];
  assert.deepEqual([rotated.status, rotated.cache], [200, 'no-store']);
  assert.ok(await world.apiKeys.verifyKey(shown));
  const listed = (await page('/client/developer/')).text;
  assert.ok(!listed.includes(shown));
  assert.match(listed, /replaced, old key ends in 2[34] h</);
  assert.equal((await page('/client/developer/rotate', { csrf_token, key_id: 'a'.repeat(16) })).status, 404);
  for (let i = 0; i < 22; i += 1) await world.createKey(customer);
  await assert.rejects(world.apiKeys.rotateKey(owner, keyId), (error) => hasCode(error, 'api_keys.limit'));
  await moveWorldClock(world.database, '25 hours');
  assert.equal(await world.apiKeys.verifyKey(old), null);
  assert.ok(await world.apiKeys.verifyKey(shown));
  await assert.rejects(world.apiKeys.rotateKey(owner, keyId), isMissing, 'an expired key has no successor');
  assert.equal(await world.apiKeys.revokeKey(systemActor, shown.split('_')[1]!), true);
});

test('the successor of a key that expires lives as long as that one did', async () => {
  await using world = await createWorld();
  const customer = await world.createCustomer('Renewing');
  const owner = (await world.accounts.customerActorOf(customer.owner.id))!;
  const keyId = (await world.createKey(customer)).split('_')[1]!;
  await world.database.pool.query(
    "update api_keys set created_at = svc_now() - interval '89 days', expires_at = svc_now() + interval '1 day' where key_id = $1",
    [keyId],
  );
  const { token } = await world.apiKeys.rotateKey(owner, keyId);
  await moveWorldClock(world.database, '89 days');
  assert.ok(await world.apiKeys.verifyKey(token));
  await moveWorldClock(world.database, '91 days');
  assert.equal(await world.apiKeys.verifyKey(token), null);
});
