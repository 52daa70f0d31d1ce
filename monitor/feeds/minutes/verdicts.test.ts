import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, beforeEach, test } from 'node:test';
import type { AttackPeriods } from '#monitor/incidents/index.ts';
import { addMinutes, minutesAgo } from '#monitor/testing/facts.ts';
import type { World } from '#monitor/testing/world.ts';
import type { FeedsDeps } from '../index.ts';
import { createFeedWorld, resetFeed, runTick, seriesOf, startOf, target } from '../testing/feed-world.ts';

let world: World;
let sensor: number;
const address = '203.0.113.10';
const epoch = randomUUID();
let periods: AttackPeriods = { attacks: [], unassignable: [] };

before(async () => {
  ({ world, sensor } = await createFeedWorld());
  for (const table of ['detector_minutes', 'detector_addresses'])
    for (const day of [-1, 0, 1, 2])
      await world.database.pool.query(
        `select ensure_fact_partition($1, date_trunc('day', svc_now()) - make_interval(days => $2), interval '1 day')`,
        [table, day],
      );
});
after(() => world[Symbol.asyncDispose]());
beforeEach(async () => {
  await resetFeed(world);
  await world.database.pool.query(
    'truncate minute_verdicts, detector_minutes, detector_addresses, detector_epochs',
  );
  periods = { attacks: [], unassignable: [] };
  world.operations.capabilities = {
    ...world.operations.capabilities,
    ...{ protect_telemetry_reason: true, protect_telemetry_reason_version: 1 },
  };
});

/** Observed minutes with complete reports; `more` changes the report of one. */
async function report(agos: readonly number[], bytes = 600): Promise<void> {
  const { pool } = world.database;
  await addMinutes(
    world,
    sensor,
    agos.map((ago) => ({ minute: minutesAgo(ago), address, rxBytes: bytes, packets: 60 })),
  );
  await pool.query(
    `insert into detector_epochs (sensor_id, id, since, prefixes) values ($1, $2, svc_now() - interval '2 days', '{203.0.113.0/24}')
     on conflict do nothing`,
    [sensor, epoch],
  );
  for (const ago of agos)
    await pool.query(
      `insert into detector_minutes (minute, site_id, sensor_id, capture, ticks, epoch_id, overflowed, incidents_lost,
         merged_frames, lost_packets)
       values (to_timestamp($1), $2, $3, 'uplink0', 60, $4, 0, 0, 0, 0)`,
      [minutesAgo(ago), world.siteId, sensor, epoch],
    );
}

const attackIn = (ago: number, bytes: number, packets: number, capture = 'uplink0') =>
  world.database.pool.query(
    `insert into detector_addresses (minute, site_id, sensor_id, capture, address, is_outbound, one_second, ten_seconds,
       attack_bytes, attack_packets) values (to_timestamp($1), $2, $3, $7, $4, false, '{}', '{}', $5, $6)`,
    [minutesAgo(ago), world.siteId, sensor, address, bytes, packets, capture],
  );

/** A tick of a process of its own; the points that it sent, by how many minutes ago they were. */
async function deliver(): Promise<Map<number, ReturnType<typeof seriesOf>[number]>> {
  world.operations.posted.length = 0;
  await world.database.pool.query('delete from leases');
  const incidents = { readAttackPeriods: async () => periods } as unknown as FeedsDeps['incidents'];
  const { error } = await runTick(world.createFeed({ incidents }));
  assert.equal(error, null);
  return new Map(seriesOf(world, 0).map((point) => [(minutesAgo(0) - startOf(point)) / 60, point]));
}

const range = (from: number, to: number) => Array.from({ length: from - to + 1 }, (_, i) => from - i);
const ago = (count: number) => new Date(minutesAgo(count) * 1000).toISOString();

test('NET-2.4.5, NET-2.4.6: minutes with complete reports have zero attack traffic, and expected traffic after five of them', async () => {
  world.operations.targets = [target(address, { assignedAt: ago(50) })];
  await report(range(40, 2));
  const points = await deliver();
  const first = points.get(40)!;
  assert.deepEqual(
    [first.ddos_bps, first.ddos_pps, first.expected_bps, first.expected_pps],
    [0, 0, null, null],
  );
  assert.deepEqual([points.get(36)!.expected_bps, points.get(35)!.expected_bps], [null, 80]);
  const last = points.get(3)!;
  assert.deepEqual(
    [last.expected_bps, last.expected_pps, last.ddos_bps, 'reason' in last],
    [80, 1, 0, false],
  );
});

test('NET-2.4.6, NET-9.2: a scan in the history changes no expected value, and a receiver that takes it is told which part it was', async () => {
  world.operations.targets = [target(address, { assignedAt: ago(50) })];
  await report(range(40, 2));
  const ownScan = { rxBytes: 3_000_000, txBytes: 1_200_000, packets: 60_000 };
  // Uploads of one minute add.
  await addMinutes(
    world,
    sensor,
    range(12, 10).map((at) => ({ minute: minutesAgo(at), address, ...ownScan, ownScan })),
  );
  const older = await deliver();
  assert.equal('own_scan' in older.get(11)!, false, 'an older receiver would refuse it');
  assert.deepEqual([older.get(11)!.inbound_bps, older.get(5)!.expected_bps], [(3_000_600 * 8) / 60, 80]);
  const known = world.operations.capabilities;
  world.operations.capabilities = {
    ...known,
    ...{ protect_telemetry_own_scan: true, protect_telemetry_own_scan_version: 1 },
  };
  await world.connection.check();
  await world.database.pool.query('delete from feed_cursors');
  const points = await deliver();
  assert.deepEqual(points.get(11)!.own_scan, { inbound_bps: 400_000, outbound_bps: 160_000 });
  assert.equal('own_scan' in points.get(13)!, false, 'no scan, no field');
  assert.deepEqual([points.get(5)!.expected_bps, points.get(5)!.expected_pps], [80, 1]);
  world.operations.capabilities = known;
  await world.connection.check();
});

test('NET-2.4.5, NET-2.4.3: an attack minute has its own amounts, and the sweep sends the same again', async () => {
  world.operations.targets = [target(address, { assignedAt: ago(50) })];
  await report(range(40, 2));
  await attackIn(10, 300, 30);
  const captures = [{ sensorId: sensor, capture: 'uplink0' }];
  periods.attacks.push({
    ...{ incidentId: randomUUID(), address, direction: 'inbound', captures },
    ...{ startedAtMs: minutesAgo(10) * 1000 + 5000, endedAtMs: minutesAgo(10) * 1000 + 50_000 },
  });
  const points = await deliver();
  const attacked = points.get(10)!;
  assert.deepEqual([attacked.ddos_bps, attacked.ddos_pps, attacked.coverage], [40, 0.5, 1]);
  assert.equal(points.get(9)!.ddos_bps, 0);
  // Thirty minutes before one are other ones by now; what was judged stays.
  await report([], 0);
  await world.database.pool.query('update minute_verdicts set is_healthy = false');
  await world.database.pool.query('truncate feed_cursors');
  const again = await deliver();
  for (const [count, point] of again) assert.deepEqual(point, points.get(count), `${count} minutes ago`);
});

test('NET-2.4.3: an attack that another capture saw a packet more of is checked by the capture that counts', async () => {
  world.operations.targets = [target(address, { assignedAt: ago(50) })];
  await report(range(12, 8));
  const bridge = { address, rxBytes: 599, packets: 60, capture: 'br0', role: 'bridge' as const };
  await addMinutes(world, sensor, [
    { minute: minutesAgo(10), ...bridge },
    { minute: minutesAgo(9), ...bridge },
  ]);
  await attackIn(10, 300, 30);
  await attackIn(10, 310, 31, 'br0');
  // Only the bridge counted for this one.
  await attackIn(9, 310, 31, 'br0');
  const captures = ['uplink0', 'br0'].map((capture) => ({ sensorId: sensor, capture }));
  periods.attacks.push({
    ...{ incidentId: randomUUID(), address, direction: 'inbound', captures },
    ...{ startedAtMs: minutesAgo(10) * 1000, endedAtMs: minutesAgo(9) * 1000 + 50_000 },
  });
  const points = await deliver();
  const told = [10, 9].map((count) => points.get(count)!);
  assert.deepEqual(
    told.map((point) => [point.ddos_pps, point.coverage, point.reason]),
    [
      [0.5, 1, undefined],
      [31 / 60, null, 'detector_incomplete'],
    ],
  );
});

test('NET-2.4.5: without a complete report, an epoch or an assignable attack the value is unknown, with its reason', async () => {
  world.operations.targets = [target(address, { assignedAt: ago(50) })];
  await report(range(40, 2));
  const { pool } = world.database;
  const change = (set: string, count: number) =>
    pool.query(`update detector_minutes set ${set} where minute = to_timestamp($1)`, [minutesAgo(count)]);
  await change('ticks = 59', 20);
  await change('overflowed = 1', 19);
  await change('lost_packets = 1', 18);
  await change('incidents_lost = 1', 17);
  await change('epoch_id = null', 16);
  await pool.query('delete from detector_minutes where minute = to_timestamp($1)', [minutesAgo(15)]);
  const captures = [{ sensorId: sensor, capture: 'uplink0' }];
  periods.unassignable.push({
    ...{ incidentId: randomUUID(), kind: 'prefix', target: '203.0.113.0/24', captures },
    ...{ startedAtMs: minutesAgo(14) * 1000, endedAtMs: minutesAgo(14) * 1000 + 30_000 },
  });
  const points = await deliver();
  const told = range(20, 13).map((count) => [points.get(count)!.ddos_bps, points.get(count)!.reason]);
  assert.deepEqual(told, [
    ...Array.from({ length: 4 }, () => [null, 'detector_incomplete']),
    [null, 'no_epoch'],
    [null, 'detector_incomplete'],
    [null, 'unassignable'],
    [0, undefined],
  ]);
  assert.equal(points.get(13)!.coverage, 1);
});

test('NET-2.4.5: a minute in which the epoch began is unknown, the next one is known', async () => {
  world.operations.targets = [target(address, { assignedAt: ago(50) })];
  await report(range(20, 2));
  await world.database.pool.query(
    "update detector_epochs set since = to_timestamp($1) + interval '1 second'",
    [minutesAgo(10)],
  );
  const points = await deliver();
  assert.deepEqual(
    [11, 10, 9].map((count) => [points.get(count)!.ddos_bps, points.get(count)!.reason]),
    [
      [null, 'no_epoch'],
      [null, 'no_epoch'],
      [0, undefined],
    ],
  );
});

test('NET-9.1: a receiver that does not know reasons gets none', async () => {
  const { protect_telemetry_reason: _, ...older } = world.operations.capabilities;
  world.operations.capabilities = older;
  await world.connection.check();
  world.operations.targets = [target(address, { assignedAt: ago(50) })];
  await addMinutes(world, sensor, [{ minute: minutesAgo(5), address, rxBytes: 1 }]);
  const point = (await deliver()).get(5)!;
  assert.deepEqual([point.ddos_bps, 'reason' in point], [null, false]);
  world.operations.capabilities = { ...older, protect_telemetry_reason: true };
  await world.connection.check();
});

test('NET-2.4.6: expected traffic is never made of a previous owner’s minutes, and is there at once after an outage', async () => {
  await report(range(60, 40), 60_000);
  await report(range(39, 2));
  world.operations.targets = [target(address, { assignedAt: ago(39) })];
  const own = await deliver();
  assert.deepEqual([own.get(35)!.expected_bps, own.get(34)!.expected_bps], [null, 80]);
  // Another allocation of the same address, as long as all of it: its newest minutes are judged first.
  world.operations.targets = [target(address, { assignedAt: ago(1000) })];
  await world.database.pool.query('truncate feed_cursors, allocation_targets');
  const whole = await deliver();
  assert.equal(whole.get(3)!.expected_bps, 80);
});

test('a minute that a listening sensor has not delivered in time is not finished, and is sent again when it is', async () => {
  world.operations.targets = [target(address, { assignedAt: ago(50) })];
  await addMinutes(
    world,
    sensor,
    [4, 3].map((one) => ({ minute: minutesAgo(one), address, rxBytes: 60 })),
  );
  const first = await deliver();
  assert.deepEqual(
    [4, 3, 2].map((one) => [first.get(one)!.inbound_bps, first.get(one)!.reason]),
    [
      [8, 'detector_incomplete'],
      [8, 'detector_incomplete'],
      [null, 'not_finished'],
    ],
  );
  assert.equal(first.get(2)!.coverage, 0);
  await addMinutes(world, sensor, [{ minute: minutesAgo(2), address, rxBytes: 120 }]);
  assert.equal((await deliver()).get(2)!.inbound_bps, 16);
});
