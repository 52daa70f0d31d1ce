import assert from 'node:assert/strict';
import { test } from 'node:test';
import pg from 'pg';
import { thresholdDefaults } from '#contracts/sensor-api/detection.ts';
import { systemActor } from '#monitor/operators/index.ts';
import { captureMinute, createMonitorWorld, createSpool, host, testMinute } from '#monitor/testing/index.ts';
import { planSections } from '#monitor/testing/plan-sections.ts';
import { startMonitorServer } from '#monitor/testing/server.ts';
import { moveDatabaseClock } from '#service-kit/testing/index.ts';
import { createSensors } from './index.ts';

const enrolment = (token: string) => ({
  token,
  host_name: 'node-9',
  node: 'node-9',
  sensor_version: '0.1.0',
});

test('an enrolment token works once, also when it comes twice at the same moment', async () => {
  await using world = await createMonitorWorld();
  const { token } = await world.sensors.createToken(systemActor, world.siteId);
  const answers = await Promise.all([
    world.sensors.enrol(enrolment(token)),
    world.sensors.enrol(enrolment(token)),
  ]);
  const made = answers.filter((answer) => answer !== null);
  assert.equal(made.length, 1);
  assert.equal(made[0]!.site_id, world.siteId);
  assert.equal(await world.sensors.enrol(enrolment(token)), null);
  assert.equal((await world.sensors.authenticate(made[0]!.credential))?.hostName, 'node-9');
});

test('an enrolment token works for one hour', async () => {
  await using world = await createMonitorWorld();
  const early = await world.sensors.createToken(systemActor, world.siteId);
  const late = await world.sensors.createToken(systemActor, world.siteId);
  await moveDatabaseClock(world.database, '59 minutes');
  assert.ok(await world.sensors.enrol(enrolment(early.token)));
  await moveDatabaseClock(world.database, '61 minutes');
  assert.equal(await world.sensors.enrol(enrolment(late.token)), null);
});

test('neither token nor credential is stored', async () => {
  await using world = await createMonitorWorld();
  const { token } = await world.sensors.createToken(systemActor, world.siteId);
  const made = await world.sensors.enrol(enrolment(token));
  const stored = await world.rows<{ text: string }>(
    'select s::text as text from sensors s union all select t::text from enrolment_tokens t',
  );
  const secrets = [token, token.slice(7), made!.credential, made!.credential.split('_').slice(2).join('_')];
  for (const { text } of stored) for (const secret of secrets) assert.ok(!text.includes(secret));
});

test('a removed sensor, a wrong secret and an unknown id are refused alike', async () => {
  await using world = await createMonitorWorld();
  const sensor = await world.enrol('node-2');
  assert.ok(await world.sensors.authenticate(sensor.credential));
  const last = sensor.credential.at(-1) === 'A' ? 'B' : 'A';
  assert.equal(await world.sensors.authenticate(sensor.credential.slice(0, -1) + last), null);
  assert.equal(await world.sensors.authenticate(`svcsen_aaaaaaaaaaaaaaaa_${'a'.repeat(43)}`), null);
  assert.equal(await world.sensors.authenticate(sensor.credential.replace('svcsen', 'svcadm')), null);
  assert.ok(await world.sensors.revoke(systemActor, world.siteId, sensor.id));
  assert.equal(await world.sensors.authenticate(sensor.credential), null);
});

test('NET-5.3: authentication and plan only read, and wait for no lock of telemetry', async () => {
  await using world = await createMonitorWorld();
  const sensor = await world.enrol('node-2');
  const busy = new pg.Client({ connectionString: world.database.url });
  await busy.connect();
  await busy.query('begin');
  await busy.query(
    'lock table inbox_uploads, sensor_contacts, host_minutes, captures in access exclusive mode',
  );
  await busy.query('select 1 from sensors for update');
  await busy.query('select 1 from sites for update');
  try {
    await assert.rejects(world.database.reader.deleteFrom('leases').execute(), /read-only transaction/);
    // There is no writable connection here.
    const sensors = createSensors({
      db: () => assert.fail('asked the connections that write'),
      reader: () => world.database.reader,
      sections: planSections(),
    });
    const found = await sensors.authenticate(sensor.credential);
    assert.equal(found?.id, sensor.id);
    assert.deepEqual((await sensors.readPlan(found.siteId)).local_cidrs, []);
  } finally {
    await busy.query('rollback');
    await busy.end();
  }
});

test('NET-9.1, NET-9.4: the plan of the program has the versions of every section, and no other field', async () => {
  await using server = await startMonitorServer();
  const { monitor, siteId } = server;
  assert.deepEqual(await monitor.sensors.readPlan(siteId), {
    plan_version: 1,
    application_usage_version: 1,
    application_protocol_version: 1,
    live_version: 1,
    owners_version: 2,
    owners: [],
    probes_version: 1,
    probes: [],
    detection_version: 1,
    detection: {
      additional_cidrs: [],
      ...thresholdDefaults,
      groups: [],
      takes_evidence: true,
      drills: [],
    },
    filter_rules: [],
    outbound_filter_rules: [],
    filter_version: 1,
    local_cidrs: [],
    protected_targets: [],
  });
});

test('a plan has the prefixes of its site and what sections add, and is refused without a field of the contract', async () => {
  await using world = await createMonitorWorld();
  await world.sites.setLocalCidrs(systemActor, world.siteId, [
    ' 2001:DB8::/48',
    '192.0.2.0/24',
    '192.0.2.0/24',
  ]);
  assert.deepEqual(await world.sensors.readPlan(world.siteId), {
    plan_version: 1,
    application_usage_version: 1,
    application_protocol_version: 1,
    local_cidrs: ['192.0.2.0/24', '2001:db8::/48'],
    protected_targets: ['192.0.2.10'],
  });
  const { db, reader } = world.database;
  const sensors = createSensors({ db: () => db, reader: () => reader, sections: [] });
  await assert.rejects(sensors.readPlan(world.siteId), {
    code: 'sensors.no_section',
    message: /application_usage_version, application_protocol_version, protected_targets/,
  });
});

test('NET-2.2.8: at most 128 local prefixes, and no text that is none', async () => {
  await using world = await createMonitorWorld();
  const many = (count: number) => Array.from({ length: count }, (_, i) => `10.${i}.0.0/16`);
  const set = (cidrs: string[]) => world.sites.setLocalCidrs(systemActor, world.siteId, cidrs);
  assert.equal((await set(many(128)))?.localCidrs.length, 128);
  await assert.rejects(set(many(129)), { code: 'sites.invalid', message: /at most 128/ });
  await assert.rejects(set(['192.0.2.1/24', 'lan']), {
    code: 'sites.invalid',
    message: /Not a prefix: 192\.0\.2\.1\/24, lan\./,
  });
});

test('a viewer may neither enrol nor remove nor set', async () => {
  await using world = await createMonitorWorld();
  const viewer = { kind: 'person', id: 1, role: 'viewer' } as const;
  const refused = { code: 'operators.read_only' };
  await assert.rejects(world.sensors.createToken(viewer, world.siteId), refused);
  await assert.rejects(world.sensors.revoke(viewer, world.siteId, world.sensor.id), refused);
  await assert.rejects(world.sites.setLocalCidrs(viewer, world.siteId, []), refused);
  await assert.rejects(world.sites.create(viewer, 'Another'), refused);
  await assert.rejects(world.sites.mapCluster(viewer, 1, world.siteId), refused);
});

test('an enrolment token decides the node, for any name from the host', async () => {
  await using world = await createMonitorWorld();
  const node = { name: 'hv-3', clusterId: 7 };
  const { token } = await world.sensors.createToken(systemActor, world.siteId, { node });
  await world.sensors.enrol({ ...enrolment(token), node: 'another-tenants-node' });
  const made = (await world.sensors.list(world.siteId)).find((one) => one.node === 'hv-3')!;
  assert.deepEqual([made.clusterId, made.isNodeBound], [7, true]);
  const old = (await world.sensors.list(world.siteId)).find((one) => one.node === 'node-1')!;
  assert.deepEqual(
    [old.clusterId, old.isNodeBound],
    [null, false],
    'without a choice the sensor names its node',
  );
  for (const name of ['', ' ', 'right\u202eleft', 'x'.repeat(256)]) {
    const chosen = { name, clusterId: null };
    await assert.rejects(
      world.sensors.createToken(systemActor, world.siteId, { node: chosen }),
      /node's name/,
    );
    await assert.rejects(
      world.sensors.chooseNode(systemActor, { siteId: world.siteId, sensorId: old.id }, chosen),
      /node's name/,
    );
  }
  const unbound = await world.sensors.createToken(systemActor, world.siteId);
  const unkind = { ...enrolment(unbound.token), host_name: 'host\u0007name' };
  await assert.rejects(world.sensors.enrol(unkind), /host name/);
  assert.ok(await world.sensors.enrol(enrolment(unbound.token)), 'a refused enrolment spends no token');
});

test('NET-2.4.2: choosing another node for a sensor judges again what it told', async () => {
  await using world = await createMonitorWorld();
  await world.sites.mapCluster(systemActor, 7, world.siteId);
  await world.rows(
    `insert into vm_placements (cluster_id, vm_id, node, mac, segment, address, is_unique, began_at)
     values (7, 1, 'hv-1', '02:00:00:00:00:01', 'br0', '192.0.2.10', true, '-infinity')`,
  );
  await world.apply(createSpool().upload([captureMinute({ hosts: [host('192.0.2.10', 5, 6)] })]));
  const range = { siteId: world.siteId, fromMinute: testMinute, toMinute: testMinute + 60 };
  const bytes = async () => {
    await world.facts.rollUp('all');
    return (await world.facts.sumSite({ ...range, stepSeconds: 60 })).map((step) => step.rxBytes);
  };
  assert.deepEqual(await bytes(), [0], 'node-1 has no such server');
  const place = { siteId: world.siteId, sensorId: world.sensor.id };
  const choose = (name: string) => world.sensors.chooseNode(systemActor, place, { name, clusterId: null });
  assert.equal(await choose('hv-1'), true);
  assert.deepEqual(await bytes(), [5]);
  assert.equal(await choose('hv-2'), true);
  assert.deepEqual(await bytes(), [0]);
  assert.equal(
    await world.sensors.chooseNode(systemActor, { ...place, siteId: 999 }, { name: 'hv-1', clusterId: null }),
    false,
  );
});

test('NET-8: a plan is of one sensor’s node, and what finds no place in it is counted and alerted', async () => {
  await using server = await startMonitorServer();
  const { monitor, siteId, database } = server;
  await monitor.sites.mapCluster(systemActor, 7, siteId);
  const enrol = async (node: string) => {
    const { token } = await monitor.sensors.createToken(systemActor, siteId, {
      node: { name: node, clusterId: 7 },
    });
    return (await monitor.sensors.enrol({ ...enrolment(token), host_name: node }))!.sensor_id;
  };
  const [first, second, third] = [await enrol('hv-1'), await enrol('hv-2'), await enrol('hv-3')];
  // 4,100 addresses on the first node, one on the second, and one of a server with an unknown node.
  await database.pool.query(
    `with targets as (
      insert into allocation_targets (allocation_id, billing_account_id, virtual_machine_id, cluster_id, address, assigned_at, is_supported)
      select n, 1, n, 7, '203.0.0.0'::inet + n, '2026-01-01T00:00:00Z', true from generate_series(1, 4102) n returning *)
    insert into vm_placements (cluster_id, vm_id, node, mac, segment, address, is_unique, began_at)
    select 7, virtual_machine_id, case when virtual_machine_id = 4101 then 'hv-2' else 'hv-1' end, '02:00:00:00:00:01', 'br0',
      address, true, '-infinity' from targets where virtual_machine_id <= 4101`,
  );
  // As autovacuum does: without statistics the planner takes thousands of rows for one.
  await database.pool.query('analyze allocation_targets, vm_placements');
  const plan = await monitor.sensors.readPlan(siteId, first);
  assert.equal(plan.protected_targets.length, 4096);
  assert.equal(plan.protected_targets_left_out, 5);
  const other = await monitor.sensors.readPlan(siteId, second);
  assert.deepEqual(other.protected_targets, ['203.0.16.5', '203.0.16.6']);
  assert.equal(other.protected_targets_left_out, undefined);
  assert.deepEqual((await monitor.sensors.readPlan(siteId, third)).protected_targets, ['203.0.16.6']);
  await monitor.alerts.loop.runOnce();
  const open = await monitor.alerts.listOpen(siteId, 10);
  const lists = 'protected addresses, addresses guarded against spoofing';
  assert.deepEqual(
    open.map((one) => [one.kind, one.subjectName, one.details]),
    [['plan_cut', 'hv-1', { targets: 4101 + 4100, left_out: 5 + 4, lists }]],
  );
});
