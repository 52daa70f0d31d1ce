import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { systemActor } from '#monitor/operators/index.ts';
import { addMinutes, addSensor, minutesAgo } from '#monitor/testing/facts.ts';
import { createWorld, type World } from '#monitor/testing/world.ts';

let world: World;
const sensors = new Map<string, number>();
const address = '203.0.113.10';

before(async () => {
  world = await createWorld();
  for (const node of ['node-1', 'node-2', 'made-up']) sensors.set(node, await addSensor(world, node));
});
after(() => world[Symbol.asyncDispose]());
beforeEach(async () => {
  world.operations.posted.length = 0;
  world.operations.targets = [
    {
      id: 1,
      billing_account_id: 1,
      virtual_machine_id: 42,
      cluster_id: 7,
      address,
      assigned_at: new Date(minutesAgo(600) * 1000).toISOString(),
    },
  ];
  await world.database.pool.query(
    'truncate feed_cursors, allocation_targets, feed_states, leases, host_minutes, application_facts, capture_minutes, vm_placements, inventory_vms, inventory_interfaces',
  );
});

async function importOn(node: string | null): Promise<void> {
  world.operations.vms = [
    {
      id: 42,
      cluster_id: 7,
      node,
      name: 'web',
      state: 'running',
      updated_at: new Date().toISOString(),
      interfaces: [
        { id: 1, mac_address: '02:00:00:00:00:2a', bridge: 'br0', vlan: null, addresses: [address] },
      ],
    },
  ];
  assert.deepEqual(await world.inventory.syncNow(systemActor), { outcome: 'imported' });
  // As if it were still the minute in which the test began, of which `minutesAgo` speaks.
  const late = Math.floor(Date.now() / 60_000) - minutesAgo(0) / 60;
  await world.database.pool.query(
    `update vm_placements set ended_at = ended_at - $1 * interval '1 minute' where ended_at > svc_now() - interval '30 seconds'`,
    [late],
  );
  await world.database.pool.query(
    `update inventory_state set listed_at = listed_at - $1 * interval '1 minute'`,
    [late],
  );
}

/** Moves what the inventory knows back in time, as if it had been imported so much earlier. */
async function age(minutes: number): Promise<void> {
  await world.database.pool.query(
    `update vm_placements set began_at = began_at - $1 * interval '1 minute', ended_at = ended_at - $1 * interval '1 minute'`,
    [minutes],
  );
  await world.database.pool.query(
    `update inventory_state set listed_at = listed_at - $1 * interval '1 minute'`,
    [minutes],
  );
}

const say = (node: string, ago: number, bytes: number, usage = false) =>
  addMinutes(world, sensors.get(node)!, [
    {
      minute: minutesAgo(ago),
      address,
      rxBytes: bytes,
      packets: 1,
      capture: node,
      ...(usage ? { usage: [{ clientBytes: bytes, serverBytes: bytes, name: 'made-up.example' }] } : {}),
    },
  ]);
/** That the capture listened and saw another address. */
const listen = (node: string, ago: number) =>
  addMinutes(world, sensors.get(node)!, [
    { minute: minutesAgo(ago), address: '203.0.113.99', rxBytes: 1, packets: 1, capture: node },
  ]);

/** Bytes to the address by minutes ago, as operations got them. */
async function delivered(): Promise<Record<number, number>> {
  world.operations.posted.length = 0;
  await world.database.pool.query('truncate feed_cursors, allocation_targets, feed_states, leases');
  await world.createFeed().runOnce();
  const series = world.operations.posted.flatMap((request) => request.targets.flatMap((one) => one.series));
  return Object.fromEntries(
    series.map((point) => [
      (minutesAgo(0) - Date.parse(point.timestamp) / 1000) / 60,
      Math.round((point.inbound_bps! * 60) / 8),
    ]),
  );
}

test('NET-2.4.2: a sensor of another node never speaks for a server, however much it says', async () => {
  await importOn('node-1');
  await say('node-1', 3, 1000, true);
  await say('made-up', 3, 8e12, true);
  await say('made-up', 2, 8e12, true);
  await say('node-2', 2, 9e12, true);
  assert.deepEqual(await delivered(), { 3: 1000 });
  const applications = world.operations.posted.flatMap((request) =>
    request.targets.flatMap((one) => one.series.flatMap((point) => point.applications)),
  );
  assert.deepEqual(
    applications.map((one) => one.inbound_bytes),
    [1000],
  );
  const range = { siteId: world.siteId, fromMinute: minutesAgo(10), toMinute: minutesAgo(0), sensorId: null };
  const foreign = await world.facts.listForeign(range, 10);
  assert.deepEqual(
    foreign.map((one) => [one.sensorId, one.address, one.minutes, one.rxBytes]),
    [
      [sensors.get('made-up'), address, 2, 16e12],
      [sensors.get('node-2'), address, 1, 9e12],
    ],
  );
});

test('NET-2.4.2: what came before the first import counts from the server’s own node alone', async () => {
  await say('node-1', 3, 1000);
  await say('made-up', 3, 8e12);
  await importOn('node-1');
  assert.deepEqual(await delivered(), { 3: 1000 });
});

test('NET-2.4.2: while a server moves both nodes speak, each for its minutes', async () => {
  await importOn('node-1');
  await age(10);
  await importOn('node-1');
  await age(4);
  // It moves some time between the listing 4 minutes ago and the one of now.
  await say('node-1', 6, 100);
  await say('node-2', 6, 999);
  await say('node-1', 4, 200);
  await say('node-2', 3, 300);
  await say('node-2', 2, 400);
  assert.deepEqual(await delivered(), { 4: 200, 6: 100 });
  await importOn('node-2');
  assert.deepEqual(await delivered(), { 2: 400, 3: 300, 4: 200, 6: 100 });
});

test('NET-2.4.2: after a migration the old node says nothing of silence', async () => {
  await importOn('node-1');
  await age(10);
  await importOn('node-1');
  await age(8);
  await say('node-1', 9, 100);
  for (const ago of [7, 6, 5, 4, 3, 2]) await listen('node-1', ago);
  await importOn('node-2');
  await age(5);
  await importOn('node-2');
  // Its place is unknown between the listings of 13 and of 5 minutes ago; then it was on another node.
  assert.deepEqual(await delivered(), { 9: 100 });
});

test('NET-2.4.2: a silent minute is a zero once a listing that came after it still has the server there', async () => {
  await importOn('node-1');
  await age(5);
  await importOn('node-1');
  await age(3);
  await say('node-1', 6, 100);
  for (const ago of [5, 4, 3, 2]) await listen('node-1', ago);
  assert.deepEqual(await delivered(), { 4: 0, 5: 0, 6: 100 });
  await importOn('node-1');
  assert.deepEqual(await delivered(), { 2: 0, 3: 0, 4: 0, 5: 0, 6: 100 });
});

test('NET-2.4.2: without a node in the inventory, and for addresses of no server, every sensor of the site speaks', async () => {
  await say('made-up', 3, 500);
  assert.deepEqual(await delivered(), { 3: 500 });
  await importOn(null);
  assert.deepEqual(await delivered(), { 3: 500 });
});
