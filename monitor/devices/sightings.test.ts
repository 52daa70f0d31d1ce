import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { systemActor } from '#monitor/operators/index.ts';
import { addSensor, minutesAgo, renewRunningMinute } from '#monitor/testing/facts.ts';
import { createWorld, fingerprintTables, type World } from '#monitor/testing/world.ts';
import { moveDatabaseClock } from '#service-kit/testing/index.ts';
import type { SightingUpload } from './index.ts';

let world: World;
let siteId: number;
let sites = 0;
before(async () => {
  world = await createWorld();
});
after(() => world[Symbol.asyncDispose]());
beforeEach(async () => {
  renewRunningMinute();
  sites += 1;
  siteId = (await world.sites.create(systemActor, `Site ${sites}`)).id;
});

const macA = '00:1b:21:00:00:0a';
const macB = '00:1b:21:00:00:0b';
const address = '203.0.113.50';
const host = (mac: string, ip = address, segment = 'br0') => ({
  deviceKey: `${segment}|${mac}`,
  address: ip,
});
const upload = (ago: number, ...hosts: SightingUpload['minutes'][number]['hosts'][number][]) => ({
  siteId,
  minutes: [{ minute: minutesAgo(ago), hosts }],
});
const record = (...batch: SightingUpload[]) =>
  world.database.db.transaction().execute((trx) => world.devices.recordSightings(trx, batch));
const idOf = async (mac: string) =>
  (await world.devices.list(siteId, 100)).find((device) => device.mac === mac)!.id;
const bindings = async (mac: string) =>
  (await world.devices.listBindings(await idOf(mac))).map(
    ({ address: ip, firstSeenMs, lastSeenMs, endedBy }) =>
      `${ip} ${agoOf(firstSeenMs)}-${agoOf(lastSeenMs)} ${endedBy ?? 'live'}`,
  );
const agoOf = (ms: number) => (minutesAgo(0) - ms / 1000) / 60;
const events = async () =>
  (await world.events.list(siteId, 50)).map(({ kind, details }) => `${kind} ${details.address}`).reverse();

test('NET-3.3: uploads of many sites are one batch, and a batch without new data writes nothing', async () => {
  const other = (await world.sites.create(systemActor, 'Another site')).id;
  const batch = [
    upload(9, host(macA), host(macA, '2001:db8::1')),
    upload(8, host(macA), host(macB, '203.0.113.51'), { deviceKey: '', address: '203.0.113.52' }),
    { ...upload(9, host(macA)), siteId: other },
  ];
  await record(...batch);
  assert.deepEqual(await bindings(macA), [`${address} 9-8 live`, '2001:db8::1 9-9 live']);
  assert.equal((await world.devices.list(other, 10)).length, 1);
  const before = await fingerprintTables(world.database);
  await record(...batch.toReversed(), upload(6, host(macA), host(macB, '203.0.113.51')));
  assert.equal(
    await fingerprintTables(world.database),
    before,
    'less than five minutes later nothing is written',
  );
  await record(upload(3, host(macA), host(macB, '203.0.113.51')));
  assert.deepEqual(await bindings(macA), [`${address} 9-3 live`, '2001:db8::1 9-9 live']);
  assert.deepEqual(await bindings(macB), ['203.0.113.51 8-3 live']);
});

test('NET-3.3: an address that changes its owner keeps its history: owners, periods, and reasons for their end', async () => {
  await record(upload(40, host(macA)), upload(38, host(macA)));
  for (let ago = 30; ago >= 27; ago -= 1) await record(upload(ago, host(macB)));
  assert.deepEqual(await bindings(macA), [`${address} 40-38 owner`], 'silent for ten minutes');
  assert.deepEqual(await world.devices.listClaims([await idOf(macA)]), []);
  // It is seen again: a new period, without a conflict, because the other one is no longer seen.
  await record(upload(10, host(macA)), upload(9, host(macA)));
  assert.deepEqual(await bindings(macA), [`${address} 10-9 live`, `${address} 40-38 owner`]);
  assert.deepEqual(await bindings(macB), [`${address} 30-27 owner`]);
  assert.deepEqual(await events(), []);
});

test('NET-6: an address that two MACs claim in turn opens one conflict, and an hour without sightings of one resolves it', async () => {
  for (const ago of [80, 79, 78]) await record(upload(ago, host(macA), host(macB)));
  assert.deepEqual(await events(), [`ip_conflict_opened ${address}`]);
  assert.ok((await world.devices.listClaims([await idOf(macA)]))[0]!.isInConflict);
  await record(upload(77, host(macA), host(macB), host('00:1b:21:00:00:0c')));
  await record(upload(76, host(macA), host(macB), host('00:1b:21:00:00:0c')));
  assert.equal((await events()).length, 1, 'a third owner joins the conflict');
  const conflicts = await world.database.pool.query(
    'select macs from ip_conflicts where site_id = $1 and resolved_at is null',
    [siteId],
  );
  assert.deepEqual(conflicts.rows, [{ macs: [macA, macB, '00:1b:21:00:00:0c'] }]);
  await record(upload(18, host(macA)));
  assert.equal((await events()).length, 1);
  await record(upload(14, host(macA)));
  assert.deepEqual(await events(), [`ip_conflict_opened ${address}`, `ip_conflict_resolved ${address}`]);
});

test('NET-6: one MAC on two segments is one owner', async () => {
  for (const ago of [9, 8, 7]) await record(upload(ago, host(macA), host(macA, address, 'uplink0')));
  assert.deepEqual(await events(), []);
});

test('NET-6: two workers that each add one owner at the same time open the conflict', async () => {
  const first = Promise.withResolvers<void>();
  const wrote = Promise.withResolvers<void>();
  const slow = world.database.db.transaction().execute(async (trx) => {
    await world.devices.recordSightings(trx, [upload(5, host(macA)), upload(2, host(macA))]);
    wrote.resolve();
    await first.promise;
  });
  await wrote.promise;
  let isDone = false;
  const second = record(upload(4, host(macB)), upload(1, host(macB))).finally(() => {
    isDone = true;
  });
  // Until it waits for the first, or finished without waiting.
  for (let waiting = 0; !isDone && waiting === 0; ) {
    const { rows } = await world.database.pool.query(
      `select count(*)::int as waiting from pg_locks
       where locktype = 'advisory' and not granted and database = (select oid from pg_database where datname = current_database())`,
    );
    waiting = rows[0].waiting;
  }
  first.resolve();
  await Promise.all([slow, second]);
  assert.deepEqual(await events(), [`ip_conflict_opened ${address}`]);
});

test('NET-2.2.9: a malformed owner key makes no device', async () => {
  const keys = [macA, `|${macA}`, 'br0|', 'br0', `br0|${macA}0`, 'br0|ff:ff:ff:ff:ff:ff'];
  await record(upload(9, ...keys.map((deviceKey) => ({ deviceKey, address }))));
  assert.deepEqual(await world.devices.list(siteId, 10), []);
});

test('NET-2.2.9: a MAC of a sensor’s host owns nothing, on any sensor; the MAC of a guest’s macvtap does', async () => {
  await record(upload(9, host(macA)));
  const inventory = {
    interfaces: [
      { name: 'eth0', mac: macA, kind: '' },
      { name: 'macvtap0', mac: macB, kind: 'macvtap' },
    ],
    neighbours: [{ segment: 'br0', mac: '00:1b:21:00:00:0f', address: '203.0.113.1', isRouter: true }],
  } as unknown as NonNullable<SightingUpload['inventory']>;
  await record({ ...upload(8, host(macB, '203.0.113.51')), inventory });
  await record(upload(7, host(macA), host(macB, '203.0.113.51'), host('00:1b:21:00:00:0f', '203.0.113.99')));
  assert.deepEqual(await bindings(macA), [`${address} 9-9 owner`]);
  assert.deepEqual(await bindings(macB), ['203.0.113.51 8-8 live']);
  assert.deepEqual(
    await bindings('00:1b:21:00:00:0f'),
    ['203.0.113.1 8-8 live'],
    'its own, by its neighbours',
  );
});

test('NET-2.2.9: a MAC that claims more addresses than a host has owns none of them', async () => {
  await record(upload(9, host(macB, '203.0.113.7')));
  const many = (count: number) => [...Array(count)].map((_, i) => host(macA, `198.51.100.${i}`));
  await record(upload(9, ...many(64)));
  assert.equal((await bindings(macA)).filter((line) => line.endsWith('live')).length, 64);
  await record(upload(8, ...many(65)), upload(8, host(macA, '203.0.113.7')));
  assert.equal((await bindings(macA)).filter((line) => line.endsWith('live')).length, 0);
  await record(upload(7, ...many(20), host(macA, '203.0.113.7')), upload(7, host(macB, '203.0.113.7')));
  assert.deepEqual(await world.devices.listClaims([await idOf(macA)]), []);
  assert.deepEqual(await events(), []);
  // A sensor that was away for more than an hour comes back, and says that this MAC is a router's.
  await moveDatabaseClock(world.database, '61 minutes');
  const neighbours = [{ segment: 'br0', mac: macA, address: '198.51.100.1', isRouter: true }];
  const inventory = { interfaces: [], neighbours } as unknown as NonNullable<SightingUpload['inventory']>;
  await record({ ...upload(6, ...many(65)), inventory });
  await moveDatabaseClock(world.database, '0 minutes');
  const live = (await bindings(macA)).filter((line) => line.endsWith('live'));
  assert.deepEqual(live, ['198.51.100.1 6-6 live'], 'its own, by its neighbours');
});

test('NET-3.3: a guest whose first minute arrives after it was destroyed is archived from the start', async () => {
  await world.sites.mapCluster(systemActor, 70 + sites, siteId);
  const virtual_machines = [{ id: 1, mac_addresses: [macA] }];
  await world.inventory.applyNotice({ cluster_id: 70 + sites, virtual_machines });
  await record(upload(3, host(macA)));
  const [device] = await world.devices.list(siteId, 10);
  assert.notEqual(device!.archivedAtMs, null);
  assert.deepEqual(await bindings(macA), [`${address} 3-3 archive`]);
  await record(upload(-2, host(macA)));
  assert.equal((await world.devices.list(siteId, 10))[0]!.archivedAtMs, null);
  assert.deepEqual(await bindings(macA), [`${address} -2--2 live`, `${address} 3-3 archive`]);
});

test('NET-3.3: workers with the same new data in different orders, concurrent with archives, never deadlock', async () => {
  await world.sites.mapCluster(systemActor, 170, siteId);
  const other = (await world.sites.create(systemActor, 'Third site')).id;
  const round = async (i: number) => {
    const hosts = [...Array(12)].map((_, k) =>
      host(`00:1b:21:00:${i.toString(16).padStart(2, '0')}:${10 + k}`),
    );
    const one = upload(9, ...hosts);
    const two = { ...upload(8, ...hosts.toReversed()), siteId: other };
    const three = { ...upload(7, ...hosts), siteId: other };
    const virtual_machines = hosts.map(({ deviceKey }, k) => ({
      id: 1 + i * 20 + k,
      mac_addresses: [deviceKey.slice(4)],
    }));
    await Promise.all([
      record(one, two),
      record(three, upload(6, ...hosts.toReversed())),
      world.inventory.applyNotice({ cluster_id: 170, virtual_machines }),
      record(two, one),
    ]);
  };
  for (let i = 0; i < 5; i += 1) await round(i);
  assert.equal((await world.devices.list(siteId, 100)).length, 60);
});

test('NET-2.2.9: a sensor’s data about a server of another node makes no device, no claim, no conflict and no router', async () => {
  const own = await addSensor({ ...world, siteId }, `own-${siteId}`);
  const hostile = await addSensor({ ...world, siteId }, `made-up-${siteId}`);
  await world.sites.mapCluster(systemActor, 9000 + siteId, siteId);
  await world.database.pool.query(
    `insert into vm_placements (cluster_id, vm_id, node, mac, segment, address, is_unique, began_at)
     select $1, 1, $2, $3, 'br0', a, true, '-infinity' from unnest(array[null, $4]::inet[]) a`,
    [9000 + siteId, `own-${siteId}`, macA, address],
  );
  await record({ ...upload(9, host(macA)), sensorId: own });
  const before = await bindings(macA);
  await record(
    // An address of another node with its own MAC, a MAC of another node with its own address, and both on another
    // segment.
    { ...upload(8, host(macB), host(macA, '203.0.113.77'), host(macA, address, 'br9')), sensorId: hostile },
    {
      ...upload(7, host(macB)),
      sensorId: hostile,
      inventory: {
        interfaces: [{ ...hostInterface, mac: macA }],
        neighbours: [{ segment: 'br0', mac: macA, address: '203.0.113.78', isRouter: true }],
      },
    },
    // In one batch with the node's own report.
    { ...upload(2, host(macA)), sensorId: own },
    { ...upload(1, host(macA)), sensorId: hostile },
  );
  assert.deepEqual(await bindings(macA), [before[0]!.replace('9-9', '9-2')]);
  const known = await world.devices.list(siteId, 100);
  assert.deepEqual(
    known.map((device) => [device.mac, device.segment, device.foreignReason]),
    [[macA, 'br0', null]],
  );
  assert.deepEqual(await events(), []);
});

const hostInterface = {
  name: 'eth0',
  index: 1,
  kind: '',
  isUp: true,
  mtu: 1500,
  master: '',
  parent: '',
  vlan: 0,
  addresses: [],
};

test('NET-3.3: one private address on two networks is two addresses with separate owners and no conflict', async () => {
  const shared = '10.0.0.5';
  const link = 'fe80::1';
  const both = (ago: number) => [
    upload(ago, host(macA, shared, 'br7'), host(macA, link, 'br7')),
    upload(ago, host(macB, shared, 'br8'), host(macB, link, 'br8')),
  ];
  await record(...both(9), ...both(8));
  await record(...both(3));
  assert.deepEqual(await events(), []);
  assert.deepEqual(await bindings(macA), [`${shared} 9-3 live`, `${link} 9-3 live`]);
  assert.deepEqual(await bindings(macB), [`${shared} 9-3 live`, `${link} 9-3 live`]);
  assert.deepEqual(await world.devices.listSegments(siteId, shared), ['br7', 'br8']);
  const owners = await world.devices.listOwners(siteId, { address: shared, segment: 'br8' }, 10);
  assert.deepEqual(
    owners.map((owner) => owner.mac),
    [macB],
  );
  // A second owner on one of the networks is a conflict there.
  const third = '00:1b:21:00:00:0c';
  await record(...both(3), upload(3, host(third, shared, 'br7')));
  await record(...both(2), upload(2, host(third, shared, 'br7')));
  assert.deepEqual(await events(), [`ip_conflict_opened ${shared}`]);
  const conflicts = (segment: string) =>
    world.devices.listAddressConflicts(siteId, { address: shared, segment }, 10);
  assert.deepEqual((await conflicts('br7'))[0]!.macs, [macA, third]);
  assert.deepEqual(await conflicts('br8'), []);
  // A public address is the same on all segments.
  await record(upload(2, host(macA, address, 'br7'), host(macB, address, 'br8')));
  await record(upload(1, host(macA, address, 'br7'), host(macB, address, 'br8')));
  assert.deepEqual(await events(), [`ip_conflict_opened ${shared}`, `ip_conflict_opened ${address}`]);
});
