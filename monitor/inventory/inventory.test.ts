import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import type { InventoryVm } from '#contracts/admin-api/schemas.ts';
import { type Device, labelDevice } from '#monitor/devices/index.ts';
import { systemActor } from '#monitor/operators/index.ts';
import { addMinutes, addSensor, minutesAgo, renewRunningMinute } from '#monitor/testing/facts.ts';
import { createWorld, fingerprintTables, type World } from '#monitor/testing/world.ts';

let world: World;
let sensor: number;

before(async () => {
  world = await createWorld();
  sensor = await addSensor(world);
});
after(() => world[Symbol.asyncDispose]());
beforeEach(async () => {
  renewRunningMinute();
  world.operations.vms = [];
  world.operations.intercept = () => false;
  await world.database.pool.query(
    'truncate inventory_vms, inventory_interfaces, vm_tombstones, devices, ip_bindings, ip_conflicts, retired_macs, device_names, events',
  );
});

function vm(id: number, macs: string[], name = `vm-${id}`, clusterId = 7): InventoryVm {
  return {
    id,
    cluster_id: clusterId,
    node: 'node-1',
    name,
    state: 'running',
    updated_at: new Date().toISOString(),
    interfaces: macs.map((mac, i) => ({
      id: id * 10 + i,
      mac_address: mac,
      bridge: 'br0',
      vlan: null,
      addresses: ['203.0.113.50'],
    })),
  };
}

/** Imports once; returns the counts. */
async function importNow(): Promise<Record<string, number>> {
  await world.inventory.loop.runOnce();
  return (await world.inventory.state()).lastCounts;
}

/** Traffic of a device in the minute that began this many minutes ago. */
const see = (mac: string, ago: number, address = '203.0.113.50', segment = 'br0') =>
  seeAt(mac, minutesAgo(ago), address, segment);
const seeAt = (mac: string, minute: number, address = '203.0.113.50', segment = 'br0') =>
  addMinutes(world, sensor, [{ minute, address, rxBytes: 6, packets: 1, deviceKey: `${segment}|${mac}` }]);

const devices = () => world.devices.list(world.siteId, 100);
const deviceOf = async (mac: string): Promise<Device> => {
  const found = (await devices()).find((device) => device.mac === mac);
  assert.ok(found, mac);
  return found;
};
const macA = '52:54:00:00:00:0a';
const macB = '52:54:00:00:00:0b';

test('NET-2.1.1: an import names devices by their MAC, on every segment that shows it', async () => {
  await see(macA, 2);
  await see(macA, 2, '203.0.113.50', 'uplink0');
  world.operations.vms = [vm(1, [macA.toUpperCase()], 'web-1'), vm(2, [macB]), vm(3, [])];
  const counts = await importNow();
  assert.equal(counts.virtual_machines, 3);
  assert.equal(counts.devices_matched, 2);
  assert.deepEqual(
    (await devices()).map((device) => labelDevice(device).text),
    ['web-1', 'web-1'],
  );
});

test('a server that another state is listed of is an event of its site with its addresses, once', async () => {
  world.operations.vms = [vm(1, [macA], 'web-1'), vm(2, [macB], 'elsewhere', 99)];
  await importNow();
  world.operations.vms = [
    { ...vm(1, [macA], 'web-1'), state: 'stopped' },
    { ...vm(2, [macB], 'elsewhere', 99), state: 'stopped' },
  ];
  await importNow();
  await importNow();
  const events = await world.events.list(world.siteId, 10);
  assert.deepEqual(
    events.map(({ kind, details }) => [kind, details]),
    [
      [
        'server_state_changed',
        { server: 'web-1', before: 'running', after: 'stopped', addresses: ['203.0.113.50'] },
      ],
    ],
  );
});

test('NET-2.1.1: a MAC that two servers of a site list matches no device', async () => {
  await see(macA, 2);
  world.operations.vms = [vm(1, [macA]), vm(2, [macA])];
  await importNow();
  assert.equal((await deviceOf(macA)).match, null);
});

test('NET-2.1.2: an incomplete listing changes nothing, and the state shows a fixed sentence', async () => {
  await see(macA, 2);
  world.operations.vms = [vm(1, [macA]), vm(2, []), vm(3, []), vm(4, [])];
  await importNow();
  const { lastSuccessAtMs } = await world.inventory.state();
  const before = await fingerprintTables(world.database);
  world.operations.vms = [vm(2, []), vm(3, []), vm(4, [])];
  world.operations.intercept = (request, response) => {
    if (!request.url!.includes('after_id=3')) return false;
    response.writeHead(500).end('their secret');
    return true;
  };
  await importNow();
  const state = await world.inventory.state();
  assert.match(state.lastError!, /^Operations reported an internal error/);
  assert.equal(state.lastSuccessAtMs, lastSuccessAtMs);
  const withoutState = (text: string) => text.replace(/inventory_state .*/, '');
  assert.equal(withoutState(await fingerprintTables(world.database)), withoutState(before));
  assert.equal(labelDevice(await deviceOf(macA)).text, 'vm-1');
});

test('NET-2.1.2: an inventory with an old timestamp changes nothing', async () => {
  await see(macA, 2);
  world.operations.vms = [vm(1, [macA]), vm(2, [])];
  await importNow();
  const answer = (minutes: number) => {
    world.operations.intercept = (_request, response, path) => {
      if (path !== '/inventory/vms/') return false;
      const as_of = new Date(Date.now() - minutes * 60_000).toISOString();
      response.writeHead(200).end(JSON.stringify({ vms: [vm(2, [])], next_after_id: null, as_of }));
      return true;
    };
  };
  answer(16);
  await importNow();
  assert.match((await world.inventory.state()).lastError!, /more than 15 minutes old/);
  assert.equal((await deviceOf(macA)).archivedAtMs, null);
  answer(14);
  assert.equal((await importNow()).destroyed_applied, 1);
});

test('NET-4.7: a server missing from an import is torn down as by a notice, and nothing is deleted', async () => {
  await see(macA, 2);
  world.operations.vms = [vm(1, [macA]), vm(2, [macB])];
  await importNow();
  world.operations.vms = [vm(2, [macB])];
  const counts = await importNow();
  assert.equal(counts.destroyed_applied, 1);
  assert.equal(counts.devices_archived, 1);
  const device = await deviceOf(macA);
  assert.notEqual(device.archivedAtMs, null);
  assert.equal(device.match?.serverName, 'vm-1');
  assert.deepEqual(await world.devices.listClaims([device.id]), []);
  const [binding] = await world.devices.listBindings(device.id);
  assert.equal(binding!.endedBy, 'archive');
  assert.equal((await importNow()).destroyed_applied, 0, 'once');
});

test('NET-3.3: a notice archives; only traffic that began afterwards restores the device', async () => {
  await see(macA, 3);
  world.operations.vms = [vm(1, [macA])];
  await importNow();
  const result = await world.inventory.applyNotice({ cluster_id: 7, virtual_machines: [{ id: 1 }] });
  assert.deepEqual(result, {
    destroyed_applied: 1,
    devices_archived: 1,
    destroyed_skipped: 0,
    duplicates: 0,
  });
  // Late telemetry of minutes before the archive, including an address that was not claimed before.
  const { archivedAtMs } = await deviceOf(macA);
  const archivedMinute = Math.floor(archivedAtMs! / 60_000) * 60;
  await seeAt(macA, archivedMinute - 60);
  await seeAt(macA, archivedMinute);
  await seeAt(macA, archivedMinute - 120, '203.0.113.51');
  assert.equal((await deviceOf(macA)).archivedAtMs, archivedAtMs);
  const { id } = await deviceOf(macA);
  assert.deepEqual(await world.devices.listClaims([id]), []);

  await seeAt(macA, archivedMinute + 60);
  const back = await deviceOf(macA);
  assert.equal(back.archivedAtMs, null);
  assert.equal(labelDevice(back).source, 'randomized', 'the destroyed guest has no conflict');
  const live = await world.devices.listClaims([id]);
  assert.deepEqual(
    live.map((claim) => claim.address),
    ['203.0.113.50'],
  );

  const replay = await world.inventory.applyNotice({ cluster_id: 7, virtual_machines: [{ id: 1 }] });
  assert.equal(replay.duplicates, 1);
  assert.equal((await deviceOf(macA)).archivedAtMs, null, 'a replay does not archive it again');
});

test('NET-4.7: a listing that began before the notice does not restore the server', async () => {
  world.operations.vms = [vm(1, [macA]), vm(2, []), vm(3, [])];
  let isNoticed = false;
  world.operations.intercept = (request, response) => {
    if (isNoticed || !request.url!.includes('after_id=2')) return false;
    isNoticed = true;
    void world.inventory.applyNotice({ cluster_id: 7, virtual_machines: [{ id: 1 }] }).then(() => {
      const body = { vms: [vm(3, [])], next_after_id: null, as_of: new Date().toISOString() };
      response.writeHead(200).end(JSON.stringify(body));
    });
    return true;
  };
  const counts = await importNow();
  assert.equal(counts.destroyed_skipped, 1);
  assert.equal(counts.virtual_machines, 2);
  const { rows } = await world.database.pool.query(
    'select vm_id from inventory_vms where retired_at is null',
  );
  assert.deepEqual(rows.map((row) => row.vm_id).sort(), [2, 3]);
});

test('NET-2.8: the MACs of a notice clean up a guest that existed between two imports', async () => {
  await see(macA, 2);
  const virtual_machines = [{ id: 9, mac_addresses: [macA.toUpperCase(), 'not a mac'] }];
  const result = await world.inventory.applyNotice({ cluster_id: 7, virtual_machines });
  assert.equal(result.destroyed_applied, 1);
  assert.notEqual((await deviceOf(macA)).archivedAtMs, null);
});

test('NET-4.7: a MAC that another live server uses now keeps its device', async () => {
  await see(macA, 2);
  world.operations.vms = [vm(2, [macA], 'successor')];
  await importNow();
  const virtual_machines = [{ id: 1, mac_addresses: [macA] }];
  assert.equal((await world.inventory.applyNotice({ cluster_id: 7, virtual_machines })).devices_archived, 0);
  assert.equal((await deviceOf(macA)).archivedAtMs, null);
});

test('NET-4.7: a MAC that a server gave up before its end keeps the device of its present server', async () => {
  await see(macA, 2);
  for (const vms of [[vm(1, [macA])], [vm(1, [])]]) {
    world.operations.vms = vms;
    await importNow();
  }
  world.operations.vms = [vm(2, [macA], 'successor')];
  assert.equal((await importNow()).devices_archived, 0);
  assert.equal(labelDevice(await deviceOf(macA)).text, 'successor');
});

test('NET-3.3: traffic after the archive, from a host whose clock is ahead, counts although it arrived before', async () => {
  await see(macA, 2);
  await seeAt(macA, minutesAgo(-3));
  const virtual_machines = [{ id: 1, mac_addresses: [macA] }];
  assert.equal((await world.inventory.applyNotice({ cluster_id: 7, virtual_machines })).devices_archived, 1);
  const device = await deviceOf(macA);
  assert.equal(device.archivedAtMs, null);
  const [live, past] = await world.devices.listBindings(device.id);
  assert.deepEqual([live!.endedBy, live!.firstSeenMs], [null, minutesAgo(-3) * 1000]);
  assert.equal(past!.endedBy, 'archive');
  await see(macA, 1);
  assert.equal((await world.devices.listClaims([device.id])).length, 1);
});

test('NET-4.7: conflicts that only a destroyed guest held are resolved, and others stay', async () => {
  for (const ago of [5, 4, 3]) {
    await see(macA, ago);
    await see(macB, ago);
  }
  const kinds = async () => (await world.events.list(world.siteId, 10)).map((event) => event.kind);
  assert.deepEqual(await kinds(), ['ip_conflict_opened']);
  assert.ok((await world.devices.listClaims([(await deviceOf(macB)).id]))[0]!.isInConflict);
  const notice = (id: number, mac: string) => ({
    cluster_id: 7,
    virtual_machines: [{ id, mac_addresses: [mac] }],
  });
  await world.inventory.applyNotice(notice(1, macA));
  assert.deepEqual(await kinds(), ['ip_conflict_resolved', 'ip_conflict_opened']);
  assert.ok(!(await world.devices.listClaims([(await deviceOf(macB)).id]))[0]!.isInConflict);
});

test('an address that is handed from one MAC to the next is no conflict', async () => {
  await see(macA, 5);
  await see(macA, 4);
  await see(macB, 4);
  await see(macB, 3);
  assert.deepEqual(await world.events.list(world.siteId, 10), []);
});

test('NET-4.7: automatic sync can be off: Sync now still imports, and notices count', async () => {
  await see(macA, 2);
  const settings = { baseUrl: world.operations.url, token: null, isEnabled: true };
  await world.connection.save(systemActor, { ...settings, isSyncAutomatic: false });
  world.operations.vms = [vm(1, [macA], 'web-1')];
  await importNow();
  assert.equal((await deviceOf(macA)).match, null, 'nothing is imported automatically');
  assert.deepEqual(await world.inventory.syncNow(systemActor), { outcome: 'imported' });
  assert.equal((await deviceOf(macA)).match?.serverName, 'web-1');
  const virtual_machines = [{ id: 1, mac_addresses: [macA] }];
  assert.equal((await world.inventory.applyNotice({ cluster_id: 7, virtual_machines })).devices_archived, 1);
  await world.connection.save(systemActor, settings);
});

test('NET-4.7: notices count while the connection is disabled', async () => {
  await see(macA, 2);
  const settings = { baseUrl: world.operations.url, token: null };
  await world.connection.save(systemActor, { ...settings, isEnabled: false });
  const virtual_machines = [{ id: 1, mac_addresses: [macA] }];
  assert.equal((await world.inventory.applyNotice({ cluster_id: 7, virtual_machines })).devices_archived, 1);
  await world.connection.save(systemActor, { ...settings, isEnabled: true });
});

test('NET-2.1.3: an operator names a MAC on every segment, and an empty name restores the automatic one', async () => {
  await see(macA, 2);
  await see(macA, 2, '203.0.113.50', 'uplink0');
  world.operations.vms = [vm(1, [macA], 'web-1')];
  await importNow();
  const { id } = await deviceOf(macA);
  const texts = async () => (await devices()).map((device) => labelDevice(device).text);
  await world.devices.name(systemActor, { siteId: world.siteId, deviceId: id, name: ' Mail relay ' });
  assert.deepEqual(await texts(), ['Mail relay', 'Mail relay']);
  await world.devices.name(systemActor, { siteId: world.siteId, deviceId: id, name: 'Relay' });
  assert.deepEqual(await texts(), ['Relay', 'Relay']);
  await world.devices.name(systemActor, { siteId: world.siteId, deviceId: id, name: '' });
  assert.deepEqual(await texts(), ['web-1', 'web-1']);
  const viewer = { kind: 'person', id: 1, role: 'viewer' } as const;
  await assert.rejects(world.devices.name(viewer, { siteId: world.siteId, deviceId: id, name: 'x' }));
});

test('machines and interfaces store the time of the last import that listed them, separate from changes in operations', async () => {
  const seen = async () =>
    (
      await world.database.pool.query<{ what: string; age: number; retired: boolean }>(
        `select 'vm ' || vm_id as what, round(extract(epoch from svc_now() - last_seen_at))::int as age,
           retired_at is not null as retired from inventory_vms
         union all select 'nic ' || interface_id, round(extract(epoch from svc_now() - last_seen_at))::int,
           retired_at is not null from inventory_interfaces order by 1`,
      )
    ).rows.map(({ what, age, retired }) => [what, age >= 3600, retired]);
  const first = vm(1, ['02:00:00:00:00:01', '02:00:00:00:00:02']);
  world.operations.vms = [first];
  await importNow();
  await world.database.pool.query(`update inventory_vms set last_seen_at = last_seen_at - interval '1 hour'`);
  await world.database.pool.query(
    `update inventory_interfaces set last_seen_at = last_seen_at - interval '1 hour'`,
  );
  world.operations.vms = [{ ...first, interfaces: first.interfaces.slice(0, 1) }];
  await importNow();
  assert.deepEqual(await seen(), [
    ['nic 10', false, false],
    ['nic 11', true, true],
    ['vm 1', false, false],
  ]);
  const [listed] = await world.inventory.listNodeServers([7], 'node-1', 10);
  assert.equal(listed?.interfacesSeenAtMs, listed?.seenAtMs);
});
