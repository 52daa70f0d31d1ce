import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import type { TelemetryUpload } from '#contracts/sensor-api/telemetry-codec.ts';
import {
  captureMinute,
  createMonitorWorld,
  createSpool,
  host,
  type MonitorWorld,
  testMinute,
} from '#monitor/testing/index.ts';

const states = (world: MonitorWorld) =>
  world.rows<{ state: string; attempts: number }>('select state, attempts from inbox_uploads order by id');

const noMinutes: TelemetryUpload['minutes'] = [];
const gapTo = (toMinute: number) => ({
  fromMinute: testMinute,
  toMinute,
  capture: '',
  reason: 'clock_step' as const,
});
const year9999 = Date.UTC(9999, 11, 31) / 1000;
/** As if the sensor had just told the time of its clock. */
const tellClock = (world: MonitorWorld, aheadMs: number) =>
  world.sensors.noteCondition(world.sensor.id, {
    observedAtMs: Date.now() + aheadMs,
    spoolPendingBytes: 0,
    spoolBytesMax: 1,
    spoolPendingUploads: 0,
    diskFreeBytes: 1,
    diskBytes: 1,
    isPaused: false,
  });

test('NET-7.1: minutes, gaps and probes more than 5 min ahead are clock_ahead, never thrown away, and nothing of them is stored', async () => {
  await using world = await createMonitorWorld();
  const spool = createSpool();
  const nextMinute = Math.ceil(Date.now() / 60_000) * 60;
  const probe = { probe: 1, firstSentMs: 0, sent: 1, lost: 1, rtt: null, failure: 'timeout' as const };
  const ahead: TelemetryUpload[] = [
    spool.upload([captureMinute({ minute: nextMinute + 360 })]),
    spool.upload([captureMinute({ minute: nextMinute + 7200 })]),
    spool.upload([captureMinute({ minute: year9999 })]),
    spool.upload(noMinutes, [gapTo(nextMinute + 360)]),
    spool.upload([captureMinute()], [gapTo(year9999)]),
    { ...spool.upload(noMinutes), probes: [{ ...probe, minute: nextMinute + 360 }] },
  ];
  for (const upload of ahead) await assert.rejects(world.send(upload), { code: 'telemetry.clock_ahead' });
  assert.deepEqual(await states(world), []);
  const [refusal] = await world.rows<{ code: string }>('select code from sensor_refusals');
  assert.equal(refusal?.code, 'telemetry.clock_ahead');
  assert.equal(await world.send(spool.upload([captureMinute({ minute: nextMinute + 120 })])), 'accepted');
  assert.equal(await world.send(spool.upload(noMinutes, [gapTo(nextMinute + 120)])), 'accepted');
  // The sensor's clock is still ahead: what it can't know yet stays with it.
  await tellClock(world, 7_200_000);
  for (const upload of ahead) await assert.rejects(world.send(upload), { code: 'telemetry.clock_ahead' });
});

test('an older sensor whose clock was set right is not blocked by what it said of the future', async () => {
  await using world = await createMonitorWorld();
  const spool = createSpool();
  const nextMinute = Math.ceil(Date.now() / 60_000) * 60;
  const gap = spool.upload(noMinutes, [gapTo(year9999), { ...gapTo(year9999), fromMinute: year9999 }]);
  const far = spool.upload([captureMinute({ minute: nextMinute + 7200 })]);
  const near = spool.upload([captureMinute({ minute: nextMinute + 1800 })]);
  await assert.rejects(world.send(gap), { code: 'telemetry.clock_ahead' });
  await tellClock(world, 1000);
  assert.equal(await world.send(gap), 'accepted');
  await assert.rejects(world.send(far), {
    code: 'telemetry.refused',
    message: /in the future; set the clock/,
  });
  await assert.rejects(world.send(near), { code: 'telemetry.clock_ahead' }, 'its time comes within the hour');
  await world.inbox.drain();
  const gaps = await world.rows<{ ahead: boolean }>(
    "select to_minute > svc_now() + interval '5 minutes' as ahead from telemetry_gaps",
  );
  assert.deepEqual(gaps, [{ ahead: false }], 'a gap never reaches into the future');
});

test('a gap of the future that an earlier version stored ends where it was recorded', async () => {
  await using world = await createMonitorWorld();
  const gap = "(site_id, sensor_id, capture, from_minute, to_minute, reason, recorded_at) values ($1, $2, ''";
  const ids = [world.siteId, world.sensor.id];
  for (const times of [
    "'2026-01-01 00:00Z', '9999-12-31 00:00Z', 'clock_step', '2026-01-01 00:07:30Z'",
    "'2036-01-01 00:00Z', '2036-01-01 00:00Z', 'refused', '2026-01-01 00:07:30Z'",
    "'2025-12-31 00:00Z', '2025-12-31 09:00Z', 'sensor_down', '2026-01-01 00:07:30Z'",
  ])
    await world.rows(`insert into telemetry_gaps ${gap}, ${times})`, ids);
  const sql = readFileSync(new URL('../migrations/0110-bound-times-ahead.sql', import.meta.url), 'utf8');
  for (const statement of sql.split(';').filter((one) => /telemetry_gaps/.test(one)))
    await world.rows(statement);
  const left = await world.rows<{ reason: string; until: string }>(
    "select reason, to_char(to_minute at time zone 'UTC', 'YYYY-MM-DD HH24:MI') as until from telemetry_gaps order by 1",
  );
  assert.deepEqual(left, [
    { reason: 'clock_step', until: '2026-01-01 00:07' },
    { reason: 'sensor_down', until: '2025-12-31 09:00' },
  ]);
});

test('a sensor up to 5 min ahead never puts the newest minute of its site into the future', async () => {
  await using world = await createMonitorWorld();
  const thisMinute = Math.floor(Date.now() / 60_000) * 60;
  const minutes = [thisMinute - 60, thisMinute + 240].map((minute) =>
    captureMinute({ minute, hosts: [host('192.0.2.10', 5, 6)] }),
  );
  const spool = createSpool();
  await world.apply(...minutes.map((minute) => spool.upload([minute])));
  const newest = (await world.traffic.newestMinutes()).get(world.siteId)!;
  assert.ok(newest <= Date.now(), 'of the site');
  const [capture] = await world.traffic.listCaptures(world.siteId);
  assert.ok(capture!.newestMinute! * 1000 <= Date.now(), 'of the capture');
  const [sensor] = await world.sensors.list(world.siteId);
  assert.ok(sensor!.newestMinuteMs! <= Date.now(), 'of the sensor');
});
