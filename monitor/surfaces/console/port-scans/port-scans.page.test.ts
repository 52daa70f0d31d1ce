import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { systemActor } from '#monitor/operators/index.ts';
import {
  heartbeat,
  hostInterfaces,
  listInterfaces,
  listServers,
  result,
  type ScanStage,
  scanId,
  secondsAgo,
  service,
  started,
  startScanStage,
} from '#monitor/scans/testing/scan-world.ts';
import { addMinutes, minutesAgo } from '#monitor/testing/facts.ts';
import type { World } from '#monitor/testing/world.ts';

let stage: ScanStage;
let target: string;
before(async () => {
  stage = await startScanStage();
  await listServers(stage.pool, [
    { serverId: 1, addresses: ['203.0.113.10'] },
    { serverId: 2, addresses: ['203.0.113.11'], state: 'stopped' },
  ]);
  target = (await stage.ask()).json.targets[0]!.target_id;
});
after(() => stage[Symbol.asyncDispose]());
beforeEach(async () => {
  await stage.pool.query('truncate scan_attempts, scan_observations, scan_identifications');
  await listInterfaces(stage.pool, stage.sensorId, hostInterfaces);
});

async function file(table: string, path = 'port-scans') {
  const viewer = await stage.signIn('viewer');
  const { status, text } = await viewer.get(`/sites/${stage.siteId}/${path}?format=json&table=${table}`);
  assert.equal(status, 200, text);
  return JSON.parse(text).rows as Record<string, unknown>[];
}

const report = async (body: unknown) => assert.equal((await stage.ask(body)).status, 200);

test('NET-2.7.12: open ports of observed applications are apart from services that only scans know', async () => {
  const address = '203.0.113.10';
  const usage = {
    client: '198.51.100.9',
    server: address,
    direction: 'inbound' as const,
    serverBytes: 9,
    serverLastSentMs: minutesAgo(5) * 1000 + 9,
  };
  const hosted = { ...usage, serverPort: 443, name: 'shop.example', clientBytes: 5 };
  await addMinutes(
    { ...stage.monitor, siteId: stage.siteId, database: stage.database } as unknown as World,
    stage.sensorId,
    [{ minute: minutesAgo(5), address, rxBytes: 100, txBytes: 100, packets: 10, usage: [hosted] }],
  );
  const scan = result(target, 'common', [22, 443]);
  scan.services.push(service(443, { transport: 'udp', service: 'quic', product: null, version: null }));
  await report(scan);
  const [open, only] = [await file('ports'), await file('scan-only')];
  assert.deepEqual(
    open.map((row) => [row.port, row.address, row.server, row.applications, row.freshness]),
    [['tcp/443', address, 'server-1', 'shop.example', 'fresh']],
  );
  assert.deepEqual(
    only.map((row) => [row.port, row.service, row.applications]),
    [
      ['tcp/22', 'OpenSSH 9.6p1', ''],
      ['udp/443', 'quic', ''],
    ],
  );
  const viewer = await stage.signIn('viewer');
  const inbound = await viewer.get(`/sites/${stage.siteId}/applications?view=inbound`);
  assert.match(inbound.text, /id="open-ports"/);
  assert.match(inbound.text, /tcp\/443/);
  assert.doesNotMatch(inbound.text, /tcp\/22</);
  assert.doesNotMatch((await viewer.get(`/sites/${stage.siteId}/applications`)).text, /id="open-ports"/);
});

test('NET-2.7.10: common evidence is stale after two hours, full evidence after 27', async () => {
  await report(result(target, 'common', [22, 25], { endedAgo: 2 * 3600 + 60 }));
  await report(result(target, 'full', [25, 80], { endedAgo: 26.9 * 3600 }));
  await report(result(target, 'full', [8443], { endedAgo: 27.1 * 3600 }));
  const rows = await file('scan-only');
  assert.deepEqual(
    rows.map((row) => [
      row.port,
      row.freshness,
      row.common_observed_at !== null,
      row.full_observed_at !== null,
    ]),
    [
      ['tcp/22', 'stale', true, false],
      ['tcp/25', 'fresh', true, true],
      ['tcp/80', 'fresh', false, true],
      ['tcp/8443', 'stale', false, true],
    ],
  );
});

test('NET-2.7.10: a port that a complete scan of its profile did not find any more is not listed', async () => {
  await report(result(target, 'common', [22, 80], { endedAgo: 300 }));
  await report(result(target, 'common', [22]));
  assert.deepEqual(
    (await file('scan-only')).map(({ port }) => port),
    ['tcp/22'],
  );
});

test('the page shows what runs, why it pauses, what is late and what a scan left', async () => {
  const [running, paused, silent] = [scanId(), scanId(), scanId()];
  for (const id of [running, paused, silent]) await report(started(target, id));
  const found = [{ transport: 'tcp' as const, port: 22 }];
  await report(
    heartbeat(target, running, { phase: 'udp_discovery', percent: 50, packets_per_second: 7812, found }),
  );
  await report(heartbeat(target, paused, { paused_for: 'cpu' }));
  await stage.pool.query(
    "update scan_attempts set reported_at = svc_now() - interval '2 minutes' where scan_id = $1",
    [silent],
  );
  const partial = result(target, 'common', [80], { state: 'partial', notes: ['interrupted'], packets: 300 });
  await report({
    ...partial,
    pauses: [{ reason: 'memory', started_at: secondsAgo(90), ended_at: secondsAgo(60) }],
  });
  const viewer = await stage.signIn('viewer');
  const { text } = await viewer.get(`/sites/${stage.siteId}/port-scans`);
  for (const shown of [
    /running, 65 %/,
    /paused: the CPU is busy/,
    /no report, 2 min ago/,
    /paused 1 × for 30 s in all; interrupted/,
    /1 scan without a report for a minute/,
    /1: not running/,
  ])
    assert.match(text, shown);
  const rows = await file('scans');
  const of = (id: string) => rows.find((row) => row.scan_id === id)!;
  assert.deepEqual([of(running).packets_per_second, of(running).open_ports], [7812, 1]);
  assert.deepEqual(
    [of(partial.scan_id).state, of(partial.scan_id).packets_per_second, of(partial.scan_id).open_ports],
    ['partial', 10, 1],
  );
});

test('what a service writes is shown as text', async () => {
  const hostile = result(target, 'common', [22]);
  hostile.services = [service(22, { product: '<img src=x onerror=alert(1)>' })];
  await report(hostile);
  const viewer = await stage.signIn('viewer');
  const { text } = await viewer.get(`/sites/${stage.siteId}/port-scans`);
  assert.doesNotMatch(text, /<img src=x/);
  assert.match(text, /&lt;img src=x/);
});

test('a site without scanning sensors says so', async () => {
  const { id } = await stage.monitor.sites.create(systemActor, 'Empty site');
  const viewer = await stage.signIn('viewer');
  const { status, text } = await viewer.get(`/sites/${id}/port-scans`);
  assert.equal(status, 200);
  assert.match(text, /No sensor of this site fetches scan plans/);
  assert.equal((await viewer.get('/sites/999999/port-scans')).status, 404);
});

test('an alert opens for a sensor whose scans are overdue, and ends when they are done', async () => {
  const { alerts } = stage.monitor;
  const open = async () => {
    await alerts.loop.runOnce();
    return (await alerts.listOpen(stage.siteId, 10)).filter(({ kind }) => kind === 'scans_overdue');
  };
  await stage.pool.query(
    `insert into sensor_contacts (sensor_id, last_contact_at, sensor_version, spool_id, sequence)
     values ($1, svc_now(), '0.1.24', gen_random_uuid(), 1)`,
    [stage.sensorId],
  );
  assert.deepEqual(await open(), []);
  await stage.pool.query("update alert_watch set watching_since = svc_now() - interval '3 hours'");
  await stage.pool.query("update scan_targets set first_named_at = svc_now() - interval '2 hours 1 minute'");
  const [episode] = await open();
  assert.deepEqual([episode!.details.overdue, episode!.details.targets], [1, 1]);
  await report(result(target, 'common', [22]));
  await open();
  await stage.pool.query(
    "update alert_episodes set good_since = svc_now() - interval '2 minutes' where good_since is not null",
  );
  assert.deepEqual(await open(), []);
  await stage.pool.query("update scan_plans set fetched_at = svc_now() - interval '11 minutes'");
  const [again] = await open();
  assert.ok(Number(again!.details.fetched_seconds) >= 660);
});
