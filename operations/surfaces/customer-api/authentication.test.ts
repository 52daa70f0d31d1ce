import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemActor } from '#operations/accounts/index.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { mintCredential } from '#service-kit/credentials/index.ts';
import { type Answer, type Call, createApiClient } from './testing/client.ts';

let world: World;
let call: Call;
before(async () => {
  world = await createWorld();
  call = createApiClient(world.url);
});
after(() => world[Symbol.asyncDispose]());

/** What an answer says, without what is different by nature. */
function comparable(answer: Answer) {
  const headers = [...answer.headers].filter(([name]) => !['x-request-id', 'date'].includes(name));
  return { status: answer.status, headers, text: answer.text.replaceAll(/req_[0-9A-Z]{26}/g, 'ID') };
}

test('API-1.4: a signed-in session without a key gets 401', async () => {
  const { email } = await world.createCustomer('Session');
  const cookie = await world.signIn(email);
  assert.match(cookie, /^svc_operations=/);
  const answer = await call('GET', '/api/v2/servers', { headers: { cookie } });
  assert.equal(answer.status, 401);
});

test('API-1.4: a key in the query, the body or a cookie is no credential', async () => {
  const customer = await world.createCustomer('Places');
  const key = await world.createKey(customer);
  for (const options of [
    { path: `/api/v2/servers?api_key=${key}&authorization=Bearer%20${key}` },
    { path: '/api/v2/servers', headers: { cookie: `authorization=Bearer ${key}; key=${key}` } },
    { path: '/api/v2/servers', headers: { 'x-api-key': key } },
    { path: '/api/v2/servers', headers: { authorization: `Basic ${btoa(`${key}:`)}` } },
  ]) {
    const answer = await call('GET', options.path, options.headers ? { headers: options.headers } : {});
    assert.equal(answer.status, 401, JSON.stringify(options));
  }
  const inBody = await call('POST', '/api/v2/servers', { body: { key, plan: 'small', image: 'debian-12' } });
  assert.equal(inBody.status, 401);
});

test('API-5.2: every authentication failure is one 401, headers and body', async () => {
  const customer = await world.createCustomer('Failures');
  const key = await world.createKey(customer);
  const [, keyId, secret] = /^svc_([a-z0-9]+)_(.+)$/.exec(key)!;
  const revoked = await world.createKey(customer);
  await world.apiKeys.revokeKey(systemActor, revoked.split('_')[1]!);
  const expired = await world.createKey(customer);
  await world.database.pool.query(
    "update api_keys set expires_at = svc_now() - interval '1 second' where key_id = $1",
    [expired.split('_')[1]],
  );
  const gone = await world.createCustomer('Gone');
  const ofDeactivated = await world.createKey(gone);
  await world.accounts.setPersonActive(systemActor, gone.owner.id, false);
  const member = await world.createCustomer('Member');
  await world.accounts.addMember(systemActor, customer.tenant.organizationId, member.owner.id);
  const { token: ofRemoved } = await world.apiKeys.issueKey(systemActor, {
    organizationId: customer.tenant.organizationId,
    personId: member.owner.id,
    name: 'left over',
    scope: 'full',
    tenantIds: null,
  });
  assert.equal((await call('GET', '/api/v2/servers', { key: ofRemoved })).status, 200);
  await world.accounts.removeMember(systemActor, customer.tenant.organizationId, member.owner.id);
  const granted = await world.createKey(customer, 'full', [customer.tenant.id]);
  await world.database.pool.query('delete from api_key_tenants where key_id = $1', [granted.split('_')[1]]);

  const credentials: Record<string, string> = {
    unknown: `Bearer ${mintCredential('svc').token}`,
    'wrong secret, first character': `Bearer svc_${keyId}_${secret![0] === 'A' ? 'B' : 'A'}${secret!.slice(1)}`,
    'wrong secret, last character': `Bearer svc_${keyId}_${secret!.slice(0, -1)}${secret!.endsWith('A') ? 'B' : 'A'}`,
    revoked: `Bearer ${revoked}`,
    expired: `Bearer ${expired}`,
    'deactivated person': `Bearer ${ofDeactivated}`,
    'removed member': `Bearer ${ofRemoved}`,
    'no reachable tenant': `Bearer ${granted}`,
    'two parts': `Bearer svc_${keyId}`,
    'another prefix': `Bearer svcadm_${keyId}_${secret}`,
    'too long': `Bearer ${key}${'x'.repeat(200)}`,
    'padded secret': `Bearer ${key}=`,
    'another scheme': `Token ${key}`,
    'no token': 'Bearer',
    'two tokens': `Bearer ${key} ${key}`,
  };
  const wanted = comparable(await call('GET', '/api/v2/servers'));
  assert.equal(wanted.status, 401);
  for (const [cause, authorization] of Object.entries(credentials)) {
    const answer = await call('GET', '/api/v2/servers', { headers: { authorization } });
    assert.deepEqual(comparable(answer), wanted, cause);
  }
});

test('API-5.2: two Authorization headers are a 401, even when both are good', async () => {
  const { request } = await import('node:http');
  const key = await world.createKey(await world.createCustomer('Twice'));
  const status = await new Promise<number | undefined>((resolve, reject) => {
    const sent = request(`${world.url}/api/v2/servers`, (answer) => {
      answer.resume();
      resolve(answer.statusCode);
    });
    sent.on('error', reject);
    sent.setHeader('authorization', [`Bearer ${key}`, `Bearer ${key}`]);
    sent.end();
  });
  assert.equal(status, 401);
});

test('API-2.1.1: a secret that contains underscores authenticates', async () => {
  const customer = await world.createCustomer('Underscores');
  let key = await world.createKey(customer);
  while ((key.match(/_/g) ?? []).length < 4) {
    await world.apiKeys.revokeKey(systemActor, key.split('_')[1]!);
    key = await world.createKey(customer);
  }
  assert.equal((await call('GET', '/api/v2/servers', { key })).status, 200);
  const lower = await call('GET', '/api/v2/servers', { headers: { authorization: `bearer ${key}` } });
  assert.equal(lower.status, 200);
});

test('API-7: a 401 carries neither quota nor rate headers', async () => {
  const answer = await call('GET', '/api/v1/servers');
  const names = [...answer.headers.keys()].filter((name) => /quota|ratelimit/i.test(name));
  assert.deepEqual(names, []);
  assert.equal(answer.headers.get('www-authenticate'), 'Bearer realm="api"');
});

test('API-8.c: a source that fails too often is throttled, and a valid key from it never', async () => {
  await using strict = await createWorld({ authFailuresMax: 3 });
  const knock = createApiClient(strict.url);
  const key = await strict.createKey(await strict.createCustomer('Neighbour'));
  const wrong = mintCredential('svc').token;
  for (let i = 0; i < 3; i += 1)
    assert.equal((await knock('GET', '/api/v2/servers', { key: wrong })).status, 401);
  const throttled = await knock('GET', '/api/v2/servers', { key: wrong });
  assert.equal(throttled.status, 429);
  assert.equal(throttled.body.error.reason, 'auth_rate');
  assert.ok(Number(throttled.headers.get('retry-after')) > 0);
  assert.equal(throttled.headers.get('ratelimit'), null);
  assert.equal((await knock('GET', '/api/v2/servers', { key })).status, 200);
  assert.equal((await knock('GET', '/api/v2/servers')).status, 401, 'no credential is no failure');
});

test('API-5.6: a session beside a key changes nothing; the key alone says who acts, and is noted as who asked', async () => {
  const customer = await world.createCustomer('Keyed');
  const other = await world.createCustomer('Browsing');
  const { serverId } = await world.deploy(customer.tenant, 'keyed');
  const { serverId: foreignId } = await world.deploy(other.tenant, 'browsed');
  const key = await world.createKey(customer);
  const headers = { cookie: await world.signIn(other.email) };
  assert.equal((await call('GET', `/api/v2/servers/${foreignId}`, { key, headers })).status, 404);
  const answer = await call('POST', `/api/v2/servers/${serverId}/actions`, {
    key,
    headers,
    body: { action: 'reboot' },
  });
  assert.deepEqual([answer.status, answer.body.requested_by_key], [202, key.split('_')[1]]);
  const wrong = { ...headers, authorization: `Bearer ${mintCredential('svc').token}` };
  assert.equal(
    (await call('GET', '/api/v2/servers', { headers: wrong })).status,
    401,
    'no session helps a bad key',
  );
});
