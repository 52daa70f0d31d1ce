import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { before, test } from 'node:test';
import type { TelemetryGap, TelemetryMinute } from '#contracts/sensor-api/telemetry.ts';
import { openScope } from '#monitor/facts/index.ts';
import { captureMinute, createMonitorWorld, createSpool, type MonitorWorld } from '#monitor/testing/index.ts';

let first: number;
before(() => {
  first = Math.floor(Date.now() / 60_000) * 60 - 3600;
});

const at = (index: number) => first + index * 60;
const downGap = (from: number, to: number, capture = ''): TelemetryGap => ({
  ...{ fromMinute: at(from), toMinute: at(to), capture, reason: 'sensor_down' },
});
const minute = (index: number, capture = 'uplink0', observedMs = 60_000): TelemetryMinute => ({
  ...captureMinute({ minute: at(index) }),
  capture,
  observedMs,
});

/** A site's gaps, oldest first. */
async function gapsOf(world: MonitorWorld): Promise<string[]> {
  const gaps = await world.facts.listGaps(
    { siteId: world.siteId, fromMinute: at(-10), toMinute: at(100) },
    100,
  );
  const index = (minute: number) => (minute - first) / 60;
  return gaps
    .map((gap) => `${index(gap.fromMinute)}-${index(gap.toMinute)} ${gap.capture || 'all'} ${gap.reason}`)
    .sort();
}

/** Each list is one batch of uploads. */
async function send(
  world: MonitorWorld,
  spool: ReturnType<typeof createSpool>,
  ...batches: [TelemetryMinute[], TelemetryGap[]][][]
): Promise<void> {
  for (const batch of batches) {
    for (const [minutes, gaps] of batch) await world.send(spool.upload(minutes, gaps));
    await world.inbox.drain();
  }
}

const ways = [
  ['in batches of their own', false],
  ['in one batch', true],
] as const;

for (const [name, isOneBatch] of ways)
  test(`NET-2.4.2: minutes that are observed whole are removed from a gap that a wrong clock stamped, and the rest of it stays; ${name}`, async () => {
    await using world = await createMonitorWorld();
    const spool = createSpool();
    const told: [TelemetryMinute[], TelemetryGap[]][] = [
      [[minute(0), minute(0, 'br0')], []],
      [[], [downGap(1, 9)]],
      [[minute(3), minute(3, 'br0')], []],
      [[minute(4), minute(4, 'br0')], []],
      [[minute(7)], [{ ...downGap(7, 7, 'br0'), reason: 'capture_failed' }]],
      [[minute(8, 'uplink0', 30_000), minute(8, 'br0')], [downGap(8, 8, 'uplink0')]],
    ];
    await send(world, spool, ...(isOneBatch ? [told] : told.map((one) => [one])));
    assert.deepEqual(await gapsOf(world), [
      '1-2 all sensor_down',
      '5-6 all sensor_down',
      '7-7 br0 capture_failed',
      '7-7 br0 sensor_down',
      '8-8 uplink0 sensor_down',
      '9-9 all sensor_down',
    ]);
  });

for (const [name, isOneBatch] of ways)
  test(`NET-2.4.2: what is not one whole minute removes nothing: parts, a second upload of a minute, a minute that a gap beside it names; ${name}`, async () => {
    await using world = await createMonitorWorld();
    const doubled: TelemetryGap = { ...downGap(3, 3), reason: 'clock_step' };
    const told: [TelemetryMinute[], TelemetryGap[]][] = [
      [[minute(1, 'uplink0', 20_000)], [downGap(1, 1, 'uplink0')]],
      [[], [downGap(2, 4), { ...downGap(5, 5), reason: 'refused' }]],
      [[minute(1)], []],
      [[minute(2, 'uplink0', 59_999)], []],
      [[minute(3)], [doubled]],
      [[minute(3)], []],
      [[minute(4)], [downGap(4, 4, 'uplink0')]],
      [[minute(5)], []],
    ];
    await send(world, createSpool(), ...(isOneBatch ? [told] : told.map((one) => [one])));
    assert.deepEqual(await gapsOf(world), [
      '1-1 uplink0 sensor_down',
      '2-4 all sensor_down',
      '3-3 all clock_step',
      '4-4 uplink0 sensor_down',
      '5-5 all refused',
    ]);
  });

test('NET-2.4.2: the parts of a minute in which a sensor was restarted are one minute without the seconds between, and one gap', async () => {
  await using world = await createMonitorWorld();
  const address = '192.0.2.10';
  const host = { address, isLocal: true, rxBytes: 700, txBytes: 40, packets: 3, deviceKey: '' };
  const parts = [10_000, 48_000].map((observedMs): [TelemetryMinute[], TelemetryGap[]] => [
    [{ ...minute(1, 'uplink0', observedMs), hosts: [host] }],
    [downGap(1, 1, 'uplink0')],
  ]);
  const spool = createSpool();
  for (const part of parts) await send(world, spool, [part]);
  const [seen] = await world.traffic.readAddressMinutes(world.siteId, address, at(1), at(2));
  assert.ok(seen && !seen.isGap);
  assert.deepEqual(
    [seen.rxBytes, seen.txBytes, seen.coverage, seen.loss],
    [1400, 80, 58 / 60, 'sensor_down'],
  );
  assert.deepEqual(await gapsOf(world), ['1-1 uplink0 sensor_down']);
});

test('the rest of a gap keeps the time at which it was recorded', async () => {
  await using world = await createMonitorWorld();
  const spool = createSpool();
  await send(world, spool, [[[], [downGap(1, 3)]]]);
  await world.rows("update telemetry_gaps set recorded_at = '2026-01-01 00:00Z'");
  await send(world, spool, [[[minute(2)], []]]);
  const left = await world.rows(
    "select count(*)::int as gaps from telemetry_gaps where recorded_at = '2026-01-01 00:00Z'",
  );
  assert.deepEqual(
    [left, await gapsOf(world)],
    [[{ gaps: 2 }], ['1-1 all sensor_down', '3-3 all sensor_down']],
  );
});

test('a gap of one sensor is not trimmed by what another one observed', async () => {
  await using world = await createMonitorWorld();
  const other = await world.enrol('node-2');
  await send(world, createSpool(), [[[], [downGap(1, 4)]]]);
  const uploads = [world.sensor, other].map(({ id: sensorId }, i) => ({
    ...{ origin: { siteId: world.siteId, sensorId }, token: { spoolId: randomUUID(), sequence: 1 } },
    ...{ minutes: [minute(2 + i)], gaps: [] },
  }));
  await world.facts.prepare([at(2), at(3)]);
  await world.database.db.transaction().execute((trx) => world.facts.append(uploads, openScope(trx)));
  assert.deepEqual(await gapsOf(world), ['1-1 all sensor_down', '3-4 all sensor_down']);
});
