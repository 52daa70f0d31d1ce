/** Why charts of the console have no values, and the flags of what happened. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { startMonitorServer } from '#monitor/testing/server.ts';
import type { GapRow } from '#monitor/traffic/index.ts';
import { type ChartReason, readRange } from '#service-kit/pages/index.ts';
import { chartReasons } from './chart-reasons.ts';

const nowMs = Date.UTC(2026, 10, 21, 12, 0, 20);
const range = readRange({ range: '1h' }, nowMs);
const minuteOf = (hour: number, minute: number) => Date.UTC(2026, 10, 21, hour, minute) / 1000;

const gap = (from: number, to: number, more: Partial<GapRow> = {}): GapRow => ({
  sensorId: 1,
  hostName: 'hv-1',
  capture: '',
  fromMinute: from,
  toMinute: to,
  reason: 'sensor_down',
  ...more,
});

const told = (reasons: readonly ChartReason[]) =>
  reasons.map(
    ({ fromMs, toMs, text }) =>
      `${new Date(fromMs).toISOString().slice(11, 19)} ${new Date(toMs).toISOString().slice(11, 19)} ${text}`,
  );

describe('reasons', () => {
  const known = { range, firstSensorMs: 0, nowMs };

  test('gaps of one reason and host that touch are one stretch, cut to the range', () => {
    const gaps = [
      gap(minuteOf(11, 30), minuteOf(11, 34)),
      gap(minuteOf(11, 35), minuteOf(11, 35)),
      gap(minuteOf(9, 0), minuteOf(11, 5)),
      gap(minuteOf(11, 31), minuteOf(11, 31), { capture: 'eno1', reason: 'capture_failed' }),
    ];
    assert.deepEqual(told(chartReasons({ ...known, gaps })), [
      '11:01:00 11:06:00 the sensor did not run (hv-1)',
      '11:30:00 11:36:00 the sensor did not run (hv-1)',
      '11:31:00 11:32:00 the capture did not run (hv-1, eno1)',
      '11:58:00 12:00:20 minute in progress',
      '12:00:20 12:01:00 not yet',
    ]);
  });

  test('the time before the first sensor, and of facts that are kept no longer, is in order', () => {
    const first = chartReasons({ ...known, gaps: [], firstSensorMs: Date.UTC(2026, 10, 21, 11, 20, 40) });
    assert.equal(told(first)[0], '11:01:00 11:20:00 before the first sensor was enrolled');
    assert.ok(first.every(({ tone }) => tone === 'neutral'));
    const none = chartReasons({ ...known, gaps: [], firstSensorMs: null });
    assert.equal(none[0]?.text, 'no sensor is enrolled');
    const long = readRange({ range: 'custom', from: '2026-07-01T00:00Z', to: '2026-11-21T00:00Z' }, nowMs);
    assert.equal(chartReasons({ ...known, range: long, gaps: [] })[0]?.text, 'kept no longer');
  });
});

test('charts of a site and of an address have flags of what happened to them, and no others', async () => {
  await using server = await startMonitorServer();
  const { siteId, database } = server;
  await database.pool.query(
    `insert into events (kind, site_id, details) values ('ip_conflict_opened', $1, '{"address": "192.0.2.9"}')`,
    [siteId],
  );
  const { rows } = await database.pool.query<{ id: string }>(
    `insert into sites (name) values ('other') returning id`,
  );
  await database.pool.query(
    `insert into events (kind, site_id, details) values ('ip_conflict_opened', $1, '{"address": "192.0.2.9"}')`,
    [rows[0]?.id],
  );
  const viewer = await server.signIn('viewer');
  type Flag = { text: string; href: string };
  const flagsOf = async (path: string) =>
    (JSON.parse((await viewer.get(path)).text) as { flags: Flag[] }).flags.map(({ text, href }) => [
      text,
      href,
    ]);
  const conflict = ['Address in conflict: 192.0.2.9', `/sites/${siteId}/events?kind=ip_conflict_opened`];
  assert.deepEqual(await flagsOf(`/sites/${siteId}/traffic.json`), [conflict]);
  assert.deepEqual(await flagsOf(`/sites/${siteId}/addresses/192.0.2.9/chart.json`), [conflict]);
  assert.deepEqual(await flagsOf(`/sites/${siteId}/addresses/192.0.2.10/chart.json`), []);
  const page = (await viewer.get(`/sites/${siteId}/traffic`)).text;
  assert.match(page, /What happened \(1\)/);
});
