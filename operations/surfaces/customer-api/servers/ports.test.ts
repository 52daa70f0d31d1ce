import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { createScanMonitor } from '#operations/testing/deliver-scans.ts';
import { scanOf } from '#operations/testing/scan-of.ts';
import { switchViews } from '#operations/testing/switch-views.ts';
import { worldStartMs } from '#operations/testing/world-time.ts';
import { type Call, createApiClient } from '../testing/client.ts';

let world: World;
let call: Call;
let deliver: Awaited<ReturnType<typeof createScanMonitor>>['deliver'];
before(async () => {
  world = await createWorld();
  call = createApiClient(world.url);
  ({ deliver } = await createScanMonitor(world));
});
after(() => world[Symbol.asyncDispose]());

/** A customer with a server that is two hours old. */
async function createReader(name: string) {
  const customer = await world.createCustomer(name);
  const key = await world.createKey(customer);
  const { serverId } = await world.deploy(customer.tenant, 'web-1');
  await world.backdate(serverId, '2 hours');
  const allocations = await world.addresses.listAllocationsOfServers([serverId]);
  const path = `/api/v2/servers/${serverId}`;
  const read = () => call('GET', `${path}/ports`, { key });
  const scan = (more: object = {}) => call('POST', `${path}/port-scans`, { key, ...more });
  return { ...customer, key, serverId, path, read, scan, allocations, first: allocations[0]! };
}

test('NET-2.7.1: a scan is requested once with a full key; a repeated call answers with the pending scans', async () => {
  const { scan, allocations, read } = await createReader('Requests');
  const first = await scan();
  assert.equal(first.status, 202);
  assert.deepEqual(
    first.body.scans.map((each: { address: string; state: string }) => [each.address, each.state]).sort(),
    allocations.map(({ address }) => [address, 'queued']).sort(),
  );
  const again = await scan({ body: {} });
  assert.deepEqual([again.status, again.body], [200, first.body]);
  assert.deepEqual((await read()).body.scans, first.body.scans);
});

test('NET-8.1: after the scans have ended, another one within 10 minutes is a 429 with the time to wait', async () => {
  const { scan, allocations } = await createReader('Cools');
  for (const { id, address } of (await scan()).body.scans)
    await deliver(scanOf(allocations.find((each) => each.address === address)!, { request_id: id }));
  const refused = await scan();
  assert.deepEqual([refused.status, refused.body.error.reason], [429, 'scan_cooldown']);
  const wait = Number(refused.headers.get('retry-after'));
  assert.ok(wait > 500 && wait <= 600, String(wait));
});

test('API-8.3, API-8.4: both calls are counted, also their 404; a read key’s refused request is not', async () => {
  const reader = await createReader('Counted');
  const other = await createReader('Stranger');
  const key = await world.createKey(reader, 'read');
  const counts = (answer: { headers: Headers }, of: typeof reader) =>
    world.metering
      .countOfMonth(of.tenant.id)
      .then((count) => [count, answer.headers.get('x-api-quota-used')]);
  assert.deepEqual(await counts(await reader.read(), reader), [1, '1']);
  assert.deepEqual(await counts(await reader.scan(), reader), [2, '2']);
  assert.deepEqual(await counts(await reader.scan({ key }), reader), [2, null]);
  assert.deepEqual(await counts(await reader.scan({ key: other.key }), other), [1, '1']);
  assert.deepEqual(await counts(await call('GET', `${reader.path}/ports`, { key: other.key }), other), [
    2,
    '2',
  ]);
  assert.equal(await world.metering.countOfMonth(reader.tenant.id), 2);
});

test('API-8.a: both calls share the budget of their key', async () => {
  await using narrow = await createWorld({ requestsPerMinute: 2, clockStartMs: worldStartMs });
  const send = createApiClient(narrow.url);
  const customer = await narrow.createCustomer('Budget');
  const key = await narrow.createKey(customer);
  const { serverId } = await narrow.deploy(customer.tenant, 'web-1');
  const path = `/api/v2/servers/${serverId}`;
  const statuses: number[] = [];
  for (const [method, name] of [
    ['GET', 'ports'],
    ['POST', 'port-scans'],
    ['GET', 'ports'],
    ['POST', 'port-scans'],
  ] as const)
    statuses.push((await send(method, `${path}/${name}`, { key })).status);
  assert.deepEqual(statuses, [200, 202, 429, 429]);
});

test('NET-2.7.1: a read key may list ports and not request a scan; the server of another customer is a 404', async () => {
  const reader = await createReader('Reads');
  const other = await createReader('Others');
  const key = await world.createKey(reader, 'read');
  assert.equal((await reader.scan({ key })).status, 403);
  assert.equal((await call('GET', `${reader.path}/ports`, { key })).status, 200);
  for (const [method, path] of [
    ['GET', 'ports'],
    ['POST', 'port-scans'],
  ] as const)
    assert.equal((await call(method, `${reader.path}/${path}`, { key: other.key })).status, 404);
  assert.deepEqual((await reader.read()).body.scans, []);
});

test('NET-1.6: while the protection views are off, both calls are a 404 with their own reason', async () => {
  const reader = await createReader('Off');
  await switchViews(world, reader, reader.serverId, false);
  for (const answer of [await reader.read(), await reader.scan()])
    assert.deepEqual([answer.status, answer.body.error.reason], [404, 'protect_disabled']);
});

test('NET-3.1: a stopped server is a 409, and a field that the body does not have is a 422', async () => {
  const reader = await createReader('Stops');
  assert.equal((await reader.scan({ body: { ports: [22] } })).status, 422);
  await call('POST', `${reader.path}/actions`, { key: reader.key, body: { action: 'stop' } });
  await world.jobs.drain();
  const refused = await reader.scan();
  assert.deepEqual([refused.status, refused.body.error.reason], [409, 'server_not_ready']);
});

test('NET-2.7.5: a port reads with what answered and how sure that is, and unknown stays null', async () => {
  const reader = await createReader('Exact');
  await deliver(
    scanOf(reader.first, { endedSecondsAgo: 3000, ports: [22, 31_337] }),
    scanOf(reader.first, { endedSecondsAgo: 2000, ports: [22, 25], profile: 'common' }),
    scanOf(reader.first, { endedSecondsAgo: 30, ports: [22], profile: 'common' }),
  );
  const { body } = await reader.read();
  const { first_observed_at, observed_at, identified_at, ...ssh } = body.ports[0];
  assert.equal(identified_at, observed_at);
  assert.deepEqual(ssh, {
    ...{ address: reader.first.address, transport: 'tcp', port: 22, state: 'open', closed_at: null },
    ...{ service: 'ssh', product: 'OpenSSH', version: '9.6p1', method: 'probed', confidence: 10 },
    ...{ profile: 'common', freshness: 'fresh' },
  });
  assert.ok(first_observed_at < observed_at);
  const { port, product, method } = body.ports[1];
  assert.deepEqual([port, product, method], [31_337, null, 'table']);
  assert.deepEqual(
    body.closed.map((each: { port: number; state: string }) => [each.port, each.state]),
    [[25, 'closed']],
  );
});

test('NET-2.7.10: last_full_scan_at is that of the address whose full scan is older, and null while one has none', async () => {
  const { read, allocations } = await createReader('Two addresses');
  const [first, second] = allocations;
  const full = [scanOf(first!, { endedSecondsAgo: 30 }), scanOf(second!, { endedSecondsAgo: 900 })] as const;
  await deliver(full[0], scanOf(second!, { endedSecondsAgo: 20, profile: 'common' }));
  assert.equal((await read()).body.last_full_scan_at, null);
  await deliver(full[1]);
  assert.equal(
    Date.parse((await read()).body.last_full_scan_at as string),
    Date.parse(full[1].finished_at as string),
  );
});
