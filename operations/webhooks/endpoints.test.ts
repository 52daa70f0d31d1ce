/** Endpoints: who may set them up, where they may lie, their secrets, what ends them, and what upkeep forgets. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemClock } from '#common/clock/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import { systemActor } from '#operations/accounts/index.ts';
import { emit } from '#operations/events/index.ts';
import type { World } from '#operations/testing/create-world.ts';
import { createWebhooks } from '#operations/webhooks/index.ts';
import { createWebhookUpkeep } from '#operations/webhooks/send-deliveries.ts';
import { startWebhookWorld, type WebhookWorld } from './testing/webhook-world.ts';

let hooks: WebhookWorld;
let world: World;
before(async () => {
  hooks = await startWebhookWorld();
  world = hooks.world;
});
after(() => hooks[Symbol.asyncDispose]());

test('410 disables the endpoint and what waits there is cancelled; enabled again, it is told of what comes', async () => {
  const party = await hooks.createParty('Gone');
  const { endpointId } = await hooks.createEndpoint(party, '/gone/410/200', ['usage.threshold']);
  const tell = (percent: 50 | 80 | 100) =>
    emit(world.database.db, {
      type: 'usage.threshold',
      tenantId: party.tenant.id,
      period: '2026-11',
      percent,
    });
  await tell(50);
  await tell(80);
  await hooks.sender().drain();
  const endpoint = await world.webhooks.findEndpoint(party.actor, endpointId);
  assert.equal(endpoint.disabledReason, 'gone');
  const statuses = async () =>
    (await world.webhooks.listDeliveries(party.actor, endpointId, 10)).map((one) => one.status);
  assert.deepEqual(await statuses(), ['cancelled', 'failed']);
  await assert.rejects(world.webhooks.sendTest(party.actor, endpointId), { code: 'webhooks.disabled' });
  await world.webhooks.setEnabled(party.actor, endpointId, true);
  await tell(100);
  await hooks.sender().drain();
  assert.deepEqual(await statuses(), ['delivered', 'cancelled', 'failed']);
});

test('while a secret is changed deliveries carry both signatures; a test goes to its endpoint alone', async () => {
  const party = await hooks.createParty('Rotate');
  const { endpointId, secret } = await hooks.createEndpoint(party, '/rotate/200', ['server.created']);
  const fresh = await world.webhooks.rotateSecret(party.actor, endpointId);
  assert.notEqual(fresh, secret);
  hooks.receiver.learn(fresh);
  await world.webhooks.sendTest(party.actor, endpointId);
  await hooks.sender().drain();
  const [test] = hooks.at('/rotate/200');
  assert.deepEqual([test!.fitting, test!.signatures, test!.body.type], [2, 2, 'webhook.test']);
  assert.deepEqual(test!.body.data, { endpoint_id: endpointId, href: null });
  const shown = JSON.stringify(await world.webhooks.findEndpoint(party.actor, endpointId));
  for (const one of [secret, fresh]) assert.ok(!shown.includes(one.slice(6, 20)));
});

test('only the owner sets up webhooks: members, strangers and keys without an owner see no endpoint', async () => {
  const party = await hooks.createParty('Owner');
  const stranger = await hooks.createParty('Stranger');
  const { endpointId } = await hooks.createEndpoint(party, '/owner/200', ['server.created']);
  await world.accounts.addMember(systemActor, party.tenant.organizationId, stranger.owner.id);
  const member = (await world.accounts.customerActorOf(stranger.owner.id))!;
  for (const [actor, code] of [
    [member, 'accounts.forbidden'],
    [{ ...party.actor, keyId: 'k' }, 'webhooks.owner_only'],
  ] as const) {
    await assert.rejects(world.webhooks.findEndpoint(actor, endpointId), { code: 'webhooks.not_found' });
    await assert.rejects(world.webhooks.deleteEndpoint(actor, endpointId), { code: 'webhooks.not_found' });
    await assert.rejects(world.webhooks.rotateSecret(actor, endpointId), { code: 'webhooks.not_found' });
    await assert.rejects(world.webhooks.listDeliveries(actor, endpointId, 1), { code: 'webhooks.not_found' });
    const input = {
      url: hooks.receiver.url,
      description: '',
      eventTypes: ['server.created'],
      tenantId: null,
    };
    const organizationId = party.tenant.organizationId;
    await assert.rejects(world.webhooks.createEndpoint(actor, { ...input, organizationId }), { code });
  }
  const foreign = {
    organizationId: party.tenant.organizationId,
    tenantId: stranger.tenant.id,
    url: hooks.receiver.url,
    description: '',
    eventTypes: ['server.created'],
  };
  await assert.rejects(world.webhooks.createEndpoint(party.actor, foreign), { code: 'webhooks.invalid' });
});

test('an organization has at most twenty endpoints, also when many are made at once', async () => {
  const party = await hooks.createParty('Cap');
  const makes = Array.from({ length: 25 }, () => hooks.createEndpoint(party, '/cap/200', ['server.created']));
  const results = await Promise.allSettled(makes);
  assert.equal(results.filter((one) => one.status === 'fulfilled').length, 20);
});

test('staff see how much waits and for how long; upkeep forgets what is older than a month', async () => {
  const party = await hooks.createParty('Old');
  await hooks.createEndpoint(party, '/old/200', ['usage.threshold']);
  await emit(world.database.db, {
    type: 'usage.threshold',
    tenantId: party.tenant.id,
    period: '2026-09',
    percent: 50,
  });
  const staff = { kind: 'staff', personId: party.owner.id, role: 'support' } as const;
  assert.ok((await world.webhooks.readQueueHealth(staff)).pending >= 1);
  await assert.rejects(world.webhooks.readQueueHealth(party.actor), { code: 'accounts.forbidden' });
  await hooks.sender().drain();
  await world.database.pool.query("update events set occurred_at = svc_now() - interval '31 days'");
  const upkeep = createWebhookUpkeep({
    db: () => world.database.db,
    clock: systemClock,
    reporter: silentReporter,
  });
  await upkeep.runOnce();
  await upkeep.stop();
  const { rows } = await world.database.pool.query(
    'select (select count(*) from webhook_attempts)::int as n',
  );
  assert.equal(rows[0].n, 0);
});

test('the rules of production refuse an address that is not https or not on the internet', async () => {
  const strict = createWebhooks({
    db: () => world.database.db,
    secrets: world.secrets,
    rules: { allowPrivate: false },
    clock: world.clock,
    reporter: world.reporter,
  });
  const party = await hooks.createParty('Strict');
  const create = (url: string) =>
    strict.createEndpoint(party.actor, {
      organizationId: party.tenant.organizationId,
      tenantId: null,
      url,
      description: '',
      eventTypes: ['server.created'],
    });
  for (const url of [
    'http://example.com/',
    'https://127.0.0.1/',
    'https://[::1]/',
    'https://0x7f.1/',
    'ftp://x/',
    'x',
  ])
    await assert.rejects(create(url), { code: 'webhooks.invalid' }, url);
  assert.ok((await create('https://example.com/hook')).endpointId);
});

test('an endpoint whose stored secret was exchanged fails with a reason, and the next one is served; a rotation mends it', async () => {
  const party = await hooks.createParty('Exchanged');
  const broken = await hooks.createEndpoint(party, '/exchanged/200', ['server.created']);
  const whole = await hooks.createEndpoint(party, '/beside-exchanged/200', ['server.created']);
  await world.database.pool.query(
    'update webhook_endpoints set sealed_secret = (select sealed_secret from webhook_endpoints where id = $2) where id = $1',
    [broken.endpointId, whole.endpointId],
  );
  for (const { endpointId } of [broken, whole]) await world.webhooks.sendTest(party.actor, endpointId);
  await hooks.sender().drain();
  assert.equal(hooks.at('/exchanged/200').length, 0);
  assert.equal(hooks.at('/beside-exchanged/200').length, 1);
  const [delivery] = await world.webhooks.listDeliveries(party.actor, broken.endpointId, 1);
  assert.match(delivery!.lastError!, /signing secret can not be decrypted/);
  hooks.receiver.learn(await world.webhooks.rotateSecret(party.actor, broken.endpointId));
  await hooks.passTime();
  await hooks.sender().drain();
  assert.equal(hooks.at('/exchanged/200').length, 1);
});

test('a former secret is deleted when it signs no more', async () => {
  const party = await hooks.createParty('Former');
  const { endpointId } = await hooks.createEndpoint(party, '/former/200', ['server.created']);
  await world.webhooks.rotateSecret(party.actor, endpointId);
  const former = async () => {
    const upkeep = createWebhookUpkeep({
      db: () => world.database.db,
      clock: systemClock,
      reporter: silentReporter,
    });
    await upkeep.runOnce();
    await upkeep.stop();
    const { rows } = await world.database.pool.query(
      'select sealed_previous_secret is not null as is_there from webhook_endpoints where id = $1',
      [endpointId],
    );
    return rows[0].is_there;
  };
  assert.equal(await former(), true);
  await world.database.pool.query(
    "update webhook_endpoints set previous_secret_until = svc_now() - interval '1 second' where id = $1",
    [endpointId],
  );
  assert.equal(await former(), false);
});
