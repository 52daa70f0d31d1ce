/** Who reads a server's traffic, what is hidden with the protection views, and what a call costs. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemActor } from '#operations/accounts/index.ts';
import { switchViews } from '#operations/testing/switch-views.ts';
import {
  at,
  createTrafficApi,
  hourMs,
  iso,
  observedOf,
  type Point,
  type TrafficApi,
  wholeHour,
} from '../testing/traffic-api.ts';

let api: TrafficApi;
before(async () => {
  api = await createTrafficApi();
});
after(() => api.world[Symbol.asyncDispose]());

test('NET-1.6: while protection views are off plain traffic stays, and what they would say is null', async () => {
  const reader = await api.createReader('Views');
  const { read, first } = reader;
  const rates = { expected_bps: 10, expected_pps: 11, ddos_bps: 0, ddos_pps: 0 };
  await api.deliver(first, { 1: { in: 75, out: 75, pps: 3, coverage: 1, ...rates } });
  const minute = `from=${iso(at(1))}&to=${iso(at(2))}`;
  const [seen] = (await read(minute)).body.points;
  const { ddos_bps: attack_bps, ddos_pps: attack_pps, ...expected } = rates;
  assert.deepEqual({ ...seen, ...expected, attack_bps, attack_pps }, seen);
  await switchViews(api.world, reader, reader.serverId, false);
  const off = {
    ...{ expected_bps: null, expected_pps: null, attack_bps: null, attack_pps: null },
    ...{ dropped_inbound_bytes: null, dropped_outbound_bytes: null },
    ...{ dropped_inbound_packets: null, dropped_outbound_packets: null },
  };
  assert.deepEqual((await read(minute)).body.points, [{ ...seen, ...off }]);
  await switchViews(api.world, reader, reader.serverId, true);
  assert.deepEqual((await read(minute)).body.points, [seen]);
});

test('an unknown value has its reason; that of an attack value is hidden with the protection views', async () => {
  const reader = await api.createReader('Reasons');
  const { read, first } = reader;
  await api.deliver(first, {
    1: { reason: 'sensor_down' },
    2: { in: 75, out: 75, coverage: 1, reason: 'no_epoch' },
    3: { in: 75, out: 75, coverage: 1, ddos_bps: 0, ddos_pps: 0 },
  });
  const seen = async () =>
    ((await read(`from=${iso(hourMs)}&to=${iso(at(4))}`)).body.points as Point[]).map((point) => [
      point.reason,
      point.inbound_bps,
      point.attack_bps,
      point.observed_minutes,
    ]);
  assert.deepEqual(await seen(), [
    [null, null, null, 0],
    ['sensor_down', null, null, 0],
    ['no_epoch', 10, null, 1],
    [null, 10, 0, 1],
  ]);
  await switchViews(api.world, reader, reader.serverId, false);
  assert.deepEqual(
    (await seen()).map(([reason]) => reason),
    [null, 'sensor_down', null, null],
  );
});

test('API-4.2: another account’s, another workspace’s, a destroyed and a nonexistent server are one 404', async () => {
  const mine = await api.createReader('Traffic mine');
  const theirs = await api.createReader('Traffic theirs');
  await api.deliver(theirs.first, { 1: { in: 600, out: 600 } });
  const second = await api.world.accounts.createTenant(systemActor, {
    organizationId: mine.tenant.organizationId,
    name: 'Second',
  });
  await api.world.accounts.setBillingProfile(systemActor, second.id, {
    legalName: 'Second',
    email: mine.email,
    country: 'DE',
  });
  await api.world.setBalance(second, 1_000_000);
  const gone = await api.world.deploy(mine.tenant, 'gone');
  await api.world.servers.destroyServer(systemActor, null, gone.serverId);
  await api.world.jobs.drain();
  const texts = new Set<string>();
  for (const [id, query] of [
    [999_999, ''],
    [theirs.serverId, ''],
    [theirs.serverId, `address=${theirs.first.address}`],
    [theirs.serverId, 'nonsense=1&from=x'],
    [gone.serverId, ''],
    [mine.serverId, `tenant=${second.id}`],
    ['x', ''],
  ] as const) {
    const answer = await api.call('GET', `/api/v2/servers/${id}/traffic?${query}`, { key: mine.key });
    assert.equal(answer.status, 404, `${id} ${query}`);
    texts.add(answer.text.replaceAll(/req_[0-9A-Z]{26}/g, 'ID'));
  }
  assert.equal(texts.size, 1);
  assert.equal((await theirs.read(wholeHour)).body.points[1].inbound_bytes, 600);
});

test('the next owner of an address reads nothing of the traffic before', async () => {
  const former = await api.createReader('Former');
  await api.deliver(former.first, { 5: { in: 4_242, out: 42 } });
  await api.world.servers.destroyServer(systemActor, null, former.serverId);
  await api.world.jobs.drain();
  const next = await api.createReader('Next');
  await api.world.database.pool.query('update allocations set address = $1 where id = $2', [
    former.first.address,
    next.first.id,
  ]);
  const query = `${wholeHour}&address=${encodeURIComponent(former.first.address)}`;
  const { status, body } = await next.read(query);
  assert.equal(status, 200);
  assert.deepEqual(observedOf(body.points), []);
});

test('API-5.3, API-8.3: a read key reads it; every answer after the gate counts one, also 304, 404 and 422', async () => {
  const reader = await api.createReader('Counted');
  const key = await api.world.createKey(reader, 'read');
  await api.deliver(reader.first, { 1: { in: 1, out: 1 } });
  const path = `${reader.path}?${wholeHour}`;
  const first = await api.call('GET', path, { key });
  assert.equal(first.status, 200);
  const tag = first.headers.get('etag')!;
  const calls: [expected: number, path: string, headers?: Record<string, string>][] = [
    [200, path],
    [304, path, { 'if-none-match': tag }],
    [412, path, { 'if-match': '"stale"' }],
    [422, `${reader.path}?step=x`],
    [404, '/api/v2/servers/999999/traffic'],
  ];
  let used = Number(first.headers.get('x-api-quota-used'));
  for (const [status, of, headers = {}] of calls) {
    const answer = await api.call('GET', of, { key, headers });
    used += 1;
    assert.deepEqual([answer.status, Number(answer.headers.get('x-api-quota-used'))], [status, used], of);
  }
  assert.equal(await api.world.metering.countOfMonth(reader.tenant.id), used);
  assert.equal((await api.call('GET', path)).status, 401);
  assert.equal(await api.world.metering.countOfMonth(reader.tenant.id), used);
  await api.deliver(reader.first, { 2: { in: 1, out: 1 } });
  const changed = await api.call('GET', path, { key, headers: { 'if-none-match': tag } });
  assert.equal(changed.status, 200, 'a late minute is a new version');
});
