import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Value } from 'typebox/value';
import { SensorPlan } from '#contracts/sensor-api/http.ts';
import { compressUpload, encodeUpload } from '#contracts/sensor-api/telemetry-codec.ts';
import { systemActor } from '#monitor/operators/index.ts';
import { captureMinute, createSpool, host, testMinute } from '#monitor/testing/index.ts';
import { startMonitorServer } from '#monitor/testing/server.ts';

const began = testMinute - 7200;
const mac = (n: number) => `52:54:00:00:00:0${n}`;

/** A site with cluster 7, and the sensor of its node hv-1, which captures a bridge. */
async function startStage() {
  const server = await startMonitorServer();
  const { monitor, siteId, database } = server;
  await monitor.sites.mapCluster(systemActor, 7, siteId);
  const { token } = await monitor.sensors.createToken(systemActor, siteId);
  const names = { host_name: 'host-1', node: 'hv-1', sensor_version: '0.1.0' };
  const made = (await monitor.sensors.enrol({ token, ...names }))!;
  const sensor = (await monitor.sensors.authenticate(made.credential))!;
  return {
    ...server,
    sensor,
    readPlan: () => monitor.sensors.readPlan(siteId, sensor.id),
    /** What the inventory lists from now on. */
    async list(
      servers: { serverId: number; node: string; mac: string; addresses: string[]; cluster?: number }[],
    ) {
      await database.pool.query('truncate vm_placements, inventory_vms cascade');
      for (const { serverId, node, addresses, cluster = 7, ...one } of servers) {
        await database.pool.query(
          `insert into inventory_vms (cluster_id, vm_id, node, name, state, updated_at)
           values ($1, $2, $3, $4, 'running', svc_now())`,
          [cluster, serverId, node, `server-${serverId}`],
        );
        await database.pool.query(
          `insert into vm_placements (cluster_id, vm_id, node, mac, segment, address, is_unique, began_at)
           select $1, $2, $3, $4, 'br0', address, not address <<= '10.0.0.0/8', '-infinity' from unnest($5::inet[]) address`,
          [cluster, serverId, node, one.mac, addresses],
        );
      }
    },
    async apply(...uploads: ReturnType<ReturnType<typeof createSpool>['upload']>[]) {
      for (const upload of uploads)
        await monitor.inbox.receive(sensor, compressUpload(encodeUpload(upload)), 'zstd');
      await monitor.inbox.drain();
    },
    listSpoofed: () => monitor.spoofing.listOfSensor(siteId, sensor.id, (began - 3600) * 1000, 100),
  };
}

test('NET-9.4: a plan names the owners of its node’s addresses: every MAC of the site that has one, and no private address', async () => {
  await using stage = await startStage();
  assert.deepEqual((await stage.readPlan()).owners, []);
  const moving = { mac: mac(4), addresses: ['203.0.113.14'] };
  await stage.list([
    { serverId: 1, node: 'hv-1', mac: mac(1), addresses: ['203.0.113.10', '10.0.0.5', '2001:db8:113::10'] },
    // Two servers have one MAC, and two have one address, of which one is on another node.
    { serverId: 2, node: 'hv-1', mac: mac(1), addresses: ['203.0.113.11'] },
    { serverId: 3, node: 'hv-2', mac: mac(3), addresses: ['203.0.113.11', '203.0.113.12'] },
    { serverId: 4, node: 'hv-2', ...moving },
    { serverId: 5, node: 'hv-1', mac: mac(5), addresses: ['203.0.113.15'], cluster: 8 },
  ]);
  const plan = await stage.readPlan();
  assert.ok(Value.Check(SensorPlan, plan));
  assert.equal(plan.owners_version, 2);
  assert.deepEqual(plan.owners, [
    { address: '203.0.113.10', macs: [mac(1)] },
    { address: '203.0.113.11', macs: [mac(1), mac(3)] },
    { address: '2001:db8:113::10', macs: [mac(1)] },
  ]);
  const health = (await stage.monitor.sensors.listHealth()).find(({ id }) => id === stage.sensor.id)!;
  assert.equal(health.plan.find(({ section }) => section === 'owners')!.entries, 3);
  await stage.list([{ serverId: 4, node: 'hv-1', ...moving }]);
  assert.deepEqual((await stage.readPlan()).owners, [{ address: '203.0.113.14', macs: [mac(4)] }]);
});

test('NET-2.4.2: spoofed traffic is stored once, listed with both servers, an event when it begins, and on no address', async () => {
  await using stage = await startStage();
  await stage.list([
    { serverId: 1, node: 'hv-1', mac: mac(1), addresses: ['203.0.113.10'] },
    { serverId: 2, node: 'hv-1', mac: mac(2), addresses: ['203.0.113.11'] },
  ]);
  const row = { deviceKey: `br0.7|${mac(1)}`, address: '203.0.113.11', bytes: 1000, packets: 2 };
  const minuteOf = (minute: number, spoofed = [row]) =>
    captureMinute({
      ...{ minute, capture: 'br0', role: 'bridge', spoofed },
      hosts: [host('203.0.113.11', 5, 6, `br0.7|${mac(2)}`)],
    });
  const spool = createSpool();
  const first = spool.upload([minuteOf(began), minuteOf(began + 60)]);
  const rest = { deviceKey: '', address: '', bytes: 9, packets: 1 };
  await stage.apply(first, first, spool.upload([minuteOf(began + 120, [row, rest])]));
  const listed = await stage.listSpoofed();
  const sum = { capture: 'br0', lastMinuteMs: (began + 120) * 1000 };
  assert.deepEqual(listed, [
    {
      ...{ ...sum, segment: 'br0.7', mac: mac(1), address: '203.0.113.11', reason: 'address' },
      ...{ bytes: 3000, packets: 6, senders: ['server-1'], owners: ['server-2'] },
    },
    {
      ...{ ...sum, segment: '', mac: '', address: null, reason: 'address', bytes: 9, packets: 1 },
      ...{ senders: [], owners: [] },
    },
  ]);
  const { siteId, monitor, sensor } = stage;
  const range = [siteId, '203.0.113.11', began, began + 180] as const;
  const minutes = await monitor.traffic.readAddressMinutes(...range);
  assert.deepEqual(
    minutes.map((one) => !one.isGap && [one.rxBytes, one.txBytes]),
    [5, 5, 5].map(() => [5, 6]),
  );
  const events = () => monitor.events.list(siteId, 10, { kind: 'spoofed_traffic' });
  const [event, ...others] = await events();
  assert.deepEqual(others, []);
  assert.equal(event!.occurredAtMs, began * 1000, 'the time of the minute, not of its arrival');
  assert.deepEqual(event!.details, {
    ...{ address: '203.0.113.11', reason: 'address', mac_addresses: [mac(1)], segment: 'br0.7' },
    ...{ bytes: 2000, packets: 4 },
  });
  // It began again after an hour without; another address begins by itself.
  await stage.apply(
    spool.upload([minuteOf(testMinute - 60)]),
    spool.upload([
      minuteOf(testMinute, [row, { ...row, address: '203.0.113.10', deviceKey: `br0|${mac(2)}` }]),
    ]),
  );
  assert.deepEqual(
    (await events()).map(({ details }) => details.address),
    ['203.0.113.10', '203.0.113.11', '203.0.113.11'],
  );
  const visitor = await stage.signIn('viewer');
  const page = await visitor.get(`/sites/${siteId}/sensors/${sensor.id}`);
  assert.ok(/Spoofed traffic.*52:54:00:00:00:01.{0,40}\(server-1\)/s.test(page.text));
  const file = await visitor.get(`/sites/${siteId}/sensors/${sensor.id}?format=json&table=spoofed`);
  assert.equal(JSON.parse(file.text).rows[0].owners, 'server-2');
  const told = await visitor.get(`/sites/${siteId}/events`);
  assert.ok(/Another MAC sends from .*203\.0\.113\.11.*52:54:00:00:00:01/s.test(told.text));

  // What the kernel counts of claims in messages, of each sender.
  const claim = { deviceKey: `br0|${mac(1)}`, bytes: 0, packets: 3 };
  const claims = [
    { ...claim, address: '203.0.113.11', reason: 'arp' as const },
    ...[1, 2].map((n) => ({ ...claim, deviceKey: `br0|${mac(n)}`, address: '', reason: 'router' as const })),
  ];
  await stage.apply(
    spool.upload([minuteOf(testMinute + 60, claims)]),
    spool.upload([minuteOf(testMinute + 120, claims)]),
  );
  assert.deepEqual(
    (await events())
      .slice(0, 3)
      .map(({ details }) => [details.reason, details.address, details.mac_addresses]),
    [
      ['router', undefined, [mac(2)]],
      ['router', undefined, [mac(1)]],
      ['arp', '203.0.113.11', [mac(1)]],
    ],
  );
  assert.deepEqual(
    (await stage.listSpoofed())
      .filter(({ reason }) => reason !== 'address')
      .map((row) => [row.reason, row.mac, row.packets]),
    [
      ['arp', mac(1), 6],
      ['router', mac(1), 6],
      ['router', mac(2), 6],
    ],
  );
  const after = await visitor.get(`/sites/${siteId}/events`);
  assert.match(after.text, /Spoofed traffic of .{0,40}52:54:00:00:00:02.{0,20}: Router advertisement\./s);
});
