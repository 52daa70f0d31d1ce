import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Compile } from 'typebox/compile';
import { webhookEvents } from '#contracts/customer-api/index.ts';
import { systemActor } from '#operations/accounts/index.ts';
import { emit, takeUndispatched } from '#operations/events/index.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import type { NewEvent } from '#operations/views/event-store.ts';

let world: World;
before(async () => {
  world = await createWorld();
});
after(() => world[Symbol.asyncDispose]());

/** What has happened to an organization since it was asked last. */
async function happened(organizationId: number) {
  const events = await world.database.db.transaction().execute((tx) => takeUndispatched(tx, 1_000));
  return events.filter((event) => event.organizationId === organizationId);
}

test('the life of a server is told step by step, for its own organization alone, with where to read it', async () => {
  const { tenant } = await world.createCustomer('Told');
  await happened(tenant.organizationId);
  const { serverId } = await world.deploy(tenant, 'told');
  await world.servers.changePower(systemActor, tenant.id, serverId, { command: 'stop' });
  await world.jobs.drain();
  await world.servers.destroyServer(systemActor, tenant.id, serverId);
  await world.jobs.drain();
  const events = await happened(tenant.organizationId);
  assert.deepEqual(
    events.map((event) => event.type),
    [
      'server.created',
      'server.provisioned',
      'action.finished',
      'server.power_changed',
      'action.finished',
      'server.destroyed',
      'action.finished',
    ],
  );
  for (const event of events) {
    const { data } = webhookEvents.find((kind) => kind.type === event.type)!;
    const isAsDocumented: boolean = Compile(data).Check(event.data);
    assert.ok(isAsDocumented, JSON.stringify(event));
    assert.equal(event.data.server_id, serverId);
    assert.equal(event.tenantId, tenant.id);
    assert.match(event.publicId, /^msg_[0-9a-f]{32}$/);
  }
  assert.equal(events[0]!.data.href, `/api/v2/servers/${serverId}?tenant=${tenant.id}`);
});

test('keys and locked accounts are told too, once each', async () => {
  const customer = await world.createCustomer('Keyed');
  await happened(customer.tenant.organizationId);
  const [, keyId] = (await world.createKey(customer)).split('_');
  await world.apiKeys.revokeKey(systemActor, keyId!);
  await world.apiKeys.revokeKey(systemActor, keyId!);
  await world.accounts.setTenantStatus(systemActor, customer.tenant.id, 'SUSPENDED');
  await world.accounts.setTenantStatus(systemActor, customer.tenant.id, 'SUSPENDED');
  await world.accounts.setTenantStatus(systemActor, customer.tenant.id, 'ACTIVE');
  const events = await happened(customer.tenant.organizationId);
  assert.deepEqual(
    events.map((event) => [event.type, event.data.key_id ?? event.data.reason]),
    [
      ['key.created', keyId],
      ['key.revoked', keyId],
      ['account.locked', 'account_suspended'],
    ],
  );
});

test('a change that is undone was never told', async () => {
  const { tenant } = await world.createCustomer('Undone');
  await happened(tenant.organizationId);
  const event: NewEvent = { type: 'usage.threshold', tenantId: tenant.id, period: '2026-11', percent: 80 };
  const undone = world.database.db.transaction().execute(async (tx) => {
    await emit(tx, event);
    throw new Error('undone');
  });
  await assert.rejects(undone, /undone/);
  assert.deepEqual(await happened(tenant.organizationId), []);
  await emit(world.database.db, event);
  const [told] = await happened(tenant.organizationId);
  assert.deepEqual(told?.data, {
    tenant_id: tenant.id,
    period: '2026-11',
    percent: 80,
    href: `/api/v2/usage?period=2026-11&tenant=${tenant.id}`,
  });
});

test('an event is taken out once, also by takers at the same time', async () => {
  const { tenant } = await world.createCustomer('Shared');
  for (let i = 0; i < 40; i += 1) {
    await emit(world.database.db, { type: 'network.synced', tenantId: tenant.id, networkId: i + 1 });
  }
  const takers = Array.from({ length: 8 }, () => happened(tenant.organizationId));
  const taken = (await Promise.all(takers)).flat().map((event) => event.data.network_id);
  assert.equal(taken.length, 40);
  assert.equal(new Set(taken).size, 40);
});
