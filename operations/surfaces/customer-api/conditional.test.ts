import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { ensureImage } from '#operations/catalog/index.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { parseTags } from './conditional.ts';
import { createApiClient } from './testing/client.ts';

let world: World;
let call: ReturnType<typeof createApiClient>;
before(async () => {
  world = await createWorld();
  call = createApiClient(world.url);
});
after(() => world[Symbol.asyncDispose]());

const stale = '"stale"';

async function customerWithServer(name: string) {
  const customer = await world.createCustomer(name);
  const key = await world.createKey(customer);
  const { serverId } = await world.deploy(customer.tenant, 'web');
  const path = `/api/v2/servers/${serverId}`;
  const tag = async (of = path) => (await call('GET', of, { key })).headers.get('etag')!;
  const send = (method: string, to: string, ifMatch: string, body?: object) =>
    call(method, to, { key, headers: { 'if-match': ifMatch }, ...(body ? { body } : {}) });
  return { ...customer, key, serverId, path, tag, send };
}

test('tags are read as RFC 9110 writes them', () => {
  const strong = (opaque: string) => ({ isWeak: false, opaque });
  assert.deepEqual(parseTags(' * '), { isAny: true, tags: [] });
  assert.deepEqual(parseTags('"a"'), { isAny: false, tags: [strong('"a"')] });
  assert.deepEqual(parseTags('"a,b" , W/"c",,""')?.tags, [
    strong('"a,b"'),
    { isWeak: true, opaque: '"c"' },
    strong('""'),
  ]);
  for (const bad of ['', 'a', '"a', '"a" "b"', 'w/"a"', '*, "a"', '"a"b', ','])
    assert.equal(parseTags(bad), null, bad);
});

test('every change of a server or network is refused under a tag that is not its own, and does nothing', async () => {
  const { key, serverId, path, send } = await customerWithServer('Refused');
  const network = await call('POST', '/api/v2/networks', { key, body: { name: 'back' } });
  const other = await call('POST', '/api/v2/networks', { key, body: { name: 'front' } });
  await call('POST', `${path}/networks`, { key, body: { network_id: network.body.id } });
  await world.jobs.drain();
  const seen = async () => {
    const reads = [
      path,
      `/api/v2/networks/${network.body.id}`,
      `/api/v2/networks/${other.body.id}`,
      `${path}/actions`,
    ];
    return Promise.all(reads.map(async (read) => (await call('GET', read, { key })).text));
  };
  const before = await seen();
  const changes: [string, string, object?][] = [
    ['PATCH', path, { name: 'renamed' }],
    ['DELETE', path],
    ['POST', `${path}/actions`, { action: 'stop' }],
    ['POST', `${path}/networks`, { network_id: other.body.id }],
    ['DELETE', `${path}/networks/${network.body.id}`],
    ['PATCH', `/api/v2/networks/${network.body.id}`, { name: 'renamed' }],
    ['DELETE', `/api/v2/networks/${other.body.id}`],
    ['POST', `/api/v2/networks/${network.body.id}/sync`, {}],
  ];
  const used = async () => Number((await call('GET', path, { key })).headers.get('x-api-quota-used'));
  let count = await used();
  for (const [method, to, body] of changes) {
    const refused = await send(method, to, `${stale}, "older"`, body);
    assert.deepEqual(
      [refused.status, refused.body.error.code, refused.body.error.reason, refused.body.error.retryable],
      [412, 'precondition_failed', 'etag_mismatch', false],
      `${method} ${to}`,
    );
    count += 1;
    assert.equal(
      refused.headers.get('x-api-quota-used'),
      String(count),
      'a 412 is counted as any answer of an endpoint',
    );
    const malformed = await send(method, to, 'stale', body);
    assert.deepEqual(
      [malformed.status, malformed.body.error.reason],
      [400, 'invalid_header'],
      `${method} ${to}`,
    );
    count += 1;
  }
  assert.deepEqual(await seen(), before);
  assert.equal((await call('GET', path, { key })).body.id, serverId);
});

test('the tag of a read, a list that has it, and * let a change through; a weak tag never does', async () => {
  const { path, tag, send, key } = await customerWithServer('Allowed');
  const first = await tag();
  const weak = await send('PATCH', path, `W/${first}`, { name: 'weak' });
  assert.equal(weak.status, 412);
  const changed = await send('PATCH', path, `"x", ${first}`, { name: 'renamed' });
  assert.equal(changed.status, 200);
  assert.equal(changed.headers.get('etag'), await tag(), 'the answer carries the tag of the new state');
  assert.equal((await send('PATCH', path, first, { name: 'again' })).status, 412, 'the old tag is used up');
  assert.equal((await send('PATCH', path, '*', { name: 'any' })).status, 200);
  assert.equal((await send('POST', `${path}/actions`, await tag(), { action: 'stop' })).status, 202);
  await world.jobs.drain();
  const gone = '/api/v2/servers/999999';
  assert.equal(
    (await send('PATCH', gone, '*', { name: 'none' })).status,
    404,
    'what is not there is a 404 first',
  );
  const network = await call('POST', '/api/v2/networks', { key, body: { name: 'back' } });
  const networkPath = `/api/v2/networks/${network.body.id}`;
  assert.equal(network.headers.get('etag'), await tag(networkPath));
  await world.jobs.drain();
  assert.equal((await send('DELETE', networkPath, await tag(networkPath))).status, 204);
  assert.equal((await send('DELETE', path, await tag())).status, 202);
});

test('what the platform does meanwhile is no change: tags of a queued server and of a network that is not synced yet let changes through', async () => {
  const { key, path: other, send, tag } = await customerWithServer('Meanwhile');
  const made = await call('POST', '/api/v2/servers', { key, body: { plan: 'small', image: 'debian-12' } });
  const network = await call('POST', '/api/v2/networks', { key, body: { name: 'back' } });
  const [server, back] = [`/api/v2/servers/${made.body.id}`, `/api/v2/networks/${network.body.id}`];
  await world.jobs.drain();
  assert.equal((await call('GET', server, { key })).body.status, 'running');
  assert.equal((await call('GET', back, { key })).body.sync.state, 'synced');
  for (const [answer, path] of [
    [made, server],
    [network, back],
  ] as const) {
    const first = answer.headers.get('etag')!;
    assert.notEqual(first, await tag(path), 'a read that has the first version gets the new one');
    assert.equal((await send('PATCH', path, first, { name: 'renamed' })).status, 200, path);
    assert.equal((await send('PATCH', path, first, { name: 'again' })).status, 412, path);
  }
  const [alone, empty] = [await tag(other), await tag(back)];
  await call('POST', `${other}/networks`, { key, body: { network_id: network.body.id } });
  assert.equal((await send('DELETE', other, alone)).status, 412, 'another caller attached a network');
  assert.equal((await send('PATCH', back, empty, { name: 'third' })).status, 412);
  await world.jobs.drain();
  const both = await tag(other);
  await call('DELETE', `${other}/networks/${network.body.id}`, { key });
  assert.equal((await send('PATCH', other, both, { name: 'third' })).status, 412, 'it is being detached');
  const detaching = await tag(other);
  await world.jobs.drain();
  assert.equal((await send('PATCH', other, detaching, { name: 'third' })).status, 200, 'it is detached');
});

test('of many changes under one tag one happens', async () => {
  const { path, tag, send } = await customerWithServer('One of many');
  const current = await tag();
  const answers = await Promise.all(
    Array.from({ length: 8 }, (_, index) => send('PATCH', path, current, { name: `name-${index}` })),
  );
  assert.deepEqual(answers.map(({ status }) => status).sort(), [200, ...Array(7).fill(412)]);
});

test('a create has nothing to match: with If-Match it is refused, dry or not, and nothing is ordered', async () => {
  const { key } = await customerWithServer('Create');
  const headers = { 'if-match': '*' };
  for (const more of [{}, { dry_run: true }]) {
    const body = { plan: 'small', image: 'debian-12', ...more };
    const refused = await call('POST', '/api/v2/servers', { key, headers, body });
    assert.deepEqual([refused.status, refused.body.error.reason], [400, 'invalid_header']);
  }
  assert.equal((await call('GET', '/api/v2/servers', { key })).body.servers.length, 1);
  const made = await call('POST', '/api/v2/servers', { key, body: { plan: 'small', image: 'debian-12' } });
  const read = await call('GET', `/api/v2/servers/${made.body.id}`, { key });
  assert.equal(
    made.headers.get('etag'),
    read.headers.get('etag'),
    'its tag is that of the server without the password',
  );
});

test('a repetition under an Idempotency-Key answers as the first call did, also after later changes', async () => {
  const { key, path, tag } = await customerWithServer('Repeated');
  const headers = { 'if-match': await tag(), 'idempotency-key': 'stop-once' };
  const act = () => call('POST', `${path}/actions`, { key, headers, body: { action: 'stop' } });
  const first = await act();
  await world.jobs.drain();
  const again = await act();
  assert.deepEqual([first.status, again.status], [202, 200]);
  assert.equal(again.body.id, first.body.id);
  assert.equal(again.headers.get('idempotent-replayed'), 'true');
});

test('what counts its own calls carries no tag; every other read answers 304 to its own', async () => {
  const { key, path } = await customerWithServer('Tags');
  for (const read of ['/api/v2/key', '/api/v2/account', '/api/v2/usage']) {
    const answer = await call('GET', read, { key });
    assert.deepEqual([answer.status, answer.headers.get('etag')], [200, null], read);
  }
  for (const read of [
    '/api/v2/servers',
    path,
    `${path}/actions`,
    `${path}/networks`,
    `${path}/firewall`,
    `${path}/traffic?to=2026-11-01T00:00:00Z`,
    '/api/v2/networks',
    '/api/v2/tenants',
  ]) {
    const tag = (await call('GET', read, { key })).headers.get('etag')!;
    const again = await call('GET', read, { key, headers: { 'if-none-match': tag } });
    assert.equal(again.status, 304, read);
    assert.equal(again.headers.get('content-length'), null, 'a 304 says nothing of a length');
  }
});

test('a read under If-Match answers only while it is the version that the header names, before If-None-Match is looked at', async () => {
  const { key, path, tag } = await customerWithServer('Read');
  const read = (headers: Record<string, string>, of = path) => call('GET', of, { key, headers });
  const current = await tag();
  for (const match of [current, `"x", ${current}`, '*']) {
    const answer = await read({ 'if-match': match });
    assert.deepEqual([answer.status, answer.headers.get('etag')], [200, current], match);
  }
  for (const [match, what] of [
    [stale, 'another tag'],
    [`W/${current}`, 'a weak tag never matches'],
  ] as const) {
    const refused = await read({ 'if-match': match, 'if-none-match': current });
    const { code, reason } = refused.body.error;
    assert.deepEqual([refused.status, code, reason], [412, 'precondition_failed', 'etag_mismatch'], what);
    assert.ok(refused.headers.get('x-api-quota-used'), 'it is counted as any answer');
  }
  assert.equal((await read({ 'if-match': current, 'if-none-match': current })).status, 304);
  assert.equal((await read({ 'if-match': 'stale' })).status, 400);
  for (const list of [
    '/api/v2/servers',
    `${path}/actions`,
    '/api/v2/networks',
    '/api/v2/tenants',
    '/api/v1/servers',
  ]) {
    assert.equal((await read({ 'if-match': stale }, list)).status, 412, list);
    const listTag = (await read({}, list)).headers.get('etag')!;
    assert.equal((await read({ 'if-match': listTag }, list)).status, 200, list);
  }
  for (const untagged of ['/api/v2/key', '/api/v2/account', '/api/v2/usage']) {
    assert.equal((await read({ 'if-match': stale }, untagged)).status, 412, untagged);
    assert.equal((await read({ 'if-match': '*' }, untagged)).status, 200, untagged);
  }
  const csv = await read({ 'if-match': stale, accept: 'text/csv' }, '/api/v2/usage');
  assert.equal(csv.status, 412);
  const gone = await read({ 'if-match': stale }, '/api/v2/servers/999999');
  assert.equal(gone.status, 404, 'what would be refused anyway is refused for its own reason');
});

test('of two rebuilds, restores or new passwords under one tag the second is refused, also where it changes nothing that is shown', async () => {
  const { key, path, tag, send } = await customerWithServer('Twice');
  await ensureImage(world.database.db, { slug: 'rescue', name: 'Rescue', family: 'debian', kind: 'rescue' });
  const { id } = (await call('POST', `${path}/snapshots`, { key, body: {} })).body;
  await world.jobs.drain();
  for (const to of [
    `${path}/actions/rebuild`,
    `${path}/actions/reset-password`,
    `${path}/actions/rescue`,
    `${path}/actions/unrescue`,
    `/api/v2/snapshots/${id}/restore`,
  ]) {
    const seen = await tag();
    assert.equal((await send('POST', to, seen, {})).status, 202, to);
    await world.jobs.drain();
    const second = await send('POST', to, seen, {});
    assert.deepEqual([second.status, second.body.error?.reason], [412, 'etag_mismatch'], to);
  }
  assert.ok(!('machine_version' in (await call('GET', path, { key })).body));
});
