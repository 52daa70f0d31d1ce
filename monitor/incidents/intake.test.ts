import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import type { TelemetryUpload } from '#contracts/sensor-api/telemetry.ts';
import { compressUpload, encodeUpload } from '#contracts/sensor-api/telemetry-codec.ts';
import { systemActor } from '#monitor/operators/index.ts';
import { captureMinute, createSpool } from '#monitor/testing/index.ts';
import { type MonitorServer, startMonitorServer } from '#monitor/testing/server.ts';
import { type StillClock, stopDatabaseClock } from '#monitor/testing/still-clock.ts';
import { createIncidentSpool, observation } from './testing/observations.ts';

let server: MonitorServer;
let clock: StillClock;
let credential: string;
const start = Date.UTC(2026, 10, 23, 10, 0, 0);

before(async () => {
  server = await startMonitorServer();
  clock = await stopDatabaseClock(server.database, start);
  credential = await enrol('node-1');
});
after(() => server[Symbol.asyncDispose]());
beforeEach(() => server.database.pool.query('truncate incidents, incident_observations, events cascade'));

async function enrol(node: string): Promise<string> {
  const { token } = await server.monitor.sensors.createToken(systemActor, server.siteId);
  const request = { token, host_name: node, node, sensor_version: '0.2.0' };
  return (await server.monitor.sensors.enrol(request))!.credential;
}

async function post(upload: TelemetryUpload | Uint8Array, path = '/incidents', as = credential) {
  const body = upload instanceof Uint8Array ? upload : compressUpload(encodeUpload(upload));
  const answer = await fetch(`${server.url}/agent/v1${path}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${as}`,
      'content-type': 'application/x-protobuf',
      'content-encoding': 'zstd',
    },
    body: new Uint8Array(body),
  });
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
}

const incidents = async () =>
  (
    await server.database.pool.query(
      'select id, state, revision, class, target, target_kind, measured from incidents order by started_at, id',
    )
  ).rows as {
    id: string;
    state: string;
    revision: number;
    target: string;
    measured: { peak: { pps: number } };
  }[];

test('an incident is there when its receipt is, while minutes wait in the inbox', async () => {
  const minutes = createSpool();
  for (let i = 0; i < 3; i += 1)
    assert.equal(
      (await post(minutes.upload([captureMinute({ minute: start / 1000 - 60 * i })]), '/telemetry')).status,
      200,
    );
  const spool = createIncidentSpool();
  const one = spool(observation({ startedAtMs: start - 3000, lastObservedAtMs: start }));
  const { status, body } = await post(one);
  assert.equal(status, 200);
  assert.deepEqual(body, { spool_id: one.spoolId, sequence: 1, receipt: 'accepted' });
  const [incident] = await incidents();
  assert.equal(incident?.state, 'active');
  const { rows } = await server.database.pool.query(
    `select state, count(*)::int as count from inbox_uploads group by 1 order by 1`,
  );
  assert.deepEqual(
    rows,
    [
      { state: 'applied', count: 1 },
      { state: 'pending', count: 3 },
    ],
    'the inbox has no worker here: the minutes wait',
  );
});

test('NET-2.9: a redelivery and a lower revision change nothing; a higher one is one change more', async () => {
  const spool = createIncidentSpool();
  const said = { startedAtMs: start - 5000, lastObservedAtMs: start };
  const first = observation(said);
  const upload = spool(first);
  await post(upload);
  assert.equal((await post(upload)).body.receipt, 'duplicate');
  const [before] = await incidents();
  await post(spool({ ...first }));
  assert.deepEqual(await incidents(), [before], 'the same revision in another upload');
  await post(spool({ ...observation({ ...said, pps: 40_000 }), id: first.id, revision: 3 }));
  await post(spool({ ...observation({ ...said, pps: 99_000 }), id: first.id, revision: 2 }));
  const [held, ...others] = await incidents();
  assert.equal(others.length, 0);
  assert.equal(held!.revision, before!.revision + 1);
  assert.equal(held!.measured.peak.pps, 40_000);
});

test('an upload to /incidents holds incidents alone, and one of the future stays with its sensor', async () => {
  const spool = createIncidentSpool();
  const mixed = { ...spool(observation({ startedAtMs: start })), minutes: [captureMinute()] };
  const refused = await post(mixed);
  assert.equal(refused.status, 400);
  assert.match(JSON.stringify(refused.body), /telemetry_malformed.*incidents and nothing else/);
  assert.equal((await post(spool())).status, 400, 'an empty one');
  assert.equal((await post(new Uint8Array([1, 2, 3]))).status, 400);
  assert.equal((await post(spool(observation({ startedAtMs: start + 7 * 60_000 })))).status, 503);
  assert.equal(
    (await post(spool(observation({ startedAtMs: start })), '/incidents', 'svcsen_x_y')).status,
    401,
  );
  assert.deepEqual(await incidents(), []);
});

test('NET-6: every attack leaves one event `ddos_detected`, and what is no attack leaves none', async () => {
  const spool = createIncidentSpool();
  const attack = observation({ startedAtMs: start - 5000, lastObservedAtMs: start });
  const again = { ...attack, revision: 2, totals: { bytes: 9e6, packets: 1e5 } };
  await post(
    spool(attack, observation({ startedAtMs: start - 5000, severity: 'info', class: 'high_volume' })),
  );
  await post(spool(again));
  const { rows } = await server.database.pool.query<{ kind: string; details: Record<string, unknown> }>(
    'select kind, details from events',
  );
  assert.equal(rows.length, 1);
  const [{ kind, details }] = rows as [(typeof rows)[number]];
  assert.equal(kind, 'ddos_detected');
  assert.deepEqual(
    [details.target, details.class, details.drill, details.detected_at],
    ['198.51.100.7', 'syn_flood', false, new Date(start - 3000).toISOString()],
  );
});

test('NET-3.2: without news for 90 s an incident is stale, late news of before leaves it so, and its sensor ends it', async () => {
  const spool = createIncidentSpool();
  const first = observation({ startedAtMs: start - 5000, lastObservedAtMs: start });
  await post(spool(first));
  await clock.set(start + 90_000);
  await server.monitor.incidents.loop.runOnce();
  assert.equal((await incidents())[0]!.state, 'active');
  await clock.set(start + 90_001);
  await server.monitor.incidents.loop.runOnce();
  assert.equal((await incidents())[0]!.state, 'stale');
  await clock.set(start + 200_000);
  const late = { ...first, revision: 2, lastObservedAtMs: start + 500, totals: { bytes: 5e6, packets: 8e4 } };
  await post(spool(late));
  assert.equal((await incidents())[0]!.state, 'stale', 'delayed telemetry');
  await post(spool(first), '/incidents');
  assert.equal((await incidents())[0]!.state, 'stale', 'a replay');
  const over = {
    ...late,
    revision: 3,
    state: 'recovered' as const,
    recoveredAtMs: start + 180_000,
    current: null,
  };
  await post(spool(over));
  const [ended] = await incidents();
  assert.equal(ended!.state, 'recovered');
  await post(
    spool({
      ...over,
      revision: 4,
      state: 'active',
      recoveredAtMs: null,
      lastObservedAtMs: start + 199_000,
      current: { bps: 1, pps: 1 },
    }),
  );
  const [again, ...others] = await incidents();
  assert.deepEqual(
    [again!.id, again!.state, others.length],
    [ended!.id, 'active', 0],
    'reopened under its id',
  );
  const { rows } = await server.database.pool.query<{ kind: string }>(
    'select kind from incident_transitions order by id',
  );
  assert.deepEqual(
    rows.map(({ kind }) => kind),
    ['detected', 'stale', 'recovered', 'reopened'],
  );
  await clock.set(start);
});

test('NET-9.1: the plan says that this monitor takes incidents, with the default thresholds', async () => {
  const answer = await fetch(`${server.url}/agent/v1/plan`, {
    headers: { authorization: `Bearer ${credential}` },
  });
  const plan = (await answer.json()) as {
    detection_version: number;
    detection: { inbound: { syn_pps: number } };
  };
  assert.equal(plan.detection_version, 1);
  assert.equal(plan.detection.inbound.syn_pps, 10_000);
});
