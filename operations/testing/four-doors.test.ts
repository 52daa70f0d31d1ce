/** API v1, API v2, the portal and the console are doors to the same operations: they do and refuse the same. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { CodedError } from '#common/errors/index.ts';
import { systemActor } from '#operations/accounts/index.ts';
import { password, type World } from './create-world.ts';
import { createWorld } from './dated-world.ts';

let world: World;
let operator: string;
let isBroken = false;
before(async () => {
  world = await createWorld({
    hypervisor: (usual) => ({
      ...usual,
      async ensureGuest(guest, step) {
        if (isBroken) throw new CodedError('hypervisor.refused', 'no');
        return usual.ensureGuest(guest, step);
      },
    }),
  });
  const email = 'operator@staff.test';
  await world.accounts.createPerson(systemActor, { email, name: 'Op', password, staffRole: 'operator' });
  operator = await world.signIn(email);
});
after(() => world[Symbol.asyncDispose]());

async function api(version: 'v1' | 'v2', key: string, method: string, path: string, body?: object) {
  const answer = await fetch(`${world.url}/api/${version}${path}`, {
    method,
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
  return {
    status: answer.status,
    told: ((await answer.json()) as { error?: { message: string } }).error?.message,
  };
}

async function page(cookie: string, home: string, path: string, fields: Record<string, string>) {
  const headers = { accept: 'text/html', cookie };
  const form = await (await fetch(`${world.url}${home}`, { headers })).text();
  const csrf_token = /name="csrf_token" value="([^"]+)"/.exec(form)?.[1] ?? '';
  const body = new URLSearchParams({ ...fields, csrf_token });
  const answer = await fetch(`${world.url}${path}`, { method: 'POST', headers, body, redirect: 'manual' });
  return { status: answer.status, text: await answer.text() };
}

async function customer(name: string) {
  const made = await world.createCustomer(name);
  return { ...made, key: await world.createKey(made), cookie: await world.signIn(made.email) };
}

test('API-1.2: a power command is one action by every door, and busy by every door while it runs', async () => {
  const { tenant, key, cookie } = await customer('Doors');
  const { serverId } = await world.deploy(tenant, 'doors');
  const doors: Record<string, (action: string) => Promise<number>> = {
    v1: async (action) => (await api('v1', key, 'POST', `/servers/${serverId}/actions`, { action })).status,
    v2: async (action) => (await api('v2', key, 'POST', `/servers/${serverId}/actions`, { action })).status,
    portal: async (action) =>
      (await page(cookie, '/client/', `/client/servers/${serverId}/actions`, { action })).status,
    console: async (action) =>
      (await page(operator, '/console/', `/console/servers/${serverId}/actions`, { action })).status,
  };
  let command = 'stop';
  for (const [name, door] of Object.entries(doors)) {
    assert.ok([202, 303].includes(await door(command)), name);
    for (const [other, busy] of Object.entries(doors))
      assert.equal(await busy(command), 409, `${other} while ${name}`);
    await world.jobs.drain();
    const [action] = await world.servers.listActions(systemActor, tenant.id, serverId, 1);
    assert.deepEqual([action?.command, action?.status], [command, 'success'], name);
    command = command === 'stop' ? 'start' : 'stop';
  }
  assert.equal((await world.servers.listActions(systemActor, tenant.id, serverId, 50)).length, 5);
});

test('API-1.2, API-3.4: a server that failed is kept by every customer’s door, for the same reason', async () => {
  const { tenant, key, cookie } = await customer('Kept');
  isBroken = true;
  const { serverId } = await world.deploy(tenant, 'kept');
  isBroken = false;
  const first = await api('v1', key, 'DELETE', `/servers/${serverId}`);
  const second = await api('v2', key, 'DELETE', `/servers/${serverId}`);
  assert.deepEqual([first.status, second.status, second.told], [409, 409, first.told]);
  const portal = await page(cookie, '/client/', `/client/servers/${serverId}/destroy`, {
    confirm_name: 'kept',
  });
  assert.equal(portal.status, 409);
  assert.equal((await world.servers.findServer(systemActor, null, serverId))?.provisioningState, 'failed');
});

test('API-1.2, API-5.5: who may not deploy is told the same by every door, and nothing is ordered', async () => {
  const { tenant, key, cookie } = await customer('Poor');
  await world.setBalance(tenant, 0);
  const order = { plan: 'small', image: 'debian-12' };
  const first = await api('v1', key, 'POST', '/servers', order);
  const second = await api('v2', key, 'POST', '/servers', order);
  assert.deepEqual([first.status, second.status, second.told], [402, 402, first.told]);
  const form = { ...order, location: 'fra', name: '' };
  const portal = await page(cookie, '/client/', '/client/servers/new', form);
  assert.equal(portal.status, 402);
  assert.ok(portal.text.includes(first.told!), 'the portal says it in the same words');
  const { rows } = await world.database.pool.query(
    'select count(*) as n from server_orders where tenant_id = $1',
    [tenant.id],
  );
  assert.equal(rows[0].n, 0);
});
