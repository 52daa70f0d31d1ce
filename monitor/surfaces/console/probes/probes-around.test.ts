/** Why charts of probes have no round trip, and the flags of what happened to probes. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemActor } from '#monitor/operators/index.ts';
import type { HistoryStep, ProbeState } from '#monitor/probes/index.ts';
import { startMonitorServer } from '#monitor/testing/server.ts';
import type { GapRow } from '#monitor/traffic/index.ts';
import type { StoredEntry } from '#service-kit/audit/index.ts';
import { type ChartReason, readRange } from '#service-kit/pages/index.ts';
import { chartReasons } from '../parts/chart-around.ts';
import { measuredAt } from './availability-parts.ts';
import { ofSensors, type ProbeReasonInput, probeReasons } from './probe.page.ts';

const nowMs = Date.UTC(2026, 10, 21, 12, 0, 20);
const range = readRange({ range: '1h' }, nowMs);
const at = (hour: number, minute: number) => Date.UTC(2026, 10, 21, hour, minute);

const gateway: ProbeState = {
  ...{ id: 7, siteId: 1, name: 'Gateway', kind: 'icmp', target: '192.0.2.1', port: null, question: null },
  ...{ intervalSeconds: 10, timeoutMs: 2000, isEnabled: true, addedAtMs: at(9, 0) },
  ...{ newestMinuteMs: null, newestSent: null, newestLost: null, newestFailure: null },
};

const measured = (minute: number, lost: number): HistoryStep => ({
  ...{ startMs: at(11, minute), minutesUp: lost < 6 ? 1 : 0, minutesKnown: 1, sent: 6, lost },
  ...{ rttMinUs: null, rttUs: null, rttMaxUs: null },
});

/** A change as the audit trail has it: only members that differ. */
const changed = (atMs: number, before: object, after: object, probeId = 7) =>
  ({
    ...{ operation: 'probe.change', subjectKind: 'probe', subjectId: String(probeId), occurredAtMs: atMs },
    ...{ before, after },
  }) as StoredEntry;
const paused = (atMs: number, probeId?: number) =>
  changed(atMs, { isEnabled: true }, { isEnabled: false }, probeId);
const resumed = (atMs: number) => changed(atMs, { isEnabled: false }, { isEnabled: true });

const told = (reasons: readonly ChartReason[]) =>
  reasons.map(
    ({ fromMs, toMs, text, tone }) =>
      `${new Date(fromMs).toISOString().slice(11, 16)} ${new Date(toMs).toISOString().slice(11, 16)} ${text}: ${tone}`,
  );
const reasonsOf = (probe: ProbeState, history: HistoryStep[], more: Partial<ProbeReasonInput> = {}) =>
  told(
    probeReasons({
      ...{ drawn: [{ probe, history }], changes: [], changesSinceMs: range.fromMs, range, nowMs },
      ...more,
    }),
  );

test('minutes in which every attempt was lost are a reason, those that touch one, and lost attempts alone are none', () => {
  const history = [measured(10, 6), measured(11, 6), measured(12, 5), measured(20, 6), measured(21, 0)];
  assert.deepEqual(reasonsOf(gateway, history), [
    '11:10 11:12 no attempt was answered: warn',
    '11:20 11:21 no attempt was answered: warn',
  ]);
});

test('the time before a probe was added is in order, but where a simulated past has results', () => {
  const young = { ...gateway, addedAtMs: at(11, 30) };
  assert.deepEqual(reasonsOf(young, []), ['11:01 11:30 before the probe was added: neutral']);
  assert.deepEqual(reasonsOf(young, [measured(10, 0)]), ['11:01 11:10 before the probe was added: neutral']);
});

test('pauses follow from the changes and the present state; other changes and other probes count for nothing', () => {
  const changes = [
    paused(at(11, 10)),
    resumed(at(11, 20)),
    changed(at(11, 25), { intervalSeconds: 10 }, { intervalSeconds: 20 }),
    paused(at(11, 30), 8),
  ];
  const pause = '11:10 11:20 the probe was paused: neutral';
  assert.deepEqual(reasonsOf(gateway, [], { changes }), [pause]);
  const isEnabled = false;
  assert.deepEqual(reasonsOf({ ...gateway, isEnabled }, [], { changes: [...changes, paused(at(11, 50))] }), [
    '11:50 12:00 the probe was paused: neutral',
    pause,
  ]);
  assert.deepEqual(reasonsOf(gateway, [], { changes: [resumed(at(11, 20))] }), [
    '11:01 11:20 the probe was paused: neutral',
  ]);
  assert.deepEqual(
    reasonsOf(gateway, [], { changes: [resumed(at(11, 20))], changesSinceMs: at(11, 5) }),
    ['11:05 11:20 the probe was paused: neutral'],
    'nothing is said of a time whose changes were not read',
  );
});

test('a sensor that did not run is a reason once, and a capture that did not run is none', () => {
  const gap = (capture: string, reason: GapRow['reason']) => ({
    sensorId: 1,
    hostName: 'hv-1',
    capture,
    fromMinute: 60,
    toMinute: 120,
    reason,
  });
  const gaps = [gap('br0', 'sensor_down'), gap('eno1', 'sensor_down'), gap('eno1', 'capture_failed')];
  assert.deepEqual(
    chartReasons({
      gaps: ofSensors(gaps),
      range: { ...range, fromMs: 0, toMs: 240_000 },
      firstSensorMs: 0,
      nowMs,
    }).map(({ text }) => text),
    ['kept no longer', 'the sensor did not run (hv-1)'],
  );
});

test('a running minute was measured now, not in some seconds', () => {
  assert.equal(measuredAt(nowMs - 20_000, nowMs), nowMs);
  assert.equal(measuredAt(nowMs - 90_000, nowMs), nowMs - 30_000);
});

test('of several probes each is named', () => {
  const other = { ...gateway, id: 8, name: 'Resolver', addedAtMs: at(11, 40) };
  const drawn = [
    { probe: gateway, history: [measured(10, 6)] },
    { probe: other, history: [] },
  ];
  assert.deepEqual(reasonsOf(gateway, [], { drawn }), [
    '11:01 11:40 Resolver: before the probe was added: neutral',
    '11:10 11:11 Gateway: no attempt was answered: warn',
  ]);
  const younger = drawn.map((one) => ({
    ...one,
    probe: { ...one.probe, addedAtMs: at(11, 40) },
    history: [],
  }));
  const last = younger.map((one, i) =>
    i === 0 ? one : { ...one, probe: { ...one.probe, addedAtMs: at(11, 50) } },
  );
  assert.deepEqual(reasonsOf(gateway, [], { drawn: younger }), [
    '11:01 11:40 before the first probe was added: neutral',
  ]);
  assert.deepEqual(reasonsOf(gateway, [], { drawn: last }), [
    '11:01 11:40 before the first probe was added: neutral',
    '11:40 11:50 Resolver: before the probe was added: neutral',
  ]);
});

test('pages of probes have their reasons and flags: changes, alerts, and what happened at the site, of no other', async () => {
  await using server = await startMonitorServer();
  const { siteId, monitor, database } = server;
  const input = { name: 'Gateway', kind: 'icmp', target: '192.0.2.1' } as const;
  const cadence = { intervalSeconds: 10, timeoutMs: 2000 };
  const id = await monitor.probes.add(systemActor, siteId, { ...input, ...cadence });
  const elsewhere = await monitor.sites.create(systemActor, 'Elsewhere');
  const foreign = await monitor.probes.add(systemActor, elsewhere.id, {
    ...input,
    name: 'Foreign',
    ...cadence,
  });
  await monitor.probes.change(systemActor, siteId, id, { name: 'Gateway', ...cadence, isEnabled: false });
  const rows = (text: string, values: unknown[]) => database.pool.query(text, values);
  await rows(
    `insert into alert_episodes (site_id, kind, subject_key, subject_name, details, opened_at, resolved_at, resolution) values
       ($1, 'probe_down', 'probe:' || $2::bigint, 'Gateway', '{}', now() - interval '9 minutes', now() - interval '8 minutes', 'recovered'),
       ($3, 'probe_down', 'probe:' || $4::bigint, 'Foreign', '{}', now() - interval '9 minutes', null, null)`,
    [siteId, id, elsewhere.id, foreign],
  );
  for (const site of [siteId, elsewhere.id])
    await rows(
      `insert into events (kind, site_id, details, occurred_at)
       values ('ip_conflict_opened', $1, jsonb_build_object('address', '192.0.2.' || $1::bigint), now() - interval '5 minutes')`,
      [site],
    );
  const viewer = await server.signIn('viewer');
  const startedMs = Date.now();
  const hoursAgo = (hours: number) => new Date(startedMs - hours * 3_600_000).toISOString().slice(0, 16);
  for (const path of ['availability', `availability/${id}`]) {
    const { status, text } = await viewer.get(`/sites/${siteId}/${path}`);
    assert.equal(status, 200);
    for (const flag of ['Gateway was added', 'Gateway was paused', 'Probe down: Gateway'])
      assert.match(text, new RegExp(`>${flag}<`), `${path}: ${flag}`);
    assert.match(text, new RegExp(`Address in conflict: 192\\.0\\.2\\.${siteId}<`));
    assert.doesNotMatch(text, new RegExp(`Foreign|192\\.0\\.2\\.${elsewhere.id}<`));
    assert.match(text, /no sensor is enrolled/);
    assert.match(text, path === 'availability' ? /The probe is paused\./ : /Paused: no sensor measures it\./);
    const before = await viewer.get(
      `/sites/${siteId}/${path}?range=custom&from=${hoursAgo(3)}&to=${hoursAgo(1)}`,
    );
    assert.match(before.text, /before the probe was added/);
    assert.doesNotMatch(before.text, /Gateway was added/, 'outside the range');
  }
});
