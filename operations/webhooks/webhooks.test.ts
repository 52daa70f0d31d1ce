/** Real deliveries to a receiver in another process, which verifies them with an implementation of its own. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemClock } from '#common/clock/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import { type CustomerActor, type Person, systemActor, type Tenant } from '#operations/accounts/index.ts';
import { emit } from '#operations/events/index.ts';
import { createWorld, type World } from '#operations/testing/create-world.ts';
import { createWebhookSender, createWebhooks, createWebhookUpkeep } from '#operations/webhooks/index.ts';
import { countFitting } from '#service-kit/webhooks/testing/receiver.ts';
import { type Receiver, startReceiver } from '#service-kit/webhooks/testing/start-receiver.ts';

let world: World;
let receiver: Receiver;
before(async () => {
  world = await createWorld();
  receiver = await startReceiver();
});
after(async () => {
  await receiver[Symbol.asyncDispose]();
  await world[Symbol.asyncDispose]();
});

interface Party {
  owner: Person;
  tenant: Tenant;
  actor: CustomerActor;
}

async function createParty(name: string): Promise<Party> {
  const { owner, tenant } = await world.createCustomer(name);
  return { owner, tenant, actor: (await world.accounts.customerActorOf(owner.id))! };
}

async function createEndpoint(
  party: Party,
  path: string,
  eventTypes: string[],
  tenantId: number | null = null,
) {
  const made = await world.webhooks.createEndpoint(party.actor, {
    organizationId: party.tenant.organizationId,
    tenantId,
    url: `${receiver.url}${path}`,
    description: 'test',
    eventTypes,
  });
  receiver.learn(made.secret);
  return made;
}

const sender = (changes: object = {}) =>
  createWebhookSender({
    secrets: world.sealing,
    db: () => world.database.db,
    clock: systemClock,
    reporter: silentReporter,
    rules: { allowPrivate: true },
    random: () => 0.5,
    ...changes,
  });

const at = (path: string) => receiver.received.filter((one) => one.path === path);
/** Makes every pending delivery of the test's database due. */
const passTime = () =>
  world.database.pool.query("update webhook_deliveries set next_attempt_at = now() where status = 'pending'");

test('the receiver’s own verification knows the documented vector of Standard Webhooks', () => {
  const headers = {
    id: 'msg_p5jXN8AQM9LWM0D4loKWxJek',
    timestamp: '1614265330',
    signature: 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
  };
  const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
  assert.equal(countFitting([secret], headers, Buffer.from('{"test": 2432232314}')), 1);
  assert.equal(countFitting([secret], headers, Buffer.from('{"test": 2432232315}')), 0);
});

test('the life of a server arrives in order, signed, thin, and only what was chosen', async () => {
  const party = await createParty('Told');
  const { secret } = await createEndpoint(party, '/told/200', [
    'server.created',
    'server.destroyed',
    'action.finished',
  ]);
  assert.match(secret, /^whsec_[A-Za-z0-9+/]{43}=$/);
  const { serverId } = await world.deploy(party.tenant, 'told');
  await world.servers.destroyServer(systemActor, party.tenant.id, serverId);
  await world.jobs.drain();
  await sender().drain();
  const arrived = at('/told/200');
  assert.deepEqual(
    arrived.map((one) => one.body.type),
    ['server.created', 'action.finished', 'server.destroyed', 'action.finished'],
  );
  for (const one of arrived) {
    assert.deepEqual([one.fitting, one.signatures, one.contentType], [1, 1, 'application/json']);
    assert.match(one.id, /^msg_[0-9a-f]{32}$/);
    assert.ok(Math.abs(one.timestamp - Date.now() / 1000) < 60);
    assert.deepEqual(Object.keys(one.body), ['type', 'timestamp', 'data']);
    assert.equal(one.body.data.server_id, serverId);
    assert.ok(JSON.stringify(one.body).length < 300, 'a body is thin');
  }
  await sender().drain();
  assert.equal(at('/told/200').length, 4, 'what was taken is not sent again');
});

test('nobody is told of another organization, another workspace, or what happened before they asked', async () => {
  const party = await createParty('Here');
  const other = await createParty('There');
  await world.deploy(party.tenant, 'before');
  const second = await world.accounts.createTenant(systemActor, {
    organizationId: party.tenant.organizationId,
    name: 'Second',
  });
  await createEndpoint(party, '/whole/200', ['usage.threshold', 'server.created']);
  await createEndpoint(party, '/second/200', ['usage.threshold', 'server.created'], second.id);
  await createEndpoint(other, '/there/200', ['usage.threshold', 'server.created']);
  for (const tenantId of [party.tenant.id, second.id])
    await emit(world.database.db, { type: 'usage.threshold', tenantId, period: '2026-11', percent: 50 });
  await sender().drain();
  const told = (path: string) => at(path).map((one) => one.body.data.tenant_id);
  assert.deepEqual(told('/whole/200'), [party.tenant.id, second.id]);
  assert.deepEqual(told('/second/200'), [second.id]);
  assert.deepEqual(told('/there/200'), []);
});

test('a receiver that fails is tried again under the same id, later and later, then given up; a replay starts anew', async () => {
  const party = await createParty('Flaky');
  const { endpointId } = await createEndpoint(party, '/flaky/503/500/200', ['usage.threshold']);
  await emit(world.database.db, {
    type: 'usage.threshold',
    tenantId: party.tenant.id,
    period: '2026-11',
    percent: 80,
  });
  await sender().drain();
  const waiting = async () => (await world.webhooks.listDeliveries(party.actor, endpointId, 10))[0]!;
  const first = await waiting();
  assert.deepEqual([first.status, first.attempts, first.lastStatusCode], ['pending', 1, 503]);
  assert.ok(first.nextAttemptAt.getTime() > Date.now() + 3_000);
  await passTime();
  await sender().drain();
  const second = await waiting();
  assert.ok(second.nextAttemptAt.getTime() > Date.now() + 250_000, 'five minutes after the second failure');
  await passTime();
  await sender().drain();
  assert.equal((await waiting()).status, 'delivered');
  const arrived = at('/flaky/503/500/200');
  assert.equal(arrived.length, 3);
  assert.equal(new Set(arrived.map((one) => one.id)).size, 1);
  assert.ok(arrived.every((one) => one.fitting === 1));

  assert.equal(await world.webhooks.replayDelivery(party.actor, endpointId, first.id), true);
  await sender().drain();
  assert.equal(at('/flaky/503/500/200').at(-1)!.id, arrived[0]!.id);
  const found = await world.webhooks.findDelivery(party.actor, endpointId, first.id);
  assert.deepEqual(
    found!.attempts.map((one) => [one.number, one.statusCode, one.error]),
    [
      [4, 200, null],
      [3, 200, null],
      [2, 500, 'the receiver answered 500'],
      [1, 503, 'the receiver answered 503'],
    ],
  );
});

test('after ten attempts over three days a delivery has failed', async () => {
  const party = await createParty('Dead');
  const { endpointId } = await createEndpoint(party, '/dead/500', ['usage.threshold']);
  await emit(world.database.db, {
    type: 'usage.threshold',
    tenantId: party.tenant.id,
    period: '2026-11',
    percent: 80,
  });
  let waitedSeconds = 0;
  for (let attempt = 1; attempt <= 12; attempt += 1) {
    await sender().drain();
    const { rows } = await world.database.pool.query(
      `select extract(epoch from next_attempt_at - now())::float8 as pause from webhook_deliveries
       where endpoint_id = $1 and status = 'pending'`,
      [endpointId],
    );
    waitedSeconds += rows[0]?.pause ?? 0;
    await passTime();
  }
  assert.equal(at('/dead/500').length, 10);
  const days = waitedSeconds / 86_400;
  assert.ok(days > 3 && days < 3.5, `${days} days`);
  assert.equal((await world.webhooks.listDeliveries(party.actor, endpointId, 1))[0]!.status, 'failed');
});

test('410 disables the endpoint and what waits there is cancelled; enabled again, it is told of what comes', async () => {
  const party = await createParty('Gone');
  const { endpointId } = await createEndpoint(party, '/gone/410/200', ['usage.threshold']);
  const tell = (percent: 50 | 80 | 100) =>
    emit(world.database.db, {
      type: 'usage.threshold',
      tenantId: party.tenant.id,
      period: '2026-11',
      percent,
    });
  await tell(50);
  await tell(80);
  await sender().drain();
  const endpoint = await world.webhooks.findEndpoint(party.actor, endpointId);
  assert.equal(endpoint.disabledReason, 'gone');
  const statuses = async () =>
    (await world.webhooks.listDeliveries(party.actor, endpointId, 10)).map((one) => one.status);
  assert.deepEqual(await statuses(), ['cancelled', 'failed']);
  await assert.rejects(world.webhooks.sendTest(party.actor, endpointId), { code: 'webhooks.disabled' });
  await world.webhooks.setEnabled(party.actor, endpointId, true);
  await tell(100);
  await sender().drain();
  assert.deepEqual(await statuses(), ['delivered', 'cancelled', 'failed']);
});

test('while a secret is changed deliveries carry both signatures; a test goes to its endpoint alone', async () => {
  const party = await createParty('Rotate');
  const { endpointId, secret } = await createEndpoint(party, '/rotate/200', ['server.created']);
  const fresh = await world.webhooks.rotateSecret(party.actor, endpointId);
  assert.notEqual(fresh, secret);
  receiver.learn(fresh);
  await world.webhooks.sendTest(party.actor, endpointId);
  await sender().drain();
  const [test] = at('/rotate/200');
  assert.deepEqual([test!.fitting, test!.signatures, test!.body.type], [2, 2, 'webhook.test']);
  assert.deepEqual(test!.body.data, { endpoint_id: endpointId, href: null });
  const shown = JSON.stringify(await world.webhooks.findEndpoint(party.actor, endpointId));
  for (const one of [secret, fresh]) assert.ok(!shown.includes(one.slice(6, 20)));
});

test('a redirect is not followed, and what a receiver says is not kept', async () => {
  const party = await createParty('Redirect');
  const { endpointId } = await createEndpoint(party, '/moved/302', ['usage.threshold']);
  await emit(world.database.db, {
    type: 'usage.threshold',
    tenantId: party.tenant.id,
    period: '2026-11',
    percent: 80,
  });
  await sender().drain();
  assert.equal(at('/redirected/200').length, 0);
  const [delivery] = await world.webhooks.listDeliveries(party.actor, endpointId, 1);
  assert.equal(delivery!.lastError, 'the receiver answered 302, and redirects are not followed');
  const { rows } = await world.database.pool.query('select * from webhook_attempts');
  assert.ok(!JSON.stringify(rows).includes('secret-of-the-receiver'));
});

test('a receiver that does not answer keeps nobody else waiting, and many workers send nothing twice', async () => {
  const party = await createParty('Many');
  await createEndpoint(party, '/many/200', ['usage.threshold']);
  const silent = await world.webhooks.createEndpoint(party.actor, {
    organizationId: party.tenant.organizationId,
    tenantId: null,
    url: 'http://127.0.0.1:9/',
    description: '',
    eventTypes: ['usage.threshold'],
  });
  for (let i = 0; i < 60; i += 1) {
    await emit(world.database.db, {
      type: 'usage.threshold',
      tenantId: party.tenant.id,
      period: '2026-11',
      percent: 50,
    });
  }
  await Promise.all(Array.from({ length: 6 }, () => sender().drain()));
  const ids = at('/many/200').map((one) => one.id);
  assert.equal(ids.length, 60);
  assert.equal(new Set(ids).size, 60);
  const [refused] = (await world.webhooks.listDeliveries(party.actor, silent.endpointId, 100)).filter(
    (one) => one.attempts > 0,
  );
  assert.equal(refused!.lastError, 'the connection was refused');
});

test('a worker that was overtaken records nothing', async () => {
  const party = await createParty('Slow');
  const { endpointId } = await createEndpoint(party, '/slow/200', ['usage.threshold']);
  await emit(world.database.db, {
    type: 'usage.threshold',
    tenantId: party.tenant.id,
    period: '2026-11',
    percent: 50,
  });
  await sender({
    // Between its claim and its attempt another worker takes the endpoint over.
    secrets: {
      ...world.sealing,
      async open(...given: Parameters<typeof world.sealing.open>) {
        await world.database.pool.query('update webhook_endpoints set term = term + 1 where id = $1', [
          endpointId,
        ]);
        return world.sealing.open(...given);
      },
    },
  }).drain();
  assert.ok(at('/slow/200').length >= 1);
  const { rows } = await world.database.pool.query(
    'select count(*)::int as n from webhook_attempts a join webhook_deliveries d on d.id = a.delivery_id where d.endpoint_id = $1',
    [endpointId],
  );
  assert.equal(rows[0].n, 0);
  await world.database.pool.query('update webhook_endpoints set claimed_until = null');
  await sender().drain();
  assert.equal((await world.webhooks.listDeliveries(party.actor, endpointId, 1))[0]!.status, 'delivered');
});

test('only the owner sets up webhooks: members, strangers and keys see no endpoint', async () => {
  const party = await createParty('Owner');
  const stranger = await createParty('Stranger');
  const { endpointId } = await createEndpoint(party, '/owner/200', ['server.created']);
  await world.accounts.addMember(systemActor, party.tenant.organizationId, stranger.owner.id);
  const member = (await world.accounts.customerActorOf(stranger.owner.id))!;
  for (const actor of [member, { ...party.actor, keyId: 'k' }]) {
    await assert.rejects(world.webhooks.findEndpoint(actor, endpointId), { code: 'webhooks.not_found' });
    await assert.rejects(world.webhooks.deleteEndpoint(actor, endpointId), { code: 'webhooks.not_found' });
    await assert.rejects(world.webhooks.rotateSecret(actor, endpointId), { code: 'webhooks.not_found' });
    await assert.rejects(world.webhooks.listDeliveries(actor, endpointId, 1), { code: 'webhooks.not_found' });
    const input = { url: receiver.url, description: '', eventTypes: ['server.created'], tenantId: null };
    const organizationId = party.tenant.organizationId;
    await assert.rejects(world.webhooks.createEndpoint(actor, { ...input, organizationId }), {
      code: 'accounts.forbidden',
    });
  }
  const foreign = {
    organizationId: party.tenant.organizationId,
    tenantId: stranger.tenant.id,
    url: receiver.url,
    description: '',
    eventTypes: ['server.created'],
  };
  await assert.rejects(world.webhooks.createEndpoint(party.actor, foreign), { code: 'webhooks.invalid' });
});

test('an organization has at most twenty endpoints, also when many are made at once', async () => {
  const party = await createParty('Cap');
  const makes = Array.from({ length: 25 }, () => createEndpoint(party, '/cap/200', ['server.created']));
  const results = await Promise.allSettled(makes);
  assert.equal(results.filter((one) => one.status === 'fulfilled').length, 20);
});

test('staff see how much waits and for how long; upkeep forgets what is older than a month', async () => {
  const party = await createParty('Old');
  await createEndpoint(party, '/old/200', ['usage.threshold']);
  await emit(world.database.db, {
    type: 'usage.threshold',
    tenantId: party.tenant.id,
    period: '2026-09',
    percent: 50,
  });
  const staff = { kind: 'staff', personId: party.owner.id, role: 'support' } as const;
  assert.ok((await world.webhooks.readQueueHealth(staff)).pending >= 1);
  await assert.rejects(world.webhooks.readQueueHealth(party.actor), { code: 'accounts.forbidden' });
  await sender().drain();
  await world.database.pool.query("update events set occurred_at = now() - interval '31 days'");
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
    secrets: world.sealing,
    rules: { allowPrivate: false },
  });
  const party = await createParty('Strict');
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
  const party = await createParty('Exchanged');
  const broken = await createEndpoint(party, '/exchanged/200', ['server.created']);
  const whole = await createEndpoint(party, '/beside-exchanged/200', ['server.created']);
  await world.database.pool.query(
    'update webhook_endpoints set sealed_secret = (select sealed_secret from webhook_endpoints where id = $2) where id = $1',
    [broken.endpointId, whole.endpointId],
  );
  for (const { endpointId } of [broken, whole]) await world.webhooks.sendTest(party.actor, endpointId);
  await sender().drain();
  assert.equal(at('/exchanged/200').length, 0);
  assert.equal(at('/beside-exchanged/200').length, 1);
  const [delivery] = await world.webhooks.listDeliveries(party.actor, broken.endpointId, 1);
  assert.match(delivery!.lastError!, /signing secret does not open/);
  receiver.learn(await world.webhooks.rotateSecret(party.actor, broken.endpointId));
  await passTime();
  await sender().drain();
  assert.equal(at('/exchanged/200').length, 1);
});

test('a former secret is deleted when it signs no more', async () => {
  const party = await createParty('Former');
  const { endpointId } = await createEndpoint(party, '/former/200', ['server.created']);
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
