import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { Value } from 'typebox/value';
import { ScanPlan, scanTargetsMax } from '#contracts/sensor-api/port-scans.ts';
import { systemActor } from '#monitor/operators/index.ts';
import { type Choice, chooseTargets } from './choose-targets.ts';
import {
  askScans,
  clusterId,
  hostInterface,
  hostInterfaces,
  listInterfaces,
  listServers,
  type ScanStage,
  startScanStage,
} from './testing/scan-world.ts';

let stage: ScanStage;
before(async () => {
  stage = await startScanStage();
});
after(() => stage[Symbol.asyncDispose]());
beforeEach(async () => {
  await stage.pool.query(
    'truncate inventory_interfaces, inventory_vms, vm_placements, scan_targets, scan_plans cascade',
  );
  await listInterfaces(stage.pool, stage.sensorId);
});

async function plan(): Promise<ScanPlan> {
  const { status, json } = await stage.ask();
  assert.equal(status, 200);
  assert.ok(Value.Check(ScanPlan, json), JSON.stringify(json));
  return json;
}
const addresses = async () => (await plan()).targets.map(({ address }) => address);

test('NET-2.7.8: a plan names the running servers of the sensor’s own node, with a local source of the same family', async () => {
  await listServers(stage.pool, [
    { serverId: 1, addresses: ['203.0.113.10', '2001:db8:113::10', '10.0.0.5', '100.64.0.1'] },
    { serverId: 2, addresses: ['203.0.113.11'], node: 'hv-2' },
    { serverId: 3, addresses: ['203.0.113.12'], state: 'stopped' },
    { serverId: 4, addresses: ['203.0.113.13'], state: 'rebooting' },
    { serverId: 5, addresses: ['203.0.113.14'], cluster: 8 },
  ]);
  const { targets } = await plan();
  const [target] = targets;
  assert.equal(targets.length, 1, 'no IPv6 source, no private address, no other node or cluster');
  assert.deepEqual(
    [target!.address, target!.interface, target!.source_address, target!.vm_id, target!.nic_id],
    ['203.0.113.10', 'br0', '203.0.113.1', 1, 1001],
  );
  await listInterfaces(stage.pool, stage.sensorId, [
    ...hostInterfaces,
    hostInterface({ name: 'br0.7', parent: 'br0', vlan: 7, addresses: ['2001:db8:113::1/64'] }),
  ]);
  const six = (await plan()).targets.find(({ address }) => address.includes(':'))!;
  assert.deepEqual([six.interface, six.source_address], ['br0.7', '2001:db8:113::1']);
});

test('NET-2.7.8: servers and interfaces must be listed within 15 minutes, the host’s interfaces within 5', async () => {
  await listServers(stage.pool, [
    { serverId: 1, addresses: ['203.0.113.10'], age: '14 minutes 50 seconds' },
    { serverId: 2, addresses: ['203.0.113.11'], age: '15 minutes 1 second' },
    { serverId: 3, addresses: ['203.0.113.12'], interfaceAge: '15 minutes 1 second' },
  ]);
  assert.deepEqual(await addresses(), ['203.0.113.10']);
  await listInterfaces(stage.pool, stage.sensorId, hostInterfaces, '4 minutes 50 seconds');
  assert.deepEqual(await addresses(), ['203.0.113.10']);
  await listInterfaces(stage.pool, stage.sensorId, hostInterfaces, '5 minutes 1 second');
  assert.deepEqual(await addresses(), []);
});

test('NET-2.7.8: retired and ambiguous servers, and addresses of hypervisors, are excluded', async () => {
  await stage.enrol('hv-9');
  await listServers(stage.pool, [
    { serverId: 1, addresses: ['203.0.113.10'] },
    { serverId: 2, addresses: ['203.0.113.11'] },
    { serverId: 3, addresses: ['203.0.113.12'] },
    { serverId: 4, addresses: ['203.0.113.12'], node: 'hv-2' },
    { serverId: 5, addresses: ['203.0.113.14'], mac: '52:54:00:00:00:aa' },
    { serverId: 6, addresses: ['203.0.113.15'], mac: '52:54:00:00:00:aa' },
    { serverId: 7, addresses: ['198.51.100.2'] },
  ]);
  await stage.pool.query('update inventory_vms set retired_at = svc_now() where vm_id = 2');
  assert.deepEqual(await addresses(), ['203.0.113.10']);
  await stage.pool.query('update inventory_interfaces set retired_at = svc_now()');
  assert.deepEqual(await addresses(), []);
});

test('NET-2.7.8: a name that two clusters give to a node is not certain enough to scan it', async () => {
  await stage.monitor.sites.mapCluster(systemActor, 8, stage.siteId);
  await listServers(stage.pool, [
    { serverId: 1, addresses: ['203.0.113.10'] },
    { serverId: 2, addresses: ['203.0.113.11'], cluster: 8 },
  ]);
  assert.deepEqual(await addresses(), []);
  await stage.pool.query('update sensors set cluster_id = $1 where id = $2', [clusterId, stage.sensorId]);
  assert.deepEqual(await addresses(), ['203.0.113.10']);
  await stage.pool.query('update sensors set cluster_id = null');
  await stage.monitor.sites.mapCluster(systemActor, 8, null);
});

test('a target keeps its id, and the revision grows with every change and with nothing else', async () => {
  await listServers(stage.pool, [{ serverId: 1, addresses: ['203.0.113.10'] }]);
  const first = await stage.ask();
  const again = await stage.ask();
  assert.deepEqual(again, first);
  const known = await stage.ask(undefined, { 'if-none-match': first.etag });
  assert.deepEqual([known.status, known.json], [304, null]);
  await listServers(stage.pool, [{ serverId: 2, addresses: ['203.0.113.11'] }]);
  const second = await stage.ask(undefined, { 'if-none-match': first.etag });
  assert.equal(second.status, 200);
  assert.equal(second.json.revision, first.json.revision + 1);
  assert.equal(second.json.targets[0]!.target_id, first.json.targets[0]!.target_id);
  assert.notEqual(second.json.targets[1]!.target_id, first.json.targets[0]!.target_id);
  await stage.pool.query('update inventory_vms set state = $1 where vm_id = 1', ['stopped']);
  assert.equal((await stage.ask()).json.revision, first.json.revision + 2);
  await stage.pool.query('update inventory_vms set state = $1 where vm_id = 1', ['running']);
  const back = await stage.ask();
  assert.equal(back.json.revision, first.json.revision + 3);
  assert.equal(back.json.targets[0]!.target_id, first.json.targets[0]!.target_id);
});

test('NET-2.7.4: the plan carries the site’s daily boundary; a change applies from the next plan', async () => {
  const { monitor, siteId } = stage;
  const readBoundary = async () => (await plan()).scan_policy!.daily_full_scan_at;
  const before = await readBoundary();
  await monitor.scans.setSchedule(systemActor, siteId, { time: '22:00', zone: 'America/New_York' });
  assert.equal(await readBoundary(), before, 'the default');
  await monitor.scans.setSchedule(systemActor, siteId, { time: '22:17', zone: 'Asia/Tokyo' });
  const changed = await readBoundary();
  assert.ok(changed.endsWith('T13:17:00.000Z') && Date.parse(changed) <= Date.now());
});

test('NET-5.3: a plan is of the sensor that asks; without a credential there is none', async () => {
  await listServers(stage.pool, [
    { serverId: 1, addresses: ['203.0.113.10'] },
    { serverId: 2, addresses: ['203.0.113.11'], node: 'hv-2' },
  ]);
  const other = await stage.enrol('hv-2');
  const { json } = await askScans(stage.url, other.credential);
  assert.deepEqual(
    json.targets.map((one: { address: string }) => one.address),
    ['203.0.113.11'],
  );
  assert.equal((await askScans(stage.url, 'svcsen_x_y')).status, 401);
});

const candidate = (address: string) => ({
  ...{ clusterId, serverId: 1, name: 'server-1', interfaceId: 1, bridge: 'br0', address, state: 'running' },
  ...{
    serverAgeSeconds: 1,
    interfaceAgeSeconds: 1,
    listedAtMs: 0,
    holders: 1,
    macHolders: 1,
    targetId: null,
  },
});
const host = {
  ...{ siteId: 1, node: 'hv-1', clusterId, clusters: 1, interfacesAgeSeconds: 1, hostAddresses: [] },
  captures: [{ name: 'eth0', role: 'uplink' }],
};
const sourcesOf = ({ targets, excluded }: Choice) => [
  ...targets.map((one) => `${one.interface} ${one.sourceAddress}`),
  ...excluded.map(({ why }) => why),
];

test('NET-2.7.8: scans leave from the interface that owns the WAN address: the bridge or bond above the uplink', () => {
  const choose = (...interfaces: ReturnType<typeof hostInterface>[]) =>
    sourcesOf(chooseTargets({ ...host, interfaces }, [candidate('203.0.113.10')], true));
  const eth0 = hostInterface({ name: 'eth0', master: 'bond0' });
  const bond0 = hostInterface({ name: 'bond0', master: 'vmbr0' });
  const vmbr0 = hostInterface({ name: 'vmbr0', addresses: ['198.51.100.9/24', '169.254.1.1/16'] });
  assert.deepEqual(choose(eth0, bond0, vmbr0), ['vmbr0 198.51.100.9']);
  assert.deepEqual(choose(vmbr0, bond0, eth0), ['vmbr0 198.51.100.9']);
  const other = hostInterface({ name: 'mgmt0', addresses: ['203.0.113.5/24'] });
  assert.deepEqual(choose(eth0, bond0, other), ['no_source'], 'not of the configured topology');
  assert.deepEqual(choose(eth0, bond0, { ...vmbr0, isUp: false }), ['no_source']);
  assert.deepEqual(choose(eth0, bond0, { ...vmbr0, addresses: ['2001:db8::9/64'] }), ['no_source']);
});

const insertAddresses = (serverId: number, count: number) =>
  stage.pool.query(
    `with server as (insert into inventory_vms (cluster_id, vm_id, node, name, state, updated_at)
       values (7, $1, 'hv-1', 's', 'running', svc_now()))
     insert into inventory_interfaces (cluster_id, vm_id, interface_id, mac, addresses)
     select 7, $1, 1, '52:54:00:00:00:01', array_agg('8.8.0.0'::inet + n + $1 * 10000) from generate_series(1, $2) n`,
    [serverId, count],
  );

/** Open alerts about plans that were cut, and the lists of the sensor's plan on its page. */
async function cutSaid() {
  const { monitor, siteId, sensorId } = stage;
  await monitor.alerts.loop.runOnce();
  const open = await monitor.alerts.listOpen(siteId, 10);
  await stage.pool.query(
    `insert into sensor_contacts (sensor_id, last_contact_at, sensor_version, spool_id, sequence)
     values ($1, svc_now(), '0.1.24', gen_random_uuid(), 1) on conflict (sensor_id) do update set last_contact_at = svc_now()`,
    [sensorId],
  );
  const visitor = await stage.signIn('viewer');
  const page = `/sites/${siteId}/sensors/${sensorId}`;
  const { rows } = JSON.parse((await visitor.get(`${page}?format=json&table=plan`)).text);
  return {
    alerts: open.filter(({ kind }) => kind === 'plan_cut').map(({ details }) => details),
    list: rows.find(({ list }: { list: string }) => list === 'port scan targets'),
    page: (await visitor.get(page)).text,
  };
}

test('NET-8.5: more addresses than a plan holds are left out, counted on the sensor’s page and alerted', async () => {
  await insertAddresses(1, scanTargetsMax + 5);
  assert.equal((await plan()).targets.length, scanTargetsMax);
  const said = await cutSaid();
  assert.deepEqual(said.alerts, [{ targets: 4101, left_out: 5, lists: 'port scan targets' }]);
  assert.deepEqual(said.list, { list: 'port scan targets', entries: 4101, max: 4096, left_out: 5 });
  assert.ok(said.page.includes('5 of 4,101 port scan targets have no room in its plan. Move servers'));

  // More than are looked at: the others are counted all the same.
  await insertAddresses(2, 4200);
  await stage.pool.query("update inventory_vms set state = 'stopped' where vm_id = 1");
  assert.equal((await plan()).targets.length, 2 * scanTargetsMax - 4101);
  assert.equal((await cutSaid()).list.left_out, 4101 + 4200 - 2 * scanTargetsMax);

  await stage.pool.query('delete from inventory_interfaces where vm_id = 1');
  await stage.pool.query('update inventory_interfaces set addresses = addresses[:10]');
  assert.equal((await plan()).targets.length, 10);
  assert.deepEqual((await cutSaid()).list, {
    list: 'port scan targets',
    entries: 10,
    max: 4096,
    left_out: 0,
  });
});
