import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemActor } from '#monitor/operators/index.ts';
import { createMonitorWorld, type MonitorWorld } from '#monitor/testing/index.ts';
import { startMonitorServer } from '#monitor/testing/server.ts';

const request = (token: string, host: string, node = host) => ({
  token,
  host_name: host,
  node,
  sensor_version: '0.1.0',
});

const node = (name: string, clusterId: number | null = 7) => ({ node: { name, clusterId } });
const tokenFor = async (world: MonitorWorld, place?: Parameters<typeof world.sensors.createToken>[2]) =>
  (await world.sensors.createToken(systemActor, world.siteId, place)).token;
const hostsOf = async (world: MonitorWorld) =>
  (await world.sensors.list(world.siteId)).map((one) => one.hostName).filter((name) => name !== 'node-1');

test('a node has one sensor: a second enrolment is refused with the host that has it, and its token stays usable', async () => {
  await using world = await createMonitorWorld();
  const [first, second] = [await tokenFor(world, node('hv-1')), await tokenFor(world, node('hv-1'))];
  await world.sensors.enrol(request(first, 'host-a'));
  const taken = { code: 'sensors.node_taken', message: /Node hv-1 of cluster 7 .* host host-a/ };
  await assert.rejects(world.sensors.enrol(request(second, 'host-b')), taken);
  await assert.rejects(tokenFor(world, node('hv-1')), taken);
  assert.deepEqual(await hostsOf(world), ['host-a']);
  const [held] = (await world.sensors.list(world.siteId)).filter((one) => one.hostName === 'host-a');
  assert.ok(await world.sensors.revoke(systemActor, world.siteId, held!.id));
  assert.ok(await world.sensors.enrol(request(second, 'host-b')));
  assert.deepEqual(await hostsOf(world), ['host-b']);
});

test('two enrolments for one node at the same moment make one sensor', async () => {
  await using world = await createMonitorWorld();
  const tokens = await Promise.all(['host-a', 'host-b', 'host-c'].map(() => tokenFor(world, node('hv-1'))));
  const answers = await Promise.allSettled(
    tokens.map((token, i) => world.sensors.enrol(request(token, `host-${i}`))),
  );
  assert.equal(answers.filter((answer) => answer.status === 'fulfilled').length, 1);
  assert.equal((await hostsOf(world)).length, 1);
});

test('a node of that name in another cluster is another node; one without a cluster is any of them', async () => {
  await using world = await createMonitorWorld();
  await world.sensors.enrol(request(await tokenFor(world, node('hv-1', 7)), 'host-a'));
  assert.ok(await world.sensors.enrol(request(await tokenFor(world, node('hv-1', 8)), 'host-b')));
  await assert.rejects(tokenFor(world, node('hv-1', null)), { code: 'sensors.node_taken' });
  const unbound = await tokenFor(world);
  await assert.rejects(world.sensors.enrol(request(unbound, 'host-c', 'hv-1')), {
    code: 'sensors.node_taken',
  });
  const own = (await world.sensors.list(world.siteId)).find((one) => one.hostName === 'host-b')!;
  const place = { siteId: world.siteId, sensorId: own.id };
  const choose = (clusterId: number) =>
    world.sensors.chooseNode(systemActor, place, { name: 'hv-1', clusterId });
  await assert.rejects(choose(7), { code: 'sensors.node_taken', message: /Remove that sensor first/ });
  assert.equal(await choose(8), true, 'its own node is free for it');
});

test('a token that replaces removes the sensor of its node, in the trail too, and no host chooses that itself', async () => {
  await using world = await createMonitorWorld();
  const old = await world.sensors.enrol(request(await tokenFor(world, node('hv-1')), 'host-a'));
  await assert.rejects(tokenFor(world, { replaces: true }), {
    code: 'sensors.invalid',
    message: /Choose the node/,
  });
  const replacing = await tokenFor(world, { ...node('hv-1'), replaces: true });
  assert.ok(await world.sensors.authenticate(old!.credential), 'until the new one enrols');
  const made = await world.sensors.enrol(request(replacing, 'host-b', 'node-1'));
  assert.equal(await world.sensors.authenticate(old!.credential), null);
  assert.ok(await world.sensors.authenticate(made!.credential));
  assert.deepEqual(await hostsOf(world), ['host-b']);
  const trail = await world.rows<{ subject_id: string }>(
    "select subject_id from audit_entries where operation = 'sensor.replace'",
  );
  assert.deepEqual(
    trail.map((row) => Number(row.subject_id)),
    [old!.sensor_id],
  );
});

test('sensors of before that share a node keep working, and their pages say so', async () => {
  await using server = await startMonitorServer();
  const { monitor, siteId, database } = server;
  await database.pool.query(
    "insert into sensors (site_id, host_name, node) select $1, h, 'hv-1' from unnest(array['host-a', 'host-b']) h",
    [siteId],
  );
  const [first] = await monitor.sensors.list(siteId);
  const viewer = await server.signIn('viewer');
  const { text } = await viewer.get(`/sites/${siteId}/sensors/${first!.id}`);
  assert.match(text, /two sensors.*host-b is on this node too/s);
});

test('the sensor API answers 409 for a node that has a sensor, and the settings page refuses it or replaces by choice', async () => {
  await using server = await startMonitorServer();
  const { monitor, siteId } = server;
  const operator = await server.signIn('operator');
  const settings = `/sites/${siteId}/settings/enrolment-tokens`;
  const tokenIn = (text: string) => /ENROLMENT_TOKEN=(\S+) /.exec(text)![1]!;
  const enrol = (token: string, host: string) =>
    fetch(`${server.url}/agent/v1/enrol`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(request(token, host)),
    });
  const [one, two] = [
    tokenIn((await operator.post(settings, { node_name: 'hv-1' })).text),
    tokenIn((await operator.post(settings, { node_name: 'hv-1' })).text),
  ];
  assert.equal((await enrol(one, 'host-a')).status, 201);
  const refused = await enrol(two, 'host-b');
  assert.equal(refused.status, 409);
  const { error } = (await refused.json()) as { error: { code: string; message: string } };
  assert.equal(error.code, 'node_taken');
  assert.match(error.message, /Node hv-1 already has the sensor of host host-a.*make a token that replaces/s);
  const shown = await operator.post(settings, { node_name: 'hv-1' });
  assert.equal(shown.status, 422);
  assert.match(shown.text, /already has the sensor of host host-a.*Let the new sensor replace it/s);
  const replacing = tokenIn((await operator.post(settings, { node_name: 'hv-1', replaces: 'on' })).text);
  assert.equal((await enrol(replacing, 'host-b')).status, 201);
  assert.deepEqual(
    (await monitor.sensors.list(siteId)).map((sensor) => sensor.hostName),
    ['host-b'],
  );
});
