import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemActor } from '#operations/accounts/index.ts';
import { createWorld, password, type World } from '#operations/testing/dated-world.ts';

let world: World;
let operator: string;
let support: string;

before(async () => {
  world = await createWorld();
  for (const staffRole of ['operator', 'support'] as const) {
    const email = `${staffRole}@staff.test`;
    await world.accounts.createPerson(systemActor, { email, name: staffRole, password, staffRole });
  }
  operator = await world.signIn('operator@staff.test');
  support = await world.signIn('support@staff.test');
});
after(() => world[Symbol.asyncDispose]());

const get = (path: string, cookie: string) =>
  fetch(`${world.url}${path}`, { headers: { accept: 'text/html', cookie }, redirect: 'manual' });

async function post(path: string, cookie: string, fields: Record<string, string>) {
  const page = await (await get('/console/', cookie)).text();
  const csrf_token = /name="csrf_token" value="([^"]+)"/.exec(page)?.[1] ?? '';
  return fetch(`${world.url}${path}`, {
    method: 'POST',
    headers: { accept: 'text/html', cookie },
    body: new URLSearchParams({ ...fields, csrf_token }),
    redirect: 'manual',
  });
}

test('staff land in the console and see every customer’s tenants and servers', async () => {
  const answer = await fetch(`${world.url}/sign-in`, {
    method: 'POST',
    body: new URLSearchParams({ email: 'support@staff.test', password }),
    redirect: 'manual',
  });
  assert.equal(answer.headers.get('location'), '/console/');
  const { tenant } = await world.createCustomer('Visible Inc');
  await world.deploy(tenant, 'visible-1');
  for (const cookie of [operator, support]) {
    assert.match(await (await get('/console/customers/', cookie)).text(), /Visible Inc/);
    assert.match(await (await get('/console/servers/', cookie)).text(), /visible-1/);
  }
});

test('a customer finds nothing at the console, strangers are sent to sign in', async () => {
  const { email } = await world.createCustomer('Curious');
  const cookie = await world.signIn(email);
  for (const path of ['/console/', '/console/servers/', '/console/projects/']) {
    assert.equal((await get(path, cookie)).status, 404, path);
    assert.equal((await get(path, '')).status, 303, path);
  }
});

test('NET-5.1: an operator makes a project and a token that is shown once and works; revoked, it does not', async () => {
  const made = await post('/console/projects/', operator, {
    name: 'Monitor',
    permissions: 'vm_inventory_read',
  });
  assert.equal(made.status, 303);
  const path = made.headers.get('location')!;
  const issued = await (await post(`${path}/tokens`, operator, { days: '30' })).text();
  const token = /svcadm_[a-z0-9]{16}_[A-Za-z0-9_-]{43}/.exec(issued)![0];
  const use = () =>
    fetch(`${world.url}/api/admin/v1/inventory/vms/`, { headers: { authorization: `Bearer ${token}` } });
  assert.equal((await use()).status, 200);
  assert.ok(!(await (await get(path, operator)).text()).includes(token.slice(-43)));
  assert.equal((await post(`${path}/revoke`, operator, { token_id: token.split('_')[1]! })).status, 303);
  assert.equal((await use()).status, 401);
});

test('support reads the projects and changes none of them', async () => {
  const made = await post('/console/projects/', operator, { name: 'Read me' });
  const path = made.headers.get('location')!;
  const page = await (await get(path, support)).text();
  assert.match(page, /Read me/);
  assert.doesNotMatch(page, /Issue token|>Save</);
  assert.equal((await post('/console/projects/', support, { name: 'Mine' })).status, 403);
  assert.equal((await post(`${path}/tokens`, support, {})).status, 403);
  assert.doesNotMatch(await (await get('/console/projects/', operator)).text(), />Mine</);
});

test('the form of a project keeps the permissions that it does not show', async () => {
  const project = await world.adminProjects.create(systemActor, {
    name: 'Keeps',
    permissions: ['vm_inventory_read'],
    clusterIds: [1],
  });
  // Granted by a version that receives more feeds than this one.
  await world.database.pool.query(
    "update admin_projects set permissions = permissions || '{protect_future_ingest}' where id = $1",
    [project.id],
  );
  const page = await (await get(`/console/projects/${project.id}`, operator)).text();
  assert.match(page, /type="hidden" name="permissions" value="protect_future_ingest"/);
  const refused = await post(`/console/projects/${project.id}`, operator, { name: ' ' });
  assert.equal(refused.status, 422);
});

test('staff see whether webhooks are sent in time', async () => {
  for (const cookie of [operator, support]) {
    const page = await (await get('/console/webhooks/', cookie)).text();
    assert.match(page, /All deliveries are on time/);
  }
  const { tenant, owner } = await world.createCustomer('Late');
  const actor = (await world.accounts.customerActorOf(owner.id))!;
  await world.webhooks.createEndpoint(actor, {
    organizationId: tenant.organizationId,
    tenantId: null,
    url: 'https://example.com/secret-path',
    description: '',
    eventTypes: ['server.created'],
  });
  assert.match(await (await get('/console/webhooks/', support)).text(), /No failing endpoints/);
  await world.database.pool.query(
    "update webhook_endpoints set failing_since = svc_now() - interval '3 hours', consecutive_failures = 4",
  );
  const failing = await (await get('/console/webhooks/', support)).text();
  assert.match(failing, /Deliveries to some endpoints are failing/);
  assert.match(failing, /Late[\s\S]*example\.com[\s\S]*3 h ago/);
  assert.doesNotMatch(failing, /secret-path/, 'a receiver’s path may be its secret');
  await world.deploy(tenant, 'late');
  await world.database.pool.query("update events set occurred_at = svc_now() - interval '10 minutes'");
  assert.match(await (await get('/console/webhooks/', support)).text(), /Deliveries are 10 min late/);
});
