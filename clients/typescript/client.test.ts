/** The client against the API itself; every answer is one that the contract names. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createAnswerChecker } from '#contracts/customer-api/testing/check-answer.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { deliverMinutes } from '#operations/testing/deliver-minutes.ts';
import { incidentOf, secondsAgo } from '#operations/testing/incident-of.ts';
import { switchViews } from '#operations/testing/switch-views.ts';
import { worldNowMs } from '#operations/testing/world-time.ts';
import {
  ApiError,
  answerOf,
  type Client,
  createClient,
  ForbiddenError,
  NotFoundError,
  PreconditionFailedError,
  UnauthorizedError,
  ValidationError,
} from './index.ts';

let world: World;
let api: Client;
let token: string;
const checker = createAnswerChecker();
const checked: typeof fetch = async (input, init) => {
  const answer = await fetch(input, init);
  checker.check({
    method: init!.method!,
    path: String(input).slice(world.url.length),
    status: answer.status,
    headers: Object.fromEntries(answer.headers),
    text: await answer.clone().text(),
  });
  return answer;
};
before(async () => {
  world = await createWorld();
  token = await world.createKey(await world.createCustomer('Client'));
  api = createClient({ url: world.url, key: token, fetch: checked });
});
after(() => world[Symbol.asyncDispose]());

test('it deploys, waits, lists, switches and destroys', async () => {
  const created = await api.createServer({ plan: 'small', image: 'debian-12', name: 'one' });
  assert.ok(created.root_password);
  await world.jobs.drain();
  assert.equal((await api.waitForServer(created.id, 'running')).name, 'one');
  const action = await api.actOnServer(created.id, { action: 'stop' });
  await world.jobs.drain();
  assert.equal((await api.waitForAction(action)).status, 'success');
  const { tenants } = await api.listTenants();
  const page = await api.listServers({ tenant: tenants[0]!.slug });
  assert.deepEqual(
    page.servers.map((server) => server.status),
    ['stopped'],
  );
  await api.destroyServer(created.id);
  await world.jobs.drain();
  await assert.rejects(api.readServer(created.id), NotFoundError);
});

test('a change under the tag of an older read is refused, and one under the newest goes through', async () => {
  const created = await api.createServer({ plan: 'small', image: 'debian-12', name: 'tagged' });
  const ifMatch = answerOf(created).etag!;
  const renamed = await api.updateServer(created.id, { name: 'renamed' }, { ifMatch });
  await assert.rejects(api.updateServer(created.id, { name: 'again' }, { ifMatch }), PreconditionFailedError);
  const newest = answerOf(renamed).etag!;
  assert.equal((await api.updateServer(created.id, { name: 'newest' }, { ifMatch: newest })).name, 'newest');
  assert.ok((answerOf(renamed).quota?.used ?? 0) > 0);
  await world.jobs.drain();
  await api.destroyServer(created.id);
  await world.jobs.drain();
});

test('a list is walked through page by page, every item once', async () => {
  for (const name of ['a', 'b', 'c', 'd', 'e'])
    await api.createServer({ plan: 'small', image: 'debian-12', name });
  const names: string[] = [];
  for await (const server of api.listServers({ sort: 'created_at', limit: 2 })) names.push(server.name);
  assert.deepEqual(names, ['a', 'b', 'c', 'd', 'e']);
  const sizes: number[] = [];
  for await (const page of api.listServers({ limit: 2 }).pages()) sizes.push(page.servers.length);
  assert.deepEqual(sizes, [2, 2, 1]);
});

test('traffic is read by range, step and address; what was not observed is null', async () => {
  const customer = await world.createCustomer('Traffic');
  const reader = createClient({
    url: world.url,
    key: await world.createKey(customer, 'read'),
    fetch: checked,
  });
  const { serverId } = await world.deploy(customer.tenant, 'busy');
  await world.backdate(serverId, '3 hours');
  const [first, second] = await world.addresses.listAllocationsOfServers([serverId]);
  const fromMs = (Math.floor(worldNowMs() / 3_600_000) - 1) * 3_600_000;
  const monitor = await world.createToken(['protect_telemetry_ingest']);
  await deliverMinutes(world, monitor, first!, [[fromMs + 60_000, { in: 750, out: 75 }]]);
  await deliverMinutes(world, monitor, second!, [[fromMs + 60_000, { in: 75, out: 75 }]]);
  const range = { from: new Date(fromMs).toISOString(), to: new Date(fromMs + 180_000).toISOString() };
  const all = await reader.readServerTraffic(serverId, range);
  assert.deepEqual(
    all.points.map((point) => point.inbound_bps),
    [null, 110, null],
  );
  const one = await reader.readServerTraffic(serverId, {
    ...range,
    step: 'hour',
    address: second!.address,
  });
  assert.deepEqual([one.points.length, one.points[0]?.outbound_bytes], [1, 75]);
  await assert.rejects(
    reader.readServerTraffic(serverId, { from: '2026-11-22' }),
    (thrown) => thrown instanceof ValidationError && thrown.fields[0]?.path === 'from',
  );
  await assert.rejects(api.readServerTraffic(serverId), NotFoundError);
});

test('attacks of a server are walked through page by page, and hidden ones say why', async () => {
  const customer = await world.createCustomer('Attacked');
  const reader = createClient({
    url: world.url,
    key: await world.createKey(customer, 'read'),
    fetch: checked,
  });
  const { serverId } = await world.deploy(customer.tenant, 'attacked');
  await world.backdate(serverId, '3 hours');
  const [first] = await world.addresses.listAllocationsOfServers([serverId]);
  const attacks = [5, 4, 3].map((minutes) =>
    incidentOf(first!.address, { started_at: secondsAgo(minutes * 60) }),
  );
  const monitor = await world.createToken(['ddos_incident_ingest']);
  const delivered = await fetch(`${world.url}/api/admin/v1/protect/incidents/`, {
    method: 'POST',
    headers: { authorization: `Bearer ${monitor}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      contract_version: 1,
      source_site_id: 1,
      cluster_ids: [world.clusterId],
      incidents: attacks,
    }),
  });
  assert.equal(delivered.status, 200);
  const found: string[] = [];
  for await (const attack of reader.listServerIncidents(serverId, { state: 'active', limit: 2 })) {
    assert.deepEqual([attack.class, attack.vectors[0]?.ports], ['syn_flood', [443]]);
    found.push(attack.id);
  }
  assert.deepEqual(found, attacks.map(({ id }) => id).toReversed());
  await switchViews(world, customer, serverId, false);
  await assert.rejects(
    async () => await reader.listServerIncidents(serverId),
    (thrown) => thrown instanceof NotFoundError && thrown.reason === 'protect_disabled',
  );
});

test('refusals are typed, and say what was wrong', async () => {
  await assert.rejects(api.createServer({ plan: 'huge', image: 'debian-12' }), (thrown) => {
    assert.ok(thrown instanceof ValidationError);
    assert.equal(thrown.fields[0]?.path, 'plan');
    assert.match(thrown.requestId, /^req_/);
    return true;
  });
  const wrong = createClient({ url: world.url, key: `${token.slice(0, -1)}~`, fetch: checked });
  await assert.rejects(
    wrong.listServers().catch((error: unknown) => Promise.reject(error)),
    UnauthorizedError,
  );
  const customer = await world.createCustomer('Reads');
  const reader = createClient({
    url: world.url,
    key: await world.createKey(customer, 'read'),
    fetch: checked,
  });
  await assert.rejects(reader.createServer({ plan: 'small', image: 'debian-12' }), (thrown) => {
    assert.ok(thrown instanceof ForbiddenError && thrown instanceof ApiError);
    assert.equal(thrown.reason, 'read_only_key');
    return true;
  });
});
