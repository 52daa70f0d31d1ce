import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemActor } from '#operations/accounts/index.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { type Answer, type Call, createApiClient } from '../testing/client.ts';

let world: World;
let call: Call;
before(async () => {
  world = await createWorld();
  call = createApiClient(world.url);
});
after(() => world[Symbol.asyncDispose]());

/** A customer with a second workspace that has credit, and a third without a billing profile. */
async function createMany(name: string) {
  const customer = await world.createCustomer(name);
  const { organizationId } = customer.tenant;
  const second = await world.accounts.createTenant(systemActor, { organizationId, name: `${name} second` });
  await world.accounts.setBillingProfile(systemActor, second.id, {
    legalName: name,
    email: customer.email,
    country: 'DE',
  });
  await world.billing.addDeposit(systemActor, second.id, {
    amountQuanta: 100,
    reference: `second-${second.id}`,
    description: 'Deposit',
  });
  const third = await world.accounts.createTenant(systemActor, { organizationId, name: `${name} third` });
  return { ...customer, second, third };
}

test('API-2.1.f, API-2.2, API-4.a: the list has the workspaces that the key may act on, and says which are locked', async () => {
  const many = await createMany('Listed');
  const all = await call('GET', '/api/v2/tenants', { key: await world.createKey(many) });
  const shown = all.body.tenants.map((tenant: Record<string, unknown>) => [
    tenant.id,
    tenant.is_default,
    tenant.status,
    (tenant.api_access as { reason: string | null }).reason,
  ]);
  assert.deepEqual(shown, [
    [many.tenant.id, true, 'active', null],
    [many.second.id, false, 'active', null],
    [many.third.id, false, 'no_billing_profile', 'no_billing_profile'],
  ]);
  const selected = await world.createKey(many, 'read', [many.second.id]);
  const one = await call('GET', '/api/v2/tenants?tenant=nonsense', { key: selected });
  assert.deepEqual(
    one.body.tenants.map((tenant: { id: number; is_default: boolean }) => [tenant.id, tenant.is_default]),
    [[many.second.id, true]],
    'API-2.1.f: the first workspace that the key reaches is its default',
  );
});

test('API-4.0: v2 takes the workspace from query, JSON or header, by id or slug, and counts there', async () => {
  const many = await createMany('Selected');
  const key = await world.createKey(many);
  const { serverId } = await world.deploy(many.second, 'in-second');
  const path = `/api/v2/servers/${serverId}`;
  assert.equal((await call('GET', path, { key })).status, 404);
  for (const [url, headers] of [
    [`${path}?tenant=${many.second.id}`, {}],
    [`${path}?tenant=${many.second.slug}`, {}],
    [path, { 'x-tenant-id': String(many.second.id) }],
    [`${path}?tenant=${many.second.id}`, { 'x-tenant-id': many.second.slug }],
  ] as const) {
    const answer = await call('GET', url, { key, headers });
    assert.deepEqual([answer.status, answer.headers.get('x-tenant-id')], [200, String(many.second.id)], url);
  }
  const created = await call('POST', '/api/v2/servers', {
    key,
    body: { plan: 'small', image: 'debian-12', tenant: many.second.slug },
  });
  assert.deepEqual([created.status, created.body.tenant_id], [201, many.second.id]);
  const destroyed = await call('DELETE', path, { key, body: { tenant: many.second.id } });
  assert.equal(destroyed.status, 202);
  assert.equal(await world.metering.countOfMonth(many.tenant.id), 1);
  assert.equal(await world.metering.countOfMonth(many.second.id), 6);
});

test('API-4.0: two workspaces that differ are a 400, one that can not be reached is a 404', async () => {
  const many = await createMany('Conflict');
  const other = await world.createCustomer('Elsewhere');
  const key = await world.createKey(many);
  const conflict = await call('GET', `/api/v2/servers?tenant=${many.tenant.id}`, {
    key,
    headers: { 'x-tenant-id': String(many.second.id) },
  });
  assert.deepEqual([conflict.status, conflict.body.error.reason], [400, 'tenant_conflict']);
  const strip = (text: string) => text.replaceAll(/req_[0-9A-Z]{26}/g, 'ID');
  const foreign = await call('GET', `/api/v2/servers?tenant=${other.tenant.id}`, { key });
  const unknown = await call('GET', '/api/v2/servers?tenant=424242', { key });
  assert.deepEqual([foreign.status, strip(foreign.text)], [404, strip(unknown.text)]);
  const narrowed = await world.createKey(many, 'full', [many.tenant.id]);
  assert.equal(
    (await call('GET', `/api/v2/servers?tenant=${many.second.id}`, { key: narrowed })).status,
    404,
  );
  const locked = await call('GET', `/api/v2/servers?tenant=${many.third.id}`, { key });
  assert.deepEqual([locked.status, locked.body.error.reason], [403, 'no_billing_profile']);
});

test('the list of workspaces comes in pages that hold all of them, the default one first', async () => {
  const many = await createMany('Paged');
  const key = await world.createKey(many);
  const all = (await call('GET', '/api/v2/tenants', { key })).body;
  const seen: unknown[] = [];
  let path: string | null = '/api/v2/tenants?limit=1';
  while (path !== null) {
    const page: Answer = await call('GET', path, { key });
    assert.deepEqual([page.body.tenants.length, page.body.pagination.total], [1, all.tenants.length]);
    seen.push(page.body.tenants[0]);
    path = /<([^>]+)>; rel="next"/.exec(page.headers.get('link') ?? '')?.[1] ?? null;
  }
  assert.deepEqual(seen, all.tenants);
  for (const [query, status] of [
    ['cursor=YWZ0ZXI6OTk5OTk5', 400],
    ['limit=0', 422],
    ['page=2', 422],
  ] as const)
    assert.equal((await call('GET', `/api/v2/tenants?${query}`, { key })).status, status, query);
});

test('API-9: v1 ignores a named workspace in query, body and header, even an impossible one', async () => {
  const many = await createMany('Legacy');
  const key = await world.createKey(many);
  const headers = { 'x-tenant-id': 'unknown' };
  const list = await call('GET', '/api/v1/servers?tenant=424242', { key, headers });
  assert.equal(list.status, 200);
  assert.equal(list.headers.get('x-tenant-id'), null);
  for (const tenant of [many.second.id, 'unknown', { deep: true }, null]) {
    const created = await call('POST', '/api/v1/servers', {
      key,
      headers,
      body: { plan: 'small', image: 'debian-12', tenant },
    });
    assert.deepEqual([created.status, created.body.tenant_id], [201, many.tenant.id], JSON.stringify(tenant));
  }
  assert.ok(list.headers.get('link')!.includes(`<${world.url}/api/v2/servers>; rel="successor-version"`));
  assert.equal((await call('GET', '/api/v1/tenants', { key })).status, 404);
});
