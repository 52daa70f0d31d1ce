import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemActor } from '#monitor/operators/index.ts';
import { createMonitorWorld } from '#monitor/testing/index.ts';
import { planSections } from '#monitor/testing/plan-sections.ts';
import { startMonitorServer } from '#monitor/testing/server.ts';
import { createSensors, listSection, type PlanScope } from './index.ts';

test('NET-8: a section gets the node of its sensor, and what its bound cuts is counted for every sensor', async () => {
  await using world = await createMonitorWorld();
  const other = await world.enrol('node-2');
  const asked: PlanScope[] = [];
  const section = listSection<string>({
    name: 'resolvers',
    label: 'resolvers',
    entriesMax: 2,
    advice: 'Remove resolvers.',
    versions: {},
    async list(scope) {
      asked.push(scope);
      return ['a', 'b', 'c'];
    },
    toFields: (entries, leftOut) => ({
      protected_targets: entries,
      ...(leftOut > 0 ? { protected_targets_left_out: leftOut } : {}),
    }),
    countEntries: async (subjects) =>
      new Map(subjects.map(({ sensorId, node }) => [sensorId, node.name === 'node-1' ? 3 : 2])),
  });
  const { db, reader } = world.database;
  const sensors = createSensors({
    db: () => db,
    reader: () => reader,
    sections: [...planSections(), section],
  });
  const plan = await sensors.readPlan(world.siteId, world.sensor.id);
  assert.deepEqual([plan.protected_targets, plan.protected_targets_left_out], [['a', 'b'], 1]);
  assert.deepEqual(asked, [{ siteId: world.siteId, node: { name: 'node-1', clusterId: null } }]);
  const health = await sensors.listHealth();
  const left = health.map(({ id, plan }) => [id, plan.find((one) => one.section === 'resolvers')!.entries]);
  assert.deepEqual(left.sort(), [
    [world.sensor.id, 3],
    [other.id, 2],
  ]);
});

test('a sensor’s page shows its lists, what they leave out, and when its servers were last listed', async () => {
  await using server = await startMonitorServer();
  const { monitor, siteId, database } = server;
  await monitor.sites.mapCluster(systemActor, 7, siteId);
  const { token } = await monitor.sensors.createToken(systemActor, siteId, {
    node: { name: 'hv-1', clusterId: 7 },
  });
  const made = await monitor.sensors.enrol({
    token,
    host_name: 'host-a',
    node: 'hv-1',
    sensor_version: '0.1.0',
  });
  await database.pool.query(
    `insert into inventory_vms (cluster_id, vm_id, node, name, state, updated_at, last_seen_at)
      select 7, n, case when n = 3 then 'hv-2' else 'hv-1' end, 'server-' || n, 'running', '2026-01-01', '2026-02-03T04:05:06Z'
      from generate_series(1, 3) n`,
  );
  await database.pool.query(
    `insert into inventory_interfaces (cluster_id, vm_id, interface_id, mac, addresses, last_seen_at)
     values (7, 1, 1, '02:00:00:00:00:01', array['192.0.2.10']::inet[], '2026-02-03T04:05:06Z'),
       (7, 1, 2, '02:00:00:00:00:02', '{}', '2026-02-03T03:00:00Z')`,
  );
  const visitor = await server.signIn('viewer');
  const page = `/sites/${siteId}/sensors/${made!.sensor_id}`;
  const file = async (table: string) =>
    JSON.parse((await visitor.get(`${page}?format=json&table=${table}`)).text).rows;
  assert.deepEqual(await file('plan'), [
    { list: 'protected addresses', entries: 0, max: 4096, left_out: 0 },
    { list: 'groups of thresholds', entries: 0, max: 512, left_out: 0 },
    { list: 'port scan targets', entries: 0, max: 4096, left_out: 0 },
    { list: 'addresses guarded against spoofing', entries: 0, max: 4096, left_out: 0 },
    { list: 'probes', entries: 0, max: 32, left_out: 0 },
    { list: 'rules of filters', entries: 0, max: 256, left_out: 0 },
  ]);
  assert.deepEqual(await file('servers'), [
    {
      name: 'server-1',
      state: 'running',
      addresses: '192.0.2.10',
      listed_at: '2026-02-03T04:05:06.000Z',
      interfaces_listed_at: '2026-02-03T03:00:00.000Z',
    },
    {
      name: 'server-2',
      state: 'running',
      addresses: '',
      listed_at: '2026-02-03T04:05:06.000Z',
      interfaces_listed_at: null,
    },
  ]);
  // The bound of probes is kept where they are added; a row too many stands for a newer monitor's data.
  await database.pool.query(
    `insert into probes (site_id, name, kind, target, interval_seconds, timeout_ms)
     select $1, 'probe ' || n, 'icmp', '192.0.2.1', 10, 1000 from generate_series(1, 34) n`,
    [siteId],
  );
  const plan = await monitor.sensors.readPlan(siteId, made!.sensor_id);
  assert.equal(plan.probes!.length, 32);
  const lists = await file('plan');
  assert.deepEqual(lists.at(-2), { list: 'probes', entries: 34, max: 32, left_out: 2 });
  await monitor.alerts.loop.runOnce();
  assert.deepEqual(
    (await monitor.alerts.listOpen(siteId, 10)).map((one) => [one.kind, one.details]),
    [['plan_cut', { targets: 34, left_out: 2, lists: 'probes' }]],
  );
});
