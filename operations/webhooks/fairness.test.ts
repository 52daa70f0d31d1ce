import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { hasCode } from '#common/errors/index.ts';
import type { CustomerActor } from '#operations/accounts/index.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { claimEndpoint } from './queue-store.ts';

let world: World;
before(async () => {
  world = await createWorld();
});
after(() => world[Symbol.asyncDispose]());

async function createEndpoints(name: string, count: number) {
  const { owner, tenant } = await world.createCustomer(name);
  const actor = (await world.accounts.customerActorOf(owner.id)) as CustomerActor;
  const ids: number[] = [];
  for (let n = 0; n < count; n += 1) {
    const { endpointId } = await world.webhooks.createEndpoint(actor, {
      organizationId: tenant.organizationId,
      tenantId: null,
      url: `http://127.0.0.1:9/${n}`,
      description: '',
      eventTypes: ['key.created'],
    });
    await world.webhooks.sendTest(actor, endpointId);
    ids.push(endpointId);
  }
  return { actor, ids };
}

test('eighteen receivers of one customer hold two workers, and the next worker serves another customer', async () => {
  const slow = await createEndpoints('Tarpit', 18);
  const other = await createEndpoints('Waiting', 1);
  const claims = await Promise.all(Array.from({ length: 4 }, () => claimEndpoint(world.database.db, 60, 2)));
  const claimed = claims.flatMap((claim) => (claim === null ? [] : [claim.id]));
  assert.equal(claimed.filter((id) => slow.ids.includes(id)).length, 2);
  assert.deepEqual(
    claimed.filter((id) => other.ids.includes(id)),
    other.ids,
  );
});

test('an endpoint is tested five times within ten minutes, however many ask at once', async () => {
  const { actor, ids } = await createEndpoints('Tester', 1);
  const asked = await Promise.allSettled(
    Array.from({ length: 12 }, () => world.webhooks.sendTest(actor, ids[0]!)),
  );
  assert.equal(asked.filter((one) => one.status === 'fulfilled').length, 4, 'one was sent before');
  for (const one of asked)
    if (one.status === 'rejected') assert.ok(hasCode(one.reason, 'webhooks.test_rate'), String(one.reason));
});
