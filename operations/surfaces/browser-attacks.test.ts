/** What a browser can be made to do to the API and to a new key; forms: `system-tests/unsafe-routes.test.ts`. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { endpoints } from '#contracts/customer-api/index.ts';
import { systemActor } from '#operations/accounts/index.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { visit } from '#operations/testing/visit.ts';

let world: World;
let victim: { cookie: string; serverId: number };
before(async () => {
  world = await createWorld();
  const { tenant, email } = await world.createCustomer('Victim');
  const { serverId } = await world.deploy(tenant, 'victim');
  victim = { cookie: await world.signIn(email), serverId };
});
after(() => world[Symbol.asyncDispose]());

test('I2, API-5.6: cookies have no influence on any call of the API', async () => {
  const customer = await world.createCustomer('Cookies');
  const key = await world.createKey(customer, 'read');
  const foreign = victim.cookie;
  const ask = async (method: string, path: string, headers: Record<string, string>) => {
    const answer = await fetch(`${world.url}${path}`, { method, headers });
    const text = (await answer.text()).replaceAll(/req_[0-9A-Z]{26}/g, 'ID');
    return { status: answer.status, text, tenant: answer.headers.get('x-tenant-id') };
  };
  for (const endpoint of endpoints) {
    for (const version of endpoint.versions) {
      const path = `/api/${version}${endpoint.path.replace(/\{\w+\}/g, String(victim.serverId))}`;
      const session = await ask(endpoint.method, path, { cookie: foreign });
      assert.equal(session.status, 401, `${endpoint.id} with a session alone`);
      const badKey = { cookie: foreign, authorization: `Bearer ${key.slice(0, -1)}~` };
      assert.deepEqual(await ask(endpoint.method, path, badKey), session, `${endpoint.id} with a bad key`);
      if (endpoint.method !== 'GET') continue;
      const authorization = `Bearer ${key}`;
      const alone = await ask('GET', path, { authorization });
      const beside = await ask('GET', path, { authorization, cookie: foreign });
      // How much of the minute is left is the one thing that the second call of a key tells differently.
      const steady = (one: typeof alone) => ({ ...one, text: one.text.replace(/"remaining":\d+/, '') });
      const isMoving = ['readKey', 'readUsage', 'readAccount'].includes(endpoint.id);
      assert.equal(beside.status, alone.status, endpoint.id);
      assert.equal(beside.tenant, alone.tenant, endpoint.id);
      if (!isMoving) assert.deepEqual(steady(beside), steady(alone), endpoint.id);
    }
  }
});

test('API-2.1.4: the workspace that the browser of a key’s owner shows is not that of the key’s calls', async () => {
  const customer = await world.createCustomer('Of two workspaces');
  const { organizationId } = customer.tenant;
  const second = await world.accounts.createTenant(systemActor, { organizationId, name: 'Second workspace' });
  const authorization = `Bearer ${await world.createKey(customer, 'read')}`;
  const cookie = await world.signIn(customer.email);
  const chosen = `/client/billing/?tenant=${second.id}`;
  const page = await fetch(`${world.url}${chosen}`, { headers: { cookie, accept: 'text/html' } });
  assert.match(await page.text(), /Second workspace/);
  for (const headers of [{ authorization }, { authorization, cookie, referer: `${world.url}${chosen}` }]) {
    const answer = await fetch(`${world.url}/api/v2/account`, { headers });
    assert.equal(answer.headers.get('x-tenant-id'), String(customer.tenant.id));
  }
});

test('I4, API-2.1.a: a new key is in one response only, after any action of the browser', async () => {
  const { get, post } = await visit(world, (await world.createCustomer('Of new keys')).email, '/client/');
  const create = async () => {
    const answer = await post('/client/developer/', { name: 'once', scope: 'read' });
    assert.match(answer.headers.get('cache-control')!, /no-store/);
    assert.equal(answer.status, 200);
    return /svc_[a-z0-9]{16}_[A-Za-z0-9_-]{43}/.exec(await answer.text())![0];
  };
  // A double submit makes two keys, each shown once; a reload or the way back asks with GET and shows none.
  const made = [await create(), await create()];
  assert.notEqual(made[0], made[1]);
  for (const path of ['/client/developer/', '/client/', '/client/developer/usage/']) {
    const answer = await get(path);
    const page = await answer.text();
    assert.match(answer.headers.get('cache-control')!, /no-store/);
    for (const key of made) assert.ok(!page.includes(key.slice(-43)), path);
  }
});
