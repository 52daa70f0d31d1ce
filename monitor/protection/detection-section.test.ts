import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { SensorPlan } from '#contracts/sensor-api/http.ts';
import { systemActor } from '#monitor/operators/index.ts';
import { type MonitorServer, startMonitorServer } from '#monitor/testing/server.ts';

/** Cluster 7 with two nodes: addresses 1 to `onFirst` on hv-1, the others on hv-2, 600 in all. */
async function seed(server: MonitorServer, onFirst: number): Promise<{ id: number; credential: string }> {
  const { monitor, siteId, database } = server;
  await monitor.sites.mapCluster(systemActor, 7, siteId);
  await database.pool.query(
    `insert into allocation_targets (allocation_id, billing_account_id, virtual_machine_id, cluster_id, address, assigned_at, is_supported)
     select n, 1, n, 7, '203.0.112.0'::inet + n, '2026-01-01T00:00:00Z', true from generate_series(1, 600) n`,
  );
  await database.pool.query(
    `insert into vm_placements (cluster_id, vm_id, node, mac, segment, address, is_unique, began_at)
     select 7, n, case when n <= $1 then 'hv-1' else 'hv-2' end, '02:00:00:00:00:01', 'br0', '203.0.112.0'::inet + n, true, '-infinity'
     from generate_series(1, 600) n`,
    [onFirst],
  );
  const { token } = await monitor.sensors.createToken(systemActor, siteId, {
    node: { name: 'hv-1', clusterId: 7 },
  });
  const made = await monitor.sensors.enrol({
    token,
    host_name: 'host-a',
    node: 'hv-1',
    sensor_version: '0.1.0',
  });
  return { id: made!.sensor_id, credential: made!.credential };
}

/** Thresholds of their own for servers 1 to 600, all different. */
async function setAll({ database, siteId }: MonitorServer): Promise<void> {
  await database.pool.query(
    `insert into protection_servers (site_id, cluster_id, vm_id, thresholds, changed_by)
     select $1, 7, n, jsonb_build_object('inbound', jsonb_build_object('pps', 1000 + n)), 'test' from generate_series(1, 600) n`,
    [siteId],
  );
}

test('NET-1.4: a change of thresholds reaches a sensor with its next plan, and without a change the plan keeps its ETag', async () => {
  await using server = await startMonitorServer();
  const { monitor, siteId } = server;
  const { credential } = await seed(server, 300);
  const ask = async (etag?: string) => {
    const headers = { authorization: `Bearer ${credential}`, ...(etag ? { 'if-none-match': etag } : {}) };
    const answer = await fetch(`${server.url}/agent/v1/plan`, { headers });
    const plan = answer.status === 200 ? ((await answer.json()) as SensorPlan) : null;
    return { status: answer.status, etag: answer.headers.get('etag')!, plan };
  };
  const first = await ask();
  assert.deepEqual([first.plan!.detection_version, first.plan!.detection!.inbound.pps], [1, 50_000]);
  assert.equal((await ask(first.etag)).status, 304);
  const texts = { inbound: { pps: '20k' }, outbound: {} };
  await monitor.protection.setSiteThresholds(systemActor, siteId, texts, 0);
  const second = await ask(first.etag);
  assert.deepEqual([second.status, second.plan!.detection!.inbound.pps], [200, 20_000]);
  await monitor.protection.setServerThresholds(
    systemActor,
    siteId,
    { clusterId: 7, serverId: 5 },
    { inbound: { pps: '9k' }, outbound: {} },
    0,
  );
  const third = await ask(second.etag);
  assert.deepEqual(
    third.plan!.detection!.groups.map((one) => [one.prefixes, one.inbound.pps]),
    [[['203.0.112.5/32'], 9000]],
  );
  // The server gets another address: its thresholds follow it.
  await server.database.pool.query(
    "update allocation_targets set address = '203.0.115.1' where allocation_id = 5",
  );
  await server.database.pool.query('update vm_placements set ended_at = svc_now() where vm_id = 5');
  const fourth = await ask(third.etag);
  assert.deepEqual(fourth.plan!.detection!.groups[0]!.prefixes, ['203.0.115.1/32']);
  assert.equal((await ask(fourth.etag)).status, 304);
});

test('NET-1.4: above the bound of groups a sensor gets those of its own node; what is still left out is counted, shown and alerted', async () => {
  await using server = await startMonitorServer();
  const { monitor, siteId, database } = server;
  const { id } = await seed(server, 300);
  await setAll(server);
  const plan = await monitor.sensors.readPlan(siteId, id);
  assert.equal(plan.detection!.groups.length, 300, 'its own servers');
  const visitor = await server.signIn('viewer');
  const row = async () => {
    const page = await visitor.get(`/sites/${siteId}/sensors/${id}?format=json&table=plan`);
    return JSON.parse(page.text).rows.find((one: { list: string }) => one.list === 'groups of thresholds');
  };
  assert.deepEqual(await row(), { list: 'groups of thresholds', entries: 300, max: 512, left_out: 0 });
  await database.pool.query("update vm_placements set node = 'hv-1'");
  assert.equal((await monitor.sensors.readPlan(siteId, id)).detection!.groups.length, 512);
  assert.deepEqual(await row(), { list: 'groups of thresholds', entries: 600, max: 512, left_out: 88 });
  await monitor.alerts.loop.runOnce();
  const alerts = await monitor.alerts.listOpen(siteId, 10);
  assert.deepEqual(
    alerts.filter((one) => one.kind === 'plan_cut').map((one) => one.details),
    [{ targets: 600, left_out: 88, lists: 'groups of thresholds' }],
  );
});
