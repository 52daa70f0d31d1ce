/** Why charts of the console have no values, and the flags of what happened. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { systemActor } from '#monitor/operators/index.ts';
import { startMonitorServer } from '#monitor/testing/server.ts';
import type { GapRow } from '#monitor/traffic/index.ts';
import { type ChartReason, readRange } from '#service-kit/pages/index.ts';
import { chartReasons } from './chart-around.ts';

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
      gap(minuteOf(11, 30), minuteOf(11, 33), { capture: 'br0' }),
      gap(minuteOf(11, 30), minuteOf(11, 33), { capture: 'eno1' }),
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
    // The minute of the enrolment was observed in part, which is no warning; the next one would be.
    const enrolled = chartReasons({
      ...{ ...known, firstSensorMs: Date.UTC(2026, 10, 21, 11, 20, 40) },
      gaps: [gap(minuteOf(11, 20), minuteOf(11, 20)), gap(minuteOf(11, 22), minuteOf(11, 22))],
    });
    assert.deepEqual(
      enrolled.slice(1, 3).map(({ text, tone }) => `${text}: ${tone}`),
      ['the sensor was just enrolled (hv-1): neutral', 'the sensor did not run (hv-1): undefined'],
    );
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
    `insert into events (kind, site_id, details, occurred_at)
       values ('ip_conflict_opened', $1, '{"address": "192.0.2.9"}', now() - interval '1 minute')`,
    [siteId],
  );
  const { rows } = await database.pool.query<{ id: string }>(
    `insert into sites (name) values ('other') returning id`,
  );
  await database.pool.query(
    `insert into events (kind, site_id, details, occurred_at)
       values ('ip_conflict_opened', $1, '{"address": "192.0.2.9"}', now() - interval '1 minute')`,
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
  assert.deepEqual(await flagsOf(`/sites/${siteId}/applications.json`), [conflict]);
  assert.deepEqual(await flagsOf(`/sites/${siteId}/live.json`), [conflict]);
  assert.deepEqual(await flagsOf(`/sites/${siteId}/live.json?chart=uplink`), [conflict]);
  assert.deepEqual(await flagsOf(`/sites/${siteId}/live.json?address=192.0.2.10`), []);
  assert.deepEqual(await flagsOf(`/sites/${siteId}/addresses/192.0.2.9/chart.json`), [conflict]);
  assert.deepEqual(await flagsOf(`/sites/${siteId}/addresses/192.0.2.10/chart.json`), []);
  const page = (await viewer.get(`/sites/${siteId}/traffic`)).text;
  assert.match(page, /What happened \(1\)/);
});

test('a server that came, moved, was switched off or went, and a drill, are flags that lead to what happened', async () => {
  await using server = await startMonitorServer();
  const { siteId, database, monitor } = server;
  const rows = (text: string, values: unknown[] = []) => database.pool.query(text, values);
  await monitor.sites.mapCluster(systemActor, 7, siteId);
  await rows(
    `insert into inventory_vms (cluster_id, vm_id, node, name, state, updated_at, first_seen_at, retired_at) values
       (7, 1, 'hv-2', 'old', 'running', now(), now() - interval '9 days', null),
       (7, 2, 'hv-1', 'new', 'running', now(), now() - interval '50 minutes', null),
       (7, 3, 'hv-1', 'former', 'stopped', now(), now() - interval '9 days', now() - interval '20 minutes')`,
  );
  // The listings that named the old and the new node: the times of both rows overlap.
  await rows(
    `insert into vm_placements (cluster_id, vm_id, node, mac, segment, address, is_unique, began_at, ended_at)
     select 7, p.vm, p.node, '02:00:00:00:00:0' || p.vm, 'br0', a.address, true, p.began_at, p.ended_at
     from (values (1, 'hv-1', '-infinity'::timestamptz, now() - interval '30 minutes'), (1, 'hv-2', now() - interval '40 minutes', null),
       (2, 'hv-1', '-infinity', null), (3, 'hv-1', '-infinity', now() - interval '20 minutes')) p(vm, node, began_at, ended_at),
       lateral (values (null::inet), ('192.0.2.1'::inet + (p.vm - 1))) a(address)`,
  );
  await rows(
    `insert into events (kind, site_id, details, occurred_at) values ('server_state_changed', $1,
       '{"server": "new", "before": "running", "after": "stopped", "addresses": ["192.0.2.2"]}', now() - interval '10 minutes')`,
    [siteId],
  );
  const viewer = await server.signIn('viewer');
  type Flag = { text: string; href: string };
  const flagsOf = async (path: string) => {
    const { status, text } = await viewer.get(path);
    assert.equal(status, 200, text.slice(0, 300));
    return (JSON.parse(text) as { flags: Flag[] }).flags.map((one) => [one.text, one.href]);
  };
  const at = (address: string) => `/sites/${siteId}/addresses/${address}`;
  const deployed = ['new was deployed on hv-1', at('192.0.2.2')];
  const moved = ['old moved from hv-1 to hv-2', at('192.0.2.1')];
  const gone = ['former was destroyed', at('192.0.2.3')];
  const stopped = ['new is stopped, was running', `/sites/${siteId}/events?kind=server_state_changed`];
  assert.deepEqual(await flagsOf(`/sites/${siteId}/traffic.json`), [deployed, moved, gone, stopped]);
  assert.deepEqual(await flagsOf(`/sites/${siteId}/explore.json`), [deployed, moved, gone, stopped]);
  assert.deepEqual(await flagsOf(`${at('192.0.2.1')}/chart.json`), [moved]);
  assert.deepEqual(await flagsOf(`/sites/${siteId}/explore.json?q=server:new`), [deployed, stopped]);
  assert.deepEqual(await flagsOf(`/sites/${siteId}/explore.json?q=address:192.0.2.1`), [moved]);
  const other = await monitor.sites.create(systemActor, 'Other');
  assert.deepEqual(await flagsOf(`/sites/${other.id}/traffic.json`), [], 'nothing of another site');
});

test('what operations told of a server is a flag of its site, its addresses and its device, those of a minute one', async () => {
  await using server = await startMonitorServer();
  const { siteId, database, monitor } = server;
  const rows = (text: string, values: unknown[] = []) => database.pool.query(text, values);
  await monitor.sites.mapCluster(systemActor, 7, siteId);
  const other = await monitor.sites.create(systemActor, 'Other');
  await monitor.sites.mapCluster(systemActor, 8, other.id);
  await rows(
    `insert into inventory_vms (cluster_id, vm_id, node, name, state, updated_at, first_seen_at) values
       (7, 1, 'hv-1', 'web-1', 'running', now(), now() - interval '9 days'),
       (7, 2, 'hv-1', 'web-2', 'running', now(), now() - interval '9 days'),
       (8, 3, 'hv-9', 'elsewhere', 'running', now(), now() - interval '9 days')`,
  );
  // 192.0.2.1 was of web-2 until half an hour ago, and is of web-1 since.
  await rows(
    `insert into vm_placements (cluster_id, vm_id, node, mac, segment, address, is_unique, began_at, ended_at) values
       (7, 1, 'hv-1', '02:00:00:00:00:01', 'br0', '192.0.2.1', true, now() - interval '30 minutes', null),
       (7, 1, 'hv-1', '02:00:00:00:00:01', 'br0', '2001:db8::1', true, '-infinity', null),
       (7, 2, 'hv-1', '02:00:00:00:00:02', 'br0', '192.0.2.1', true, '-infinity', now() - interval '30 minutes'),
       (7, 2, 'hv-1', '02:00:00:00:00:02', 'br0', '192.0.2.2', true, '-infinity', null),
       (8, 3, 'hv-9', '02:00:00:00:00:03', 'br0', '192.0.2.1', true, '-infinity', null)`,
  );
  // Of one look at the clock: three changes of one minute must not fall into two.
  const minuteMs = Math.floor(Date.now() / 60_000) * 60_000;
  const told = (cluster: number, vm: number, kind: string, minutesAgo: number, seconds = 0) =>
    rows(
      `insert into vm_changes (id, cluster_id, vm_id, kind, occurred_at) values (gen_random_uuid(), $1, $2, $3, $4)`,
      [cluster, vm, kind, new Date(minuteMs - minutesAgo * 60_000 + seconds * 1_000)],
    );
  await told(7, 2, 'network_attached', 45);
  await told(7, 2, 'network_detached', 40);
  for (const seconds of [1, 30, 59]) await told(7, 1, 'firewall', 20, seconds);
  await told(7, 1, 'rebooted', 20, 30);
  await told(7, 1, 'firewall', 18);
  await told(7, 2, 'reset', 10);
  await told(7, 9, 'reset', 5);
  await told(8, 3, 'firewall', 15);
  const { rows: devices } = await rows(
    `with device as (
       insert into devices (site_id, segment, mac, first_seen_at, last_seen_at)
       values ($1, 'br0', '02:00:00:00:00:01', now() - interval '9 days', now()) returning id)
     insert into ip_bindings (site_id, device_id, mac, address, first_seen_at, last_seen_at)
     select $1, id, '02:00:00:00:00:01', '2001:db8::1', now() - interval '9 days', now() from device returning device_id as id`,
    [siteId],
  );
  const viewer = await server.signIn('viewer');
  type Flag = { text: string; href: string };
  const flagsOf = async (path: string) => {
    const { status, text } = await viewer.get(path);
    assert.equal(status, 200, text.slice(0, 300));
    return (JSON.parse(text) as { flags: Flag[] }).flags.map((one) => [one.text, one.href]);
  };
  const at = (address: string, site = siteId) => `/sites/${site}/addresses/${encodeURIComponent(address)}`;
  const before = [
    ['web-2: attached to a private network', at('192.0.2.1')],
    ['web-2: detached from a private network', at('192.0.2.1')],
  ];
  const since = [
    ['web-1: firewall changed, 3 times', at('192.0.2.1')],
    ['web-1: rebooted', at('192.0.2.1')],
    ['web-1: firewall changed', at('192.0.2.1')],
  ];
  const last = ['web-2: reset', at('192.0.2.2')];
  const unlisted = ['VM 9: reset', '/search?q=VM+9'];
  assert.deepEqual(await flagsOf(`/sites/${siteId}/traffic.json`), [...before, ...since, last, unlisted]);
  assert.deepEqual(await flagsOf(`/sites/${siteId}/explore.json`), [...before, ...since, last, unlisted]);
  assert.deepEqual(await flagsOf(`${at('192.0.2.1')}/chart.json`), [...before, ...since]);
  assert.deepEqual(
    await flagsOf(`/sites/${siteId}/devices/${devices[0].id}/wan.json`),
    since.map(([text]) => [text, at('2001:db8::1')]),
  );
  const ofOther = ['elsewhere: firewall changed', at('192.0.2.1', other.id)];
  assert.deepEqual(await flagsOf(`/sites/${other.id}/traffic.json`), [ofOther]);
  assert.deepEqual(await flagsOf(`${at('192.0.2.1', other.id)}/chart.json`), [ofOther]);
  assert.deepEqual(await flagsOf(`${at('192.0.2.3')}/chart.json`), []);
});
