import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type IncidentObservation, metrics } from '#contracts/sensor-api/detection.ts';
import { compressUpload, encodeUpload } from '#contracts/sensor-api/telemetry-codec.ts';
import { requireIncidentsAlone } from '#monitor/incidents/index.ts';
import { createIncidentSpool, observation } from '#monitor/incidents/testing/observations.ts';
import { systemActor } from '#monitor/operators/index.ts';
import type { EnrolledSensor } from '#monitor/sensors/index.ts';
import { type MonitorServer, startMonitorServer, type Visitor } from '#monitor/testing/server.ts';

let server: MonitorServer;
let operator: Visitor;
let viewer: Visitor;
let sensor: EnrolledSensor;
const spool = createIncidentSpool();
let now: number;

before(async () => {
  now = Math.floor(Date.now() / 1000) * 1000;
  server = await startMonitorServer({ SVC_MONITOR_METRICS_TOKEN: 'token-of-the-scraper' });
  operator = await server.signIn('operator');
  viewer = await server.signIn('viewer');
  const { token } = await server.monitor.sensors.createToken(systemActor, server.siteId);
  const request = { token, host_name: 'host-1', node: 'node-1', sensor_version: '0.2.0' };
  sensor = (await server.monitor.sensors.authenticate(
    (await server.monitor.sensors.enrol(request))!.credential,
  ))!;
});
after(() => server[Symbol.asyncDispose]());

const say = (...incidents: IncidentObservation[]) =>
  server.monitor.inbox.receiveUrgent(
    sensor,
    compressUpload(encodeUpload(spool(...incidents))),
    'zstd',
    requireIncidentsAlone,
  );
const idOf = async (target: string) =>
  (await server.database.pool.query<{ id: string }>('select id from incidents where target = $1', [target]))
    .rows[0]!.id;

test('the empty list says what will appear, and a page of an unknown incident is a 404', async () => {
  const { text } = await viewer.get('/incidents');
  assert.match(text, /No attack in progress/);
  assert.match(text, /No incidents yet/);
  const unknown = `/sites/${server.siteId}/incidents/00000000-0000-4000-8000-000000000000`;
  assert.equal((await viewer.get(unknown)).status, 404);
  assert.equal((await fetch(`${server.url}/incidents`, { redirect: 'manual' })).status, 303);
});

test('an attack is on the overview, the list, the site’s and the address’s page at once, and opens an alert', async () => {
  const flood = observation({ startedAtMs: now - 60_000, lastObservedAtMs: now, target: '198.51.100.7' });
  await say(
    flood,
    observation({
      startedAtMs: now - 60_000,
      lastObservedAtMs: now,
      target: '198.51.100.9',
      class: 'high_volume',
      severity: 'info',
    }),
  );
  const id = await idOf('198.51.100.7');
  const href = `/sites/${server.siteId}/incidents/${id}`;
  assert.match((await viewer.get('/')).text, /Attacks.*active or without recent data/s);
  const list = (await viewer.get('/incidents')).text;
  assert.match(list, /1 attack in progress/);
  assert.ok(list.includes(href));
  const traffic = (await viewer.get(`/sites/${server.siteId}/traffic`)).text;
  assert.match(traffic, /Under attack/);
  const address = (await viewer.get(`/sites/${server.siteId}/addresses/198.51.100.7`)).text;
  assert.ok(address.includes(href));
  const page = (await operator.get(href)).text;
  assert.match(
    page,
    /SYN flood on 198\.51\.100\.7 since [0-9: -]+UTC, 25,000 packets\/s, 2\.5 times the threshold/,
  );
  assert.match(page, /syn_pps: 10,000 packets\/s/);
  assert.match(page, /203\.0\.113\.0\/24/, 'sources');
  assert.match(page, /host-1, eth0/);
  assert.match(page, /Not delivered yet/);
  const [alert, ...others] = await server.monitor.alerts.listOpen(server.siteId, 10);
  assert.deepEqual([alert!.kind, others.length], ['attack_detected', 0], 'of the attack, not of the info');
  const alertPage = (await viewer.get(`/alerts/${alert!.id}`)).text;
  assert.match(alertPage, /SYN flood on 198\.51\.100\.7: up to 25,000 packets\/s/);
  assert.ok(alertPage.includes(href));
  const events = (await viewer.get(`/sites/${server.siteId}/events`)).text;
  assert.match(events, /attack detected/);
  assert.ok(events.includes(href));
});

test('sources of an attack are shown to operators and not to viewers, in no file either', async () => {
  const href = `/sites/${server.siteId}/incidents/${await idOf('198.51.100.7')}`;
  const seen = await viewer.get(href);
  assert.equal(seen.status, 200);
  assert.doesNotMatch(seen.text, /203\.0\.113/);
  const file = await viewer.get(`${href}?format=json&table=remotes`);
  assert.doesNotMatch(file.text, /203\.0\.113/);
  assert.match((await operator.get(`${href}?format=json&table=remotes`)).text, /203\.0\.113/);
});

test('the list filters by state, severity and class, and is offered as CSV and JSON', async () => {
  const rows = async (query: string) => {
    const { text } = await viewer.get(`/incidents?${query}&format=json&table=incidents`);
    return (JSON.parse(text) as { rows: { target: string }[] }).rows.map(({ target }) => target).sort();
  };
  assert.deepEqual(await rows('severity=attack'), ['198.51.100.7']);
  assert.deepEqual(await rows('class=high_volume'), ['198.51.100.9']);
  assert.deepEqual(await rows('state=recovered'), []);
  assert.deepEqual(
    await rows('state=nonsense'),
    ['198.51.100.7', '198.51.100.9'],
    'unknown words do not filter',
  );
  const csv = (await viewer.get('/incidents?format=csv&table=incidents')).text;
  assert.match(csv, /peak_pps.*id/);
  const curve = await viewer.get(
    `/sites/${server.siteId}/incidents/${await idOf('198.51.100.7')}/curve.json`,
  );
  const data = JSON.parse(curve.text) as { unit: string; series: { label: string; values: number[] }[] };
  assert.deepEqual(
    [data.unit, data.series.map(({ label, values }) => [label, values[0]])],
    [
      'packets/s',
      [
        ['Attack', 25_000],
        ['Threshold', 10_000],
      ],
    ],
  );
});

test('metrics and health count incidents that are not over, and observations', async () => {
  const metrics = await fetch(`${server.url}/metrics`, {
    headers: { authorization: 'Bearer token-of-the-scraper' },
  });
  const text = await metrics.text();
  assert.match(text, /svc_monitor_incidents\{state="active"\} 1/);
  assert.match(text, /svc_monitor_incident_observations_total\{outcome="applied"\} 2/);
  const health = await viewer.get('/api/integrations/operations/health');
  assert.deepEqual(JSON.parse(health.text).incidents, { active: 1, stale: 0, info: 1 });
});

test('NET-3.2: the judging loop leaves the alert of an attack alone; the recovery resolves it, and a reopening opens another', async () => {
  const flood = observation({ startedAtMs: now - 50_000, lastObservedAtMs: now, target: '198.51.100.8' });
  await say(flood);
  const open = async () =>
    (await server.monitor.alerts.listOpen(server.siteId, 10)).filter(
      ({ subjectName }) => subjectName === '198.51.100.8',
    );
  await server.monitor.alerts.loop.runOnce();
  assert.equal((await open()).length, 1);
  const over = { ...flood, revision: 2, state: 'recovered' as const, current: null, recoveredAtMs: now };
  await say(over);
  assert.equal((await open()).length, 0);
  const [resolved] = await server.monitor.alerts.listResolved(server.siteId, 1);
  assert.equal(resolved!.resolution, 'recovered');
  await say({ ...flood, revision: 3, lastObservedAtMs: now });
  assert.equal((await open()).length, 1);
});

test('an attack that is over has lasted until its recovery, as operations and mails say it', async () => {
  const flood = observation({
    ...{ startedAtMs: now - 600_000, lastObservedAtMs: now - 240_000, target: '198.51.100.18' },
    ...{ state: 'recovered' as const, current: null, recoveredAtMs: now - 120_000 },
  });
  await say(flood);
  const { text } = await viewer.get(`/sites/${server.siteId}/incidents/${await idOf('198.51.100.18')}`);
  assert.match(text.replaceAll(/<[^>]+>/g, ' '), /Lasted\s+8 min/);
});

test('NET-8.R2: attacks with their suspects, destinations and curves are deleted after a year', async () => {
  const age = async (days: number) => {
    await server.database.pool.query(
      `update incidents set last_observed_at = svc_now() - make_interval(days => $1);`,
      [days],
    );
    await server.monitor.retention.runOnce();
    const tables = [
      'incidents',
      'incident_observations',
      'incident_remotes',
      'incident_seconds',
      'incident_transitions',
    ];
    const counts = await Promise.all(
      tables.map((table) => server.database.pool.query(`select 1 from ${table} limit 1`)),
    );
    return counts.map(({ rowCount }) => rowCount);
  };
  assert.deepEqual(await age(364), [1, 1, 1, 1, 1]);
  assert.deepEqual(await age(367), [0, 0, 0, 0, 0]);
});

test('an attack that has stopped and has not recovered yet says so with its peak', async () => {
  const flood = observation({
    startedAtMs: now - 60_000,
    lastObservedAtMs: now - 20_000,
    target: '198.51.100.40',
  });
  await say(flood, {
    ...flood,
    ...{ revision: 2, lastObservedAtMs: now, current: { bps: 0, pps: 0 } },
    seconds: [{ atMs: now - 1000, bps: 0, pps: 0 }],
  });
  const page = (await viewer.get(`/sites/${server.siteId}/incidents/${await idOf('198.51.100.40')}`)).text;
  assert.match(page, /peak 25,000 packets\/s, 2\.5 times the threshold\. Nothing of it now/);
});

test('NET-4.1: an attack on a whole uplink, or on a prefix, is shown to operators with an alert, and delivered to no customer', async () => {
  const part = { startedAtMs: now - 50_000, lastObservedAtMs: now, class: 'udp_flood' as const };
  await say(
    observation({
      ...part,
      target: { kind: 'capture', value: 'eth0' },
      threshold: { metric: 'bps', value: 8e9 },
    }),
    observation({ ...part, target: { kind: 'prefix', value: '203.0.113.0/24' } }),
  );
  const list = (await viewer.get('/incidents')).text;
  for (const [target, title, name] of [
    ['eth0', 'UDP flood on capture eth0', 'eth0 of host-1'],
    ['203.0.113.0/24', 'UDP flood on 203.0.113.0/24', '203.0.113.0/24'],
  ] as const) {
    const href = `/sites/${server.siteId}/incidents/${await idOf(target)}`;
    assert.ok(list.includes(href), target);
    const page = (await viewer.get(href)).text;
    assert.ok(page.includes(title), title);
    assert.match(page, /Not delivered: only attacks on exact addresses/);
    assert.match(page, /No customer is shown this incident/);
    assert.match(page, /As a whole/);
    const open = await server.monitor.alerts.listOpen(server.siteId, 10);
    const alert = open.find(({ subjectName }) => subjectName === name);
    assert.ok(alert, `an alert of ${name}`);
    assert.ok((await viewer.get(`/alerts/${alert.id}`)).text.includes(`${title}: up to`));
  }
  assert.ok(list.includes(`href="/sites/${server.siteId}/sensors/${sensor.id}"`), 'links to the sensor');
  const events = (await viewer.get(`/sites/${server.siteId}/events`)).text;
  assert.ok(events.includes('UDP flood on capture eth0'));
});

test('the page of an incident says why it was detected: the rule, the seconds, and what was taken off as ordinary', async () => {
  const of = { startedAtMs: now - 55_000, lastObservedAtMs: now };
  await say(
    observation({
      ...{ ...of, target: '198.51.100.30', pps: 26_000 },
      reason: {
        trigger: 'pulses',
        ratios: [0.01, 1.85, 0],
        all: { packets: 27_000, bytes: 1_600_000 },
        ordinary: [{ rule: 'pairs', packets: 8500, bytes: 520_000 }],
        pairs: { established: 3, others: 1 },
        remotes: 812,
      },
    }),
    observation({ ...of, target: '198.51.100.31' }),
  );
  const href = `/sites/${server.siteId}/incidents/${await idOf('198.51.100.30')}`;
  const page = (await viewer.get(href)).text;
  assert.match(page, /three separate seconds within a minute at 1\.7 times a threshold/);
  assert.match(page, /0\.01, 1\.85, 0\.00 times the threshold/);
  assert.match(page, /3 converse, 1 do not/);
  const { rows } = JSON.parse((await viewer.get(`${href}?format=json&table=reason`)).text);
  assert.deepEqual(
    rows.map((row: { what: string; packets: number; bytes: number }) => [row.what, row.packets, row.bytes]),
    [
      ['All traffic', 27_000, 1_600_000],
      ['Ordinary: packets of established pairs', 8500, 520_000],
      ['The rest, which may be an attack', 18_500, 1_080_000],
    ],
  );
  // What if: the minute in which it began leads to that page.
  const minute = Math.floor(of.startedAtMs / 60_000) * 60;
  const rates = metrics.map((metric) => (metric === 'pps' ? 90_000 : 0));
  await server.database.pool.query(
    `with day as (select ensure_fact_partition('detector_addresses', date_trunc('day', to_timestamp($1::float8)), interval '1 day'))
     select count(*) from day`,
    [minute],
  );
  await server.database.pool.query(
    `insert into detector_addresses (minute, site_id, sensor_id, capture, address, is_outbound, one_second, ten_seconds, attack_bytes, attack_packets)
     values (to_timestamp($1::float8), $2, $3, 'eth0', '198.51.100.30', false, $4, $4, 0, 0)`,
    [minute, server.siteId, sensor.id, rates],
  );
  const whatIf = `/sites/${server.siteId}/protection/addresses/198.51.100.30/what-if`;
  assert.ok((await viewer.get(whatIf)).text.includes(`href="${href}"`));
  // An older sensor tells none.
  const older = (await viewer.get(`/sites/${server.siteId}/incidents/${await idOf('198.51.100.31')}`)).text;
  assert.match(older, /two of three seconds at 1\.7 times a threshold; or a mean of five/);
  assert.doesNotMatch(older, /Seconds that decided/);
});

test('the curve of an attack of minutes or hours has one break, where seconds were not observed', async () => {
  const unseen = { from: 95, to: 215 };
  for (const [index, minutes] of [5, 25, 140].entries()) {
    const target = `198.51.100.${50 + index}`;
    // Begun beside the edges of all steps, and reported once a minute.
    const startedAtMs = Math.floor(now / 60_000) * 60_000 - minutes * 60_000 - 7_000;
    const whole = observation({ startedAtMs, target });
    const reports = Array.from({ length: minutes }, (_, minute) => ({
      ...whole,
      revision: minute + 1,
      lastObservedAtMs: startedAtMs + (minute + 1) * 60_000,
      seconds: Array.from({ length: 60 }, (_, i) => minute * 60 + i)
        .filter((second) => second < unseen.from || second >= unseen.to)
        .map((second) => ({ atMs: startedAtMs + second * 1000, bps: 1e6, pps: 2_000 })),
    }));
    await say(...reports);
    const href = `/sites/${server.siteId}/incidents/${await idOf(target)}/curve.json`;
    const { times, stepMs, reasons, flags } = JSON.parse((await viewer.get(href)).text) as {
      times: number[];
      stepMs: number;
      reasons: { fromMs: number; toMs: number; text: string }[];
      flags: { text: string; href: string }[];
    };
    // As the chart does, beyond one and a half steps.
    const breaks = times.filter((time, at) => at > 0 && time - times[at - 1]! > stepMs * 1.5);
    assert.deepEqual(
      breaks,
      [Math.floor((startedAtMs + unseen.to * 1000) / stepMs) * stepMs],
      `${minutes} minutes, a step of ${stepMs} ms`,
    );
    assert.ok(times.length > (minutes * 60_000 - 130_000) / stepMs, 'all others');
    const lastSeenMs = times[times.indexOf(breaks[0]!) - 1]!;
    assert.deepEqual(
      reasons.map(({ fromMs, toMs, text }) => [fromMs, toMs, text]),
      [[lastSeenMs + stepMs, breaks[0], 'not observed']],
    );
    assert.equal(flags[0]?.text, 'Detected');
    const [page, anchor] = flags[0].href.split('#') as [string, string];
    const { text } = await viewer.get(page);
    assert.ok(text.includes(`id="${anchor}"`), 'a flag leads to the timeline');
    assert.match(text, /What happened \(\d+\)/);
  }
});
