import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { encodeLive } from '#contracts/sensor-api/live-codec.ts';
import { compressUpload, encodeUpload } from '#contracts/sensor-api/telemetry-codec.ts';
import { systemActor } from '#monitor/operators/index.ts';
import { captureMinute, createSpool, testMinute } from '#monitor/testing/index.ts';
import { startMonitorServer } from '#monitor/testing/server.ts';

test('the sensors page shows what each capture sees right now and what its host consists of', async () => {
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
  const { totals } = captureMinute({ totals: { ipBytes: 12_500_000 } });
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
  };
  const visitor = await server.signIn('viewer');
  const list = await visitor.get(`/sites/${siteId}/sensors`);
  for (const part of ['Right now', '10.0 Mbit/s', 'not told', `/sites/${siteId}/sensors/${sensor.id}`])
    assert.ok(list.text.includes(part), `${part} is not on the list`);
  await monitor.sensors.noteCondition(sensor.id, condition);
  assert.match((await visitor.get(`/sites/${siteId}/sensors`)).text, /75\.0 %/);
  const { text, status } = await visitor.get(`/sites/${siteId}/sensors/${sensor.id}`);
  assert.equal(status, 200);
  for (const part of [
    'Reporting',
    '75.0 %',
    'Collection pauses',
    '192.0.2.1/24',
    'br0, VLAN 77',
    '10.0 Mbit/s',
  ])
    assert.ok(text.includes(part), `${part} is not on the sensor’s page`);
  assert.ok(!text.includes(unkind));
  assert.ok(!text.includes('Remove'), 'who may only look is offered nothing');
  assert.equal((await visitor.get(`/sites/${siteId}/sensors/999`)).status, 404);
  const csv = await visitor.get(`/sites/${siteId}/sensors?format=csv&table=sensors`);
  assert.match(csv.text, /node-1,node-1,reporting,/);

  // A fleet comes page by page, who is silent first; its files are whole.
  await server.database.pool.query(
    `insert into sensors (site_id, host_name, node, credential_id, credential_digest)
     select $1, 'z-' || n, 'z', 'z-' || n, '\\x00' from generate_series(1, 60) n`,
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
