import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { encodeLive } from '#contracts/sensor-api/live-codec.ts';
import { compressUpload, encodeUpload } from '#contracts/sensor-api/telemetry-codec.ts';
import { systemActor } from '#monitor/operators/index.ts';
import { captureMinute, createSpool, host, testMinute } from '#monitor/testing/index.ts';
import { startMonitorServer } from '#monitor/testing/server.ts';

test('the sensors page shows the live rates of each capture and the network of its host', async () => {
  await using server = await startMonitorServer();
  const { monitor, siteId } = server;
  const { token } = await monitor.sensors.createToken(systemActor, siteId);
  const names = { host_name: 'node-1', node: 'node-1', sensor_version: '0.1.0' };
  const sensor = (await monitor.sensors.authenticate(
    (await monitor.sensors.enrol({ token, ...names }))!.credential,
  ))!;
  const unkind = '<script>alert(1)</script>';
  const plain = { mac: '', kind: '', isUp: true, mtu: 1500, master: '', parent: '', vlan: 0, addresses: [] };
  const inventory = {
    observedAtMs: testMinute * 1000,
    interfaces: [
      {
        ...plain,
        name: 'br0',
        index: 3,
        kind: 'bridge',
        mac: '02:00:00:00:00:03',
        addresses: ['192.0.2.1/24'],
      },
      { ...plain, name: 'tap1', index: 4, master: 'br0', isUp: false },
      { ...plain, name: unkind, index: 5, parent: 'br0', vlan: 77 },
    ],
    neighbours: [],
    interfacesLeftOut: 0,
    neighboursLeftOut: 0,
  };
  const upload = { ...createSpool().upload([captureMinute()]), inventory };
  await monitor.inbox.receive(sensor, compressUpload(encodeUpload(upload)), 'zstd');
  await monitor.inbox.drain();
  const { totals } = captureMinute({ totals: { ipBytes: 12_500_000, ipPackets: 10_000 } });
  const startedAtMs = Math.floor(Date.now() / 10_000) * 10_000 - 10_000;
  const seen = { capture: 'eth0', role: 'uplink', startedAtMs, observedMs: 10_000, hostsLeftOut: 0 } as const;
  const windows = [{ ...seen, totals, hosts: [] }];
  const body = encodeLive({ runId: randomUUID(), sensorVersion: '0.1.0', windows });
  await monitor.live.receive(sensor, compressUpload(body), 'zstd');
  const condition = {
    observedAtMs: Date.now(),
    spoolPendingBytes: 75,
    spoolBytesMax: 100,
    spoolPendingUploads: 9,
    diskFreeBytes: 50,
    diskBytes: 100,
    isPaused: true,
    captures: [{ name: 'eth0', role: 'uplink' as const, isListening: true, isCountedInKernel: true }],
  };
  const visitor = await server.signIn('viewer');
  const list = await visitor.get(`/sites/${siteId}/sensors`);
  for (const part of ['Right now', '10.0 Mbit/s', 'unknown', `/sites/${siteId}/sensors/${sensor.id}`])
    assert.ok(list.text.includes(part), `${part} is not on the list`);
  await monitor.sensors.noteCondition(sensor.id, condition);
  assert.match((await visitor.get(`/sites/${siteId}/sensors`)).text, /75\.0 %/);
  const { text, status } = await visitor.get(`/sites/${siteId}/sensors/${sensor.id}`);
  assert.equal(status, 200);
  for (const part of [
    'in the kernel',
    'Reporting',
    '75.0 %',
    'Collection is paused',
    '192.0.2.1/24',
    'br0, VLAN 77',
    '10.0 Mbit/s',
  ])
    assert.ok(text.includes(part), `${part} is not on the sensor’s page`);
  assert.ok(!text.includes(unkind));
  assert.ok(!text.includes('Remove sensor'), 'viewers see no forms');
  assert.equal((await visitor.get(`/sites/${siteId}/sensors/999`)).status, 404);
  const csv = await visitor.get(`/sites/${siteId}/sensors?format=csv&table=sensors`);
  assert.match(csv.text, /node-1,node-1,reporting,/);

  // A large fleet is divided into pages, silent sensors first; files have all rows.
  await server.database.pool.query(
    `insert into sensors (site_id, host_name, node) select $1, 'z-' || n, 'z' from generate_series(1, 60) n`,
    [siteId],
  );
  const first = (await visitor.get(`/sites/${siteId}/sensors`)).text;
  assert.match(first, /1–50 of 61/);
  assert.doesNotMatch(first, /sensors\/1"/);
  const next = /href="([^"]*sensors_page=2)"/.exec(first)![1]!;
  assert.match((await visitor.get(next)).text, /51–61 of 61/);
  assert.match((await visitor.get(next)).text, /sensors\/1"/);
  const all = JSON.parse((await visitor.get(`${next}&format=json&table=sensors`)).text);
  assert.deepEqual([all.rows.length, all.is_complete], [61, true]);
});

test('a token is created for a node of the inventory, and a sensor on an unknown node is marked', async () => {
  await using server = await startMonitorServer();
  const { monitor, siteId } = server;
  await monitor.sites.mapCluster(systemActor, 7, siteId);
  const { token } = await monitor.sensors.createToken(systemActor, siteId);
  const names = { host_name: 'old-host', node: 'typo-1', sensor_version: '0.1.0' };
  const enrolled = (await monitor.sensors.enrol({ token, ...names }))!;
  const sensorId = enrolled.sensor_id;
  await server.database.pool.query(
    `insert into vm_placements (cluster_id, vm_id, node, mac, segment, address, is_unique, began_at)
     select 7, 1, 'hv-1', '02:00:00:00:00:01', 'br0', a, true, '-infinity' from unnest(array[null, '192.0.2.10']::inet[]) a`,
  );
  const upload = createSpool().upload([captureMinute({ hosts: [host('192.0.2.10', 7_000, 0)] })]);
  const sensor = (await monitor.sensors.authenticate(enrolled.credential))!;
  await monitor.inbox.receive(sensor, compressUpload(encodeUpload(upload)), 'zstd');
  await monitor.inbox.drain();
  const operator = await server.signIn('operator');
  const page = `/sites/${siteId}/sensors/${sensorId}`;
  const before = (await operator.get(page)).text;
  assert.match(before, /typo-1 .*not in the inventory.*named by the sensor/s);
  assert.match(before, /Addresses of other nodes.*192\.0\.2\.10/s);
  const settings = `/sites/${siteId}/settings`;
  const refused = await operator.post(`${settings}/enrolment-tokens`);
  assert.equal(refused.status, 422);
  assert.match(refused.text, /Choose the node of the sensor/);
  const made = await operator.post(`${settings}/enrolment-tokens`, { node: '7/hv-1' });
  const bound = /ENROLMENT_TOKEN=(\S+) /.exec(made.text)![1]!;
  await monitor.sensors.enrol({ token: bound, ...names, host_name: 'new-host' });
  const sensors = await monitor.sensors.list(siteId);
  assert.deepEqual(
    sensors.map((one) => [one.hostName, one.node, one.clusterId]),
    [
      ['new-host', 'hv-1', 7],
      ['old-host', 'typo-1', null],
    ],
  );
  assert.equal((await operator.post(`${page}/node`, {})).status, 422);
  const taken = await operator.post(`${page}/node`, { node: '7/hv-1' });
  assert.equal(taken.status, 422);
  assert.match(taken.text, /Node hv-1 of cluster 7 already has the sensor of host new-host/);
  await monitor.sensors.revoke(systemActor, siteId, sensors[0]!.id);
  assert.equal((await operator.post(`${page}/node`, { node: '7/hv-1' })).status, 303);
  const after = (await operator.get(page)).text;
  assert.match(after, /hv-1 .*1 server/s);
  assert.doesNotMatch(after, /not in the inventory|named by the sensor/);
  assert.match(after, /All reported addresses belong to its node/);
  const viewer = await server.signIn('viewer');
  assert.equal((await viewer.post(`${page}/node`, { node: '7/hv-1' })).status, 403);
});
