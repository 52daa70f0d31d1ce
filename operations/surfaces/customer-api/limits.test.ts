import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readOperationsSettings } from '#operations/config.ts';
import { createWorld } from '#operations/testing/dated-world.ts';
import { moveWorldClock, worldStartMs } from '#operations/testing/world-time.ts';
import { createApiClient } from './testing/client.ts';

const body = { plan: 'small', image: 'debian-12' };

test('API-8.b: the deploy limit is exact under concurrent creates, typos take no slot, and its 429 is counted', async () => {
  await using world = await createWorld({ deploysPerHour: 4 });
  const call = createApiClient(world.url);
  const customer = await world.createCustomer('Deploys');
  const key = await world.createKey(customer);
  for (let i = 0; i < 6; i += 1)
    assert.equal(
      (await call('POST', '/api/v2/servers', { key, body: { ...body, plan: 'none' } })).status,
      422,
    );
  const answers = await Promise.all(
    Array.from({ length: 12 }, () => call('POST', '/api/v2/servers', { key, body })),
  );
  const made = answers.filter((answer) => answer.status === 201);
  const refused = answers.filter((answer) => answer.status === 429);
  assert.deepEqual([made.length, refused.length], [4, 8]);
  const left = made.map((answer) => /"deploy";r=(\d+);t=\d+/.exec(answer.headers.get('ratelimit')!)![1]);
  assert.deepEqual(left.sort(), ['0', '1', '2', '3']);
  for (const answer of refused) {
    assert.equal(answer.body.error.reason, 'deploy_rate');
    assert.match(answer.headers.get('ratelimit-policy')!, /^"key";q=\d+;w=60, "deploy";q=4;w=3600$/);
    const [, t] = /"deploy";r=0;t=(\d+)$/.exec(answer.headers.get('ratelimit')!)!;
    assert.ok(Number(answer.headers.get('retry-after')) >= Number(t), 'Retry-After is never earlier than t');
    assert.ok(answer.headers.get('x-api-quota-used'), 'the endpoint itself answered');
  }
  assert.equal(await world.metering.countOfMonth(customer.tenant.id), 18);
  await moveWorldClock(world.database, '61 minutes');
  assert.equal(
    (await call('POST', '/api/v2/servers', { key, body })).status,
    201,
    'an hour later it is free',
  );
});

test('API-8.a, API-8.b: by default a key makes 120 requests a minute, and an account deploys 100 servers an hour', async () => {
  const { requestsPerMinute, deploysPerHour } = readOperationsSettings({});
  await using world = await createWorld({ requestsPerMinute, deploysPerHour, clockStartMs: worldStartMs });
  const call = createApiClient(world.url);
  const customer = await world.createCustomer('Usual');
  const busy = await world.createKey(customer);
  const ask = () => call('GET', '/api/v2/tenants', { key: busy });
  const answers = [];
  for (let i = 0; i < 121; i += 1) answers.push((await ask()).status);
  assert.deepEqual([answers.indexOf(429), answers[119]], [120, 200]);
  assert.equal((await ask()).headers.get('retry-after'), '60');
  await world.testClock.advance(59_000);
  assert.equal((await ask()).status, 429);
  await world.testClock.advance(1_000);
  assert.equal((await ask()).status, 200);

  const key = await world.createKey(customer);
  /** The limit, and what is left of it after another order. */
  const order = async () => {
    const { headers } = await call('POST', '/api/v2/servers', { key, body });
    const [, limit, seconds] = /"deploy";q=(\d+);w=(\d+)$/.exec(headers.get('ratelimit-policy')!)!;
    const [, left] = /"deploy";r=(\d+)/.exec(headers.get('ratelimit')!)!;
    return [limit, seconds, left].map(Number);
  };
  assert.deepEqual(await order(), [100, 3_600, 99]);
  await moveWorldClock(world.database, '59 minutes');
  assert.deepEqual(await order(), [100, 3_600, 98]);
  await moveWorldClock(world.database, '61 minutes');
  assert.deepEqual(await order(), [100, 3_600, 98], 'the first one left the hour');
});

test('API-8.a: Retry-After of a key’s 429 is never earlier than t, and after it the key works', async () => {
  await using world = await createWorld({ requestsPerMinute: 2, clockStartMs: worldStartMs });
  const call = createApiClient(world.url);
  const key = await world.createKey(await world.createCustomer('Patient'));
  for (let i = 0; i < 2; i += 1) await call('GET', '/api/v2/servers', { key });
  const refused = await call('GET', '/api/v2/servers', { key });
  assert.equal(refused.status, 429);
  const seconds = Number(refused.headers.get('retry-after'));
  assert.equal(refused.headers.get('ratelimit'), `"key";r=0;t=${seconds}`);
  assert.equal(refused.headers.get('ratelimit-policy'), '"key";q=2;w=60');
  const accept = 'application/problem+json';
  const problem = (await call('GET', '/api/v2/servers', { key, headers: { accept } })).body;
  assert.deepEqual(
    [problem.type, problem['violated-policies'], problem.status],
    ['https://iana.org/assignments/http-problem-types#quota-exceeded', ['key'], 429],
  );
  await world.testClock.advance(seconds * 1_000);
  assert.equal((await call('GET', '/api/v2/servers', { key })).status, 200);
});

test('a request’s own name is repeated, on refusals too, unless it is no plain word', async () => {
  await using world = await createWorld();
  const call = createApiClient(world.url);
  const key = await world.createKey(await world.createCustomer('Named'));
  const echo = async (name: string, with_: object) =>
    (
      await call('GET', '/api/v2/servers', { ...with_, headers: { 'x-client-request-id': name } })
    ).headers.get('x-client-request-id');
  assert.equal(await echo('job-42/7', { key }), 'job-42/7');
  assert.equal(await echo('job-43', {}), 'job-43');
  assert.equal(await echo('two words', { key }), null);
  assert.equal(await echo('x'.repeat(129), { key }), null);
});
