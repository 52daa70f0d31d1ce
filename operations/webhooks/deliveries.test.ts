/** Real deliveries to a receiver in another process, which verifies them with an implementation of its own. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemActor } from '#operations/accounts/index.ts';
import { emit } from '#operations/events/index.ts';
import type { World } from '#operations/testing/create-world.ts';
import { countFitting } from '#service-kit/webhooks/testing/receiver.ts';
import { startWebhookWorld, type WebhookWorld } from './testing/webhook-world.ts';

let hooks: WebhookWorld;
let world: World;
before(async () => {
  hooks = await startWebhookWorld();
  world = hooks.world;
});
after(() => hooks[Symbol.asyncDispose]());

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
  const party = await hooks.createParty('Told');
  const { secret } = await hooks.createEndpoint(party, '/told/200', [
    'server.created',
    'server.destroyed',
    'action.finished',
  ]);
  assert.match(secret, /^whsec_[A-Za-z0-9+/]{43}=$/);
  const beganSeconds = Math.floor(world.clock.nowMs() / 1000);
  const { serverId } = await world.deploy(party.tenant, 'told');
  await world.servers.destroyServer(systemActor, party.tenant.id, serverId);
  await world.jobs.drain();
  await hooks.sender().drain();
  const arrived = hooks.at('/told/200');
  assert.deepEqual(
    arrived.map((one) => one.body.type),
    ['server.created', 'action.finished', 'server.destroyed', 'action.finished'],
  );
  for (const one of arrived) {
    assert.deepEqual([one.fitting, one.signatures, one.contentType], [1, 1, 'application/json']);
    assert.match(one.id, /^msg_[0-9a-f]{32}$/);
    assert.ok(one.timestamp >= beganSeconds && one.timestamp <= world.clock.nowMs() / 1000);
    assert.deepEqual(Object.keys(one.body), ['type', 'timestamp', 'data']);
    assert.equal(one.body.data.server_id, serverId);
    assert.ok(JSON.stringify(one.body).length < 300, 'a body is thin');
  }
  await hooks.sender().drain();
  assert.equal(hooks.at('/told/200').length, 4, 'what was taken is not sent again');
});

test('an endpoint gets no events of another organization, another workspace, or from before its creation', async () => {
  const party = await hooks.createParty('Here');
  const other = await hooks.createParty('There');
  await world.deploy(party.tenant, 'before');
  const second = await world.accounts.createTenant(systemActor, {
    organizationId: party.tenant.organizationId,
    name: 'Second',
  });
  const whole = await hooks.createEndpoint(party, '/whole/200', ['usage.threshold', 'server.created']);
  const ofSecond = await hooks.createEndpoint(
    party,
    '/second/200',
    ['usage.threshold', 'server.created'],
    second.id,
  );
  await hooks.createEndpoint(other, '/there/200', ['usage.threshold', 'server.created']);
  for (const tenantId of [party.tenant.id, second.id])
    await emit(world.database.db, { type: 'usage.threshold', tenantId, period: '2026-11', percent: 50 });
  await hooks.sender().drain();
  const told = (path: string) => hooks.at(path).map((one) => one.body.data.tenant_id);
  assert.deepEqual(told('/whole/200'), [party.tenant.id, second.id]);
  assert.deepEqual(told('/second/200'), [second.id]);
  assert.deepEqual(told('/there/200'), []);
  const { rows } = await world.database.pool.query(
    'select endpoint_id as id from webhook_deliveries where endpoint_id = any($1) order by id',
    [[whole.endpointId, ofSecond.endpointId]],
  );
  const order = rows.map(({ id }) => Number(id));
  assert.deepEqual(
    order,
    [whole.endpointId, whole.endpointId, ofSecond.endpointId],
    'numbered by event, then by endpoint',
  );
});

test('a receiver that fails is tried again under the same id, later and later, then given up; a replay starts anew', async () => {
  const party = await hooks.createParty('Flaky');
  const { endpointId } = await hooks.createEndpoint(party, '/flaky/503/500/200', ['usage.threshold']);
  const beganMs = world.clock.nowMs();
  await hooks.emitUsage(party);
  await hooks.sender().drain();
  const waiting = async () => (await world.webhooks.listDeliveries(party.actor, endpointId, 10))[0]!;
  const first = await waiting();
  assert.deepEqual([first.status, first.attempts, first.lastStatusCode], ['pending', 1, 503]);
  assert.ok(first.nextAttemptAt.getTime() > beganMs + 3_000);
  await hooks.passTime();
  await hooks.sender().drain();
  const second = await waiting();
  assert.ok(second.nextAttemptAt.getTime() > beganMs + 250_000, 'five minutes after the second failure');
  await hooks.passTime();
  await hooks.sender().drain();
  assert.equal((await waiting()).status, 'delivered');
  const arrived = hooks.at('/flaky/503/500/200');
  assert.equal(arrived.length, 3);
  assert.equal(new Set(arrived.map((one) => one.id)).size, 1);
  assert.ok(arrived.every((one) => one.fitting === 1));

  assert.equal(await world.webhooks.replayDelivery(party.actor, endpointId, first.id), true);
  await hooks.sender().drain();
  assert.equal(hooks.at('/flaky/503/500/200').at(-1)!.id, arrived[0]!.id);
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
  const party = await hooks.createParty('Dead');
  const { endpointId } = await hooks.createEndpoint(party, '/dead/500', ['usage.threshold']);
  await hooks.emitUsage(party);
  let waitedSeconds = 0;
  for (let attempt = 1; attempt <= 12; attempt += 1) {
    await hooks.sender().drain();
    const { rows } = await world.database.pool.query(
      `select extract(epoch from next_attempt_at - svc_now())::float8 as pause from webhook_deliveries
       where endpoint_id = $1 and status = 'pending'`,
      [endpointId],
    );
    waitedSeconds += rows[0]?.pause ?? 0;
    await hooks.passTime();
  }
  assert.equal(hooks.at('/dead/500').length, 10);
  const days = waitedSeconds / 86_400;
  assert.ok(days > 3 && days < 3.5, `${days} days`);
  const newest = async () => (await world.webhooks.listDeliveries(party.actor, endpointId, 1))[0]!;
  const { id, status } = await newest();
  assert.equal(status, 'failed');
  assert.equal(await world.webhooks.replayDelivery(party.actor, endpointId, id), true);
  await hooks.sender().drain();
  assert.equal(hooks.at('/dead/500').length, 11);
  assert.equal((await newest()).status, 'pending', 'a replay has ten attempts of its own');
});

test('a redirect is not followed, and what a receiver says is not kept', async () => {
  const party = await hooks.createParty('Redirect');
  const { endpointId } = await hooks.createEndpoint(party, '/moved/302', ['usage.threshold']);
  await hooks.emitUsage(party);
  await hooks.sender().drain();
  assert.equal(hooks.at('/redirected/200').length, 0);
  const [delivery] = await world.webhooks.listDeliveries(party.actor, endpointId, 1);
  assert.equal(delivery!.lastError, 'the receiver answered 302, and redirects are not followed');
  const { rows } = await world.database.pool.query('select * from webhook_attempts');
  assert.ok(!JSON.stringify(rows).includes('secret-of-the-receiver'));
});

test('a receiver that does not answer delays no other endpoint, and many workers send nothing twice', async () => {
  const party = await hooks.createParty('Many');
  await hooks.createEndpoint(party, '/many/200', ['usage.threshold']);
  const silent = await world.webhooks.createEndpoint(party.actor, {
    organizationId: party.tenant.organizationId,
    tenantId: null,
    url: 'http://127.0.0.1:9/',
    description: '',
    eventTypes: ['usage.threshold'],
  });
  for (let i = 0; i < 60; i += 1) {
    await hooks.emitUsage(party, 50);
  }
  await Promise.all(Array.from({ length: 6 }, () => hooks.sender().drain()));
  const ids = hooks.at('/many/200').map((one) => one.id);
  assert.equal(ids.length, 60);
  assert.equal(new Set(ids).size, 60);
  const [refused] = (await world.webhooks.listDeliveries(party.actor, silent.endpointId, 100)).filter(
    (one) => one.attempts > 0,
  );
  assert.equal(refused!.lastError, 'the connection was refused');
});

test('a worker that was overtaken records nothing', async () => {
  const party = await hooks.createParty('Slow');
  const { endpointId } = await hooks.createEndpoint(party, '/slow/200', ['usage.threshold']);
  await hooks.emitUsage(party, 50);
  await hooks
    .sender({
      // Between its claim and its attempt another worker takes the endpoint over.
      secrets: {
        ...world.secrets,
        async open(...given: Parameters<typeof world.secrets.open>) {
          await world.database.pool.query('update webhook_endpoints set term = term + 1 where id = $1', [
            endpointId,
          ]);
          return world.secrets.open(...given);
        },
      },
    })
    .drain();
  assert.ok(hooks.at('/slow/200').length >= 1);
  const { rows } = await world.database.pool.query(
    'select count(*)::int as n from webhook_attempts a join webhook_deliveries d on d.id = a.delivery_id where d.endpoint_id = $1',
    [endpointId],
  );
  assert.equal(rows[0].n, 0);
  await world.database.pool.query('update webhook_endpoints set claimed_until = null');
  await hooks.sender().drain();
  assert.equal((await world.webhooks.listDeliveries(party.actor, endpointId, 1))[0]!.status, 'delivered');
});
