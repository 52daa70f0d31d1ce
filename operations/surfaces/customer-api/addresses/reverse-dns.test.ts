// Slow: a DNS server is away through all attempts of a job.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemActor } from '#operations/accounts/index.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { visit } from '#operations/testing/visit.ts';
import { type Call, createApiClient } from '../testing/client.ts';

let world: World;
let call: Call;
before(async () => {
  world = await createWorld();
  call = createApiClient(world.url);
});
after(() => world[Symbol.asyncDispose]());

/** Until nothing is left to do, as time would. */
async function settle(): Promise<void> {
  for (;;) {
    const { rowCount } = await world.database.pool.query(
      "update jobs set run_at = svc_now(), claimed_until = null where finished_at is null and kind <> 'destroy-notices.send'",
    );
    if (rowCount === 0) return;
    await world.jobs.drain();
  }
}

async function serverOf(name: string) {
  const customer = await world.createCustomer(name);
  const key = await world.createKey(customer);
  const send = (method: string, path: string, body?: object, headers = {}) =>
    call(method, `/api/v2${path}`, { key, headers, ...(body && { body }) });
  const { serverId, allocations } = await world.deploy(customer.tenant, 'named');
  const [four, six] = allocations.map(({ address }) => address);
  const pathOf = (address: string) => `/servers/${serverId}/addresses/${address}/reverse-dns`;
  const set = (address: string, name: string, more = {}, headers = {}) =>
    send('PUT', pathOf(address), { reverse_dns: name, ...more }, headers);
  return { ...customer, key, send, serverId, four: four!, six: six!, pathOf, set };
}

const recordOf4 = (address: string) => `${address.split('.').reverse().join('.')}.in-addr.arpa`;

test('a name that leads to the address is set, told to the DNS server, and shown with the server', async () => {
  const { four, six, send, set, pathOf, serverId } = await serverOf('Naming');
  for (const address of [four, six]) world.dns.lead('web-1.example.net', address);
  const pending = await set(four, 'Web-1.example.net.');
  assert.deepEqual(
    [pending.status, pending.body.reverse_dns, pending.body.status],
    [200, 'web-1.example.net', 'pending'],
  );
  assert.equal((await set(six, 'web-1.example.net')).status, 200);
  await settle();
  assert.equal(world.dns.records.get(recordOf4(four)), 'web-1.example.net');
  const six6 = [...world.dns.records.keys()].filter((record) => record.endsWith('.ip6.arpa'));
  assert.equal(six6.length, 1);
  assert.equal(six6[0]!.split('.').length, 34);
  assert.equal((await send('GET', pathOf(four))).body.status, 'applied');
  const { public_ips: ips } = (await send('GET', `/servers/${serverId}`)).body;
  assert.deepEqual(
    ips.map((one: { reverse_dns: string }) => one.reverse_dns),
    ['web-1.example.net', 'web-1.example.net'],
  );
  const { rows } = await world.database.pool.query(
    "select count(*)::int as count from events where type = 'server.reverse_dns_applied' and (data ->> 'server_id')::bigint = $1",
    [serverId],
  );
  assert.equal(rows[0].count, 2);
  const etag = (await send('GET', pathOf(four))).headers.get('etag')!;
  assert.equal((await send('DELETE', pathOf(four), undefined, { 'if-match': etag })).status, 204);
  assert.equal(
    (await set(four, 'web-1.example.net', {}, { 'if-match': etag })).body.error.reason,
    'etag_mismatch',
  );
  await settle();
  assert.ok(!world.dns.records.has(recordOf4(four)));
});

test('a name that does not lead to the address needs force; what is no name, or another’s address, is refused', async () => {
  const { four, set, key, tenant, owner, serverId, send } = await serverOf('Refusing');
  const stranger = await serverOf('Refusing stranger');
  const refused = await set(four, 'mail.example.org');
  assert.deepEqual([refused.status, refused.body.error.reason], [422, 'reverse_dns_not_confirmed']);
  for (const name of ['localhost', 'a b.example.org', '-x.example.org', '*.example.org']) {
    const wrong = await set(four, name, { force: true });
    assert.deepEqual([wrong.status, wrong.body.error.fields?.[0].path], [422, 'reverse_dns'], name);
  }
  const path = `/servers/${serverId}/addresses/${stranger.four}/reverse-dns`;
  for (const [method, body] of [
    ['GET'],
    ['PUT', { reverse_dns: 'x.example.org', force: true }],
    ['DELETE'],
  ] as const)
    assert.equal((await send(method, path, body)).status, 404, method);
  const reader = await world.createKey({ tenant, owner }, 'read');
  const read = await call('PUT', `/api/v2/servers/${serverId}/addresses/${four}/reverse-dns`, {
    ...{ key: reader, body: { reverse_dns: 'x.example.org', force: true } },
  });
  assert.equal(read.body.error.reason, 'read_only_key');
  assert.equal((await set(four, 'mail.example.org', { force: true })).status, 200);
  assert.ok(key);
});

test('the name goes with the generation: the next holder of the address is not called by it', async () => {
  const { four, set, send, serverId, tenant } = await serverOf('Leaving');
  const kept = (await send('POST', '/addresses', {})).body;
  await send('POST', `/addresses/${kept.id}/attach`, { server_id: serverId });
  await settle();
  for (const address of [four, kept.address]) await set(address, 'old.example.org', { force: true });
  await settle();
  assert.ok(world.dns.records.has(recordOf4(kept.address)));
  await send('POST', `/addresses/${kept.id}/detach`);
  // The DNS server is away for longer than the attempts of one job.
  world.dns.failures.push(...Array.from({ length: 9 }, () => new Error('no answer')));
  await settle();
  assert.deepEqual(world.dns.failures, []);
  assert.ok(!world.dns.records.has(recordOf4(kept.address)));
  await send('POST', `/addresses/${kept.id}/attach`, { server_id: serverId });
  await settle();
  const path = `/servers/${serverId}/addresses/${kept.address}/reverse-dns`;
  const { reverse_dns: name, status, changed_at: changedAt } = (await send('GET', path)).body;
  assert.deepEqual([name, status, changedAt], [null, 'applied', null], 'nothing of the holder before');
  await world.servers.destroyServer(systemActor, tenant.id, serverId);
  await settle();
  assert.ok(!world.dns.records.has(recordOf4(four)));
});

test('a DNS server that stays away is said so, and the same name again is another attempt', async () => {
  const { four, set, send, pathOf } = await serverOf('Away');
  world.dns.failures.push(...Array.from({ length: 8 }, () => new Error('no answer')));
  await set(four, 'away.example.org', { force: true });
  await settle();
  assert.equal((await send('GET', pathOf(four))).body.status, 'failed');
  await set(four, 'away.example.org', { force: true });
  await settle();
  assert.equal((await send('GET', pathOf(four))).body.status, 'applied');
  assert.equal(world.dns.records.get(recordOf4(four)), 'away.example.org');
});

test('in the portal a person names an address of a server and takes the name away', async () => {
  const { email, serverId, four, send, pathOf } = await serverOf('Portal');
  const page = `/client/servers/${serverId}/settings`;
  const person = await visit(world, email, page);
  const form = { address: four, name: 'shop.example.org' };
  const path = `/client/servers/${serverId}/reverse-dns`;
  const refused = await person.post(path, form);
  assert.equal(refused.status, 422);
  assert.match(await refused.text(), /has no A record with/);
  world.dns.lead('shop.example.org', four);
  await person.post(path, form);
  assert.equal((await send('GET', pathOf(four))).body.reverse_dns, 'shop.example.org');
  assert.match(await person.page(page), /value="shop\.example\.org"/);
  await person.post(path, { ...form, name: '' });
  assert.equal((await send('GET', pathOf(four))).body.reverse_dns, null);
});
