import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { errorKinds, schemas } from '#contracts/customer-api/index.ts';
import { systemActor } from '#operations/accounts/index.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { createApiClient } from './testing/client.ts';

let world: World;
let call: ReturnType<typeof createApiClient>;
let key: string;
let path: string;
let customer: Awaited<ReturnType<World['createCustomer']>>;
before(async () => {
  world = await createWorld();
  call = createApiClient(world.url);
  customer = await world.createCustomer('Strict');
  key = await world.createKey(customer);
  path = `/api/v2/servers/${(await world.deploy(customer.tenant, 'web')).serverId}`;
});
after(() => world[Symbol.asyncDispose]());

test('a name has 64 characters, however many UTF-16 units each of them takes', async () => {
  for (const [name, status] of [
    ['🚀'.repeat(64), 200],
    ['🚀'.repeat(65), 422],
    ['x'.repeat(65), 422],
  ] as const) {
    const renamed = await call('PATCH', path, { key, body: { name } });
    assert.equal(renamed.status, status, renamed.text);
  }
  const made = await call('POST', '/api/v2/networks', {
    key,
    body: { name: '🚀'.repeat(64), description: '🚀'.repeat(255) },
  });
  assert.equal(made.status, 201, made.text);
});

test('API-4.9: however many fields of a body there should not be, each is named, and what is wrong beside them is refused', async () => {
  for (const count of [7, 8, 9, 999]) {
    const unknown = Object.fromEntries(Array.from({ length: count }, (_, i) => [`extra_${i}`, i]));
    const renamed = await call('PATCH', path, { key, body: { ...unknown, name: 'x'.repeat(65) } });
    assert.equal(renamed.status, 422, `${count}: ${renamed.text}`);
    const named = new Set(renamed.body.error.fields.map((fault: { path: string }) => fault.path));
    assert.deepEqual(named, new Set([...Object.keys(unknown), 'name']));
  }
});

test('labels, names and descriptions have no control characters and nothing that turns the direction of writing', async () => {
  for (const hidden of ['\u0007', '\u202e', '\u2066', '\u200f', '\u061c', '\n']) {
    const labelled = await call('PATCH', path, { key, body: { labels: { env: `a${hidden}b` } } });
    assert.deepEqual(
      [labelled.status, labelled.body.error?.fields?.[0].path],
      [422, 'labels.env'],
      JSON.stringify(hidden),
    );
    const named = await call('PATCH', path, { key, body: { name: `a${hidden}b` } });
    assert.equal(named.status, 422, JSON.stringify(hidden));
    for (const body of [{ labels: { env: `a${hidden}b` } }, { description: `a${hidden}b` }]) {
      const made = await call('POST', '/api/v2/networks', { key, body: { name: 'n', ...body } });
      assert.equal(made.status, 422, JSON.stringify(body));
    }
  }
  const refusal = await world.servers
    .describeServer(systemActor, null, Number(path.split('/').at(-1)), { labels: { env: 'a\u202eb' } })
    .catch((error) => error.code);
  assert.equal(refusal, 'servers.invalid', 'through the other doors, too');
});

test('a day that the calendar does not have is refused', async () => {
  for (const [day, status] of [
    ['2026-02-28', 200],
    ['2026-02-30', 422],
    ['2026-02-30T10:00:00Z', 422],
    ['2028-02-29', 200],
    ['2026-04-31', 422],
    ['2026-13-01', 422],
  ] as const) {
    const listed = await call('GET', `/api/v2/servers?created_after=${day}`, { key });
    assert.equal(listed.status, status, day);
    if (status === 422) assert.equal(listed.body.error.fields[0].path, 'created_after');
    const used = await call('GET', `${path}/bandwidth?from=${day.slice(0, 10)}&granularity=day`, { key });
    if (status === 422) assert.equal(used.status, 422, `bandwidth from ${day}`);
  }
});

test('a body of null is a body, and not an empty one', async () => {
  const calls: [string, string][] = [
    ['PATCH', path],
    ['DELETE', path],
    ['POST', `${path}/actions`],
    ['POST', '/api/v2/servers'],
    ['POST', '/api/v1/networks'],
    ['PATCH', path.replace('v2', 'v1')],
  ];
  for (const [method, to] of calls) {
    const answer = await call(method, to, {
      key,
      raw: 'null',
      headers: { 'content-type': 'application/json' },
    });
    assert.deepEqual([answer.status, answer.body.error.code], [422, 'validation_failed'], `${method} ${to}`);
  }
});

test('closed lists of words are closed in the document, and a wrong one is told which there are', async () => {
  const enumOf = (schema: unknown) => schema as { enum?: string[]; pattern?: string };
  assert.deepEqual(enumOf(schemas.CreateServerRequest.properties.billing_cycle).enum, ['hourly']);
  for (const alias of [...schemas.actionNames, ...Object.keys(schemas.actionAliases)])
    assert.ok(enumOf(schemas.ActionRequest.properties.action).enum?.includes(alias), alias);
  const status = new RegExp(enumOf(schemas.ListServersQuery.properties.status).pattern!);
  assert.ok(status.test('running,stopped') && !status.test('runing'));
  const cycle = await call('POST', '/api/v2/servers', {
    key,
    body: { plan: 'small', image: 'debian-12', billing_cycle: 'monthly' },
  });
  assert.deepEqual([cycle.status, cycle.body.error.reason], [422, 'billing_cycle_not_supported']);
  const action = await call('POST', `${path}/actions`, { key, body: { action: 'pause' } });
  assert.deepEqual([action.status, action.body.error.reason], [422, 'unsupported_action']);
  assert.deepEqual(action.body.error.fields[0].allowed, [...schemas.actionNames]);
  const listed = await call('GET', '/api/v2/servers?status=runing', { key });
  assert.deepEqual(listed.body.error.fields[0].allowed, [...schemas.serverStatuses]);
});

test('a failed server is not worth another try; one that is being made is', async () => {
  const id = Number(path.split('/').at(-1));
  const network = await call('POST', '/api/v2/networks', { key, body: { name: 'any' } });
  const ask = async () => {
    const acted = await call('POST', `${path}/actions`, { key, body: { action: 'reboot' } });
    const attached = await call('POST', `${path}/networks`, { key, body: { network_id: network.body.id } });
    return [acted, attached].map(({ status, body }) => [status, body.error.reason, body.error.retryable]);
  };
  const set = (state: string) =>
    world.database.pool.query('update servers set provisioning_state = $2 where id = $1', [id, state]);
  await set('failed');
  assert.deepEqual(await ask(), Array(2).fill([409, 'server_not_ready', false]));
  await set('provisioning');
  assert.deepEqual(await ask(), Array(2).fill([409, 'server_not_ready', true]));
  await set('ready');
});

test('every doc_url leads to an error that the reference describes', async () => {
  const page = await (await fetch(`${world.url}/docs/api/`)).text();
  const bad = await fetch(`${world.url}/api/v2/servers/%zz`, { headers: { authorization: `Bearer ${key}` } });
  const { error } = (await bad.json()) as { error: { doc_url: string } };
  assert.deepEqual([bad.status, error.doc_url], [400, '/docs/api/#error-bad_request']);
  for (const { code, reason } of errorKinds)
    assert.ok(page.includes(`id="error-${reason ?? code}"`), reason ?? code);
});

test('API-5.2: a long poll ends with 401 when its key is revoked meanwhile, and shows nothing', async () => {
  const made = await world.createCustomer('Revoked');
  const token = await world.createKey(made);
  const { serverId } = await world.deploy(made.tenant, 'web');
  const waiting = call('GET', `/api/v2/servers/${serverId}?wait_for=status:stopped`, { key: token });
  const { rows } = await world.database.pool.query(
    `update api_keys set revoked_at = svc_now() where organization_id = $1 returning key_id`,
    [made.tenant.organizationId],
  );
  assert.equal(rows.length, 1);
  // What it waits for happens, and wakes it.
  await world.servers.changePower(systemActor, null, serverId, { command: 'stop' });
  await world.jobs.drain();
  const answer = await waiting;
  assert.equal(answer.status, 401);
  assert.deepEqual(Object.keys(answer.body), ['error']);
  for (const name of ['x-api-quota-used', 'ratelimit', 'x-tenant-id', 'etag'])
    assert.equal(answer.headers.get(name), null, name);
});
