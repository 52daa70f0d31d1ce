import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import type { ScanResult } from '#contracts/sensor-api/port-scans.ts';
import { hostileBodies } from '#service-kit/testing/hostile-bodies.ts';
import {
  askScans,
  heartbeat,
  listServers,
  result,
  type ScanStage,
  scanId,
  secondsAgo,
  service,
  started,
  startScanStage,
} from './testing/scan-world.ts';

/** A proof sends 20,000. */
const hostileReports = Number(process.env.SVC_TEST_HOSTILE_REQUESTS ?? 120);

let stage: ScanStage;
let target: string;
before(async () => {
  stage = await startScanStage();
  await listServers(stage.pool, [{ serverId: 1, addresses: ['203.0.113.10'] }]);
  target = (await stage.ask()).json.targets[0]!.target_id;
});
after(() => stage[Symbol.asyncDispose]());
beforeEach(() => stage.pool.query('truncate scan_attempts, scan_observations, scan_identifications'));

async function report(body: unknown): Promise<string> {
  const { status, json } = await stage.ask(body);
  return status === 200 ? json.receipt : `${status} ${json.error.code}`;
}

/** Open and closed ports, such as `common tcp/22` and `common tcp/22 closed`. */
async function ports(): Promise<string[]> {
  const { rows } = await stage.pool.query(
    `select profile || ' ' || transport || '/' || port || case when closed_at is null then '' else ' closed' end as port
     from scan_observations order by 1`,
  );
  return rows.map((row) => row.port);
}

async function observation(port: number) {
  const { rows } = await stage.pool.query('select * from scan_observations where port = $1', [port]);
  return rows[0];
}

test('a report counts once: by its scan, kind and time, and nothing follows a result', async () => {
  const id = scanId();
  const [begin, beat] = [
    started(target, id),
    heartbeat(target, id, { found: [{ transport: 'tcp', port: 22 }] }),
  ];
  assert.deepEqual([await report(begin), await report(begin)], ['accepted', 'duplicate']);
  assert.deepEqual([await report(beat), await report(beat)], ['accepted', 'duplicate']);
  assert.equal(await report(heartbeat(target, id, { at: secondsAgo(200), percent: 5 })), 'duplicate');
  const end = result(target, 'full', [22], { scan_id: id, endedAgo: 10 });
  assert.deepEqual([await report(end), await report(end)], ['accepted', 'duplicate']);
  assert.equal(await report(heartbeat(target, id, { at: secondsAgo(1), percent: 90 })), 'duplicate');
  assert.equal(await report({ ...end, at: secondsAgo(1), services: [] }), 'duplicate');
  const { rows } = await stage.pool.query('select state, pool, profile, found, services from scan_attempts');
  assert.equal(rows.length, 1);
  assert.deepEqual(
    [rows[0].state, rows[0].pool, rows[0].profile, rows[0].found, rows[0].services.length],
    ['complete', 'daily', 'full', [{ transport: 'tcp', port: 22 }], 1],
  );
});

test('NET-5.3: a sensor reports on targets that its own plans named, and on no other', async () => {
  const other = await stage.enrol('hv-2');
  const answer = await askScans(stage.url, other.credential, started(target, scanId()));
  assert.deepEqual([answer.status, answer.json.error.code], [422, 'scan_target_unknown']);
  for (const unknown of ['t999999', 'nic-3:203.0.113.10', 't0', 't99999999999999999999'])
    assert.equal(await report(started(unknown, scanId())), '422 scan_target_unknown', unknown);
  assert.equal((await askScans(stage.url, 'svcsen_a_b', started(target, scanId()))).status, 401);
  assert.equal(await report({ ...started(target, scanId()), credential: 'x' }), '422 validation_failed');
  assert.equal(
    await report({ ...started(target, scanId()), scan_request_id: scanId() }),
    '422 scan_report_malformed',
  );
  const { rows } = await stage.pool.query('select 1 from scan_attempts');
  assert.equal(rows.length, 0);
});

test('a scan is of one target', async () => {
  await listServers(stage.pool, [{ serverId: 2, addresses: ['203.0.113.11'] }]);
  const second = (await stage.ask()).json.targets[1]!.target_id;
  const id = scanId();
  assert.equal(await report(started(target, id)), 'accepted');
  assert.equal(await report(result(second, 'full', [22], { scan_id: id })), '422 scan_report_malformed');
  assert.deepEqual(await ports(), []);
});

test('a late result still finds its server after the server has left the plan', async () => {
  await stage.pool.query("update inventory_vms set node = 'hv-5' where vm_id = 1");
  assert.equal(await report(result(target, 'common', [22])), 'accepted');
  const { rows } = await stage.pool.query(
    'select cluster_id, vm_id, host(address) as address from scan_observations',
  );
  assert.deepEqual(rows, [{ cluster_id: 7, vm_id: 1, address: '203.0.113.10' }]);
  await stage.pool.query("update inventory_vms set node = 'hv-1' where vm_id = 1");
});

test('NET-2.7.10: common and full scans are independent; each closes only what it asked', async () => {
  await report(result(target, 'full', [22, 8443], { endedAgo: 300 }));
  await report(result(target, 'common', [22, 80], { endedAgo: 200 }));
  assert.deepEqual(await ports(), ['common tcp/22', 'common tcp/80', 'full tcp/22', 'full tcp/8443']);
  await report(result(target, 'common', [22], { endedAgo: 100 }));
  assert.deepEqual(await ports(), ['common tcp/22', 'common tcp/80 closed', 'full tcp/22', 'full tcp/8443']);
});

test('NET-2.7.10: a partial scan keeps earlier positive observations with their times', async () => {
  await report(result(target, 'full', [22, 80], { endedAgo: 300 }));
  const before = await observation(80);
  const partial = result(target, 'full', [22, 443], {
    ...{ endedAgo: 100, state: 'partial', notes: ['interrupted', 'interrupted'] as ScanResult['notes'] },
  });
  assert.equal(await report({ ...partial, notes: ['interrupted'] }), 'accepted');
  assert.deepEqual(await ports(), ['full tcp/22', 'full tcp/443', 'full tcp/80']);
  assert.deepEqual(await observation(80), before);
  assert.ok((await observation(22)).observed_at > before.observed_at);
});

test('NET-2.7.5: an unfinished transport closes nothing, and found ports stay when identification failed', async () => {
  await report(result(target, 'common', [22], { endedAgo: 300 }));
  const next = result(target, 'common', [], { endedAgo: 100, notes: ['identification_failed'] });
  next.phases[0]!.finished = false;
  next.services = [
    service(80, { method: 'table', service: 'http', product: null, version: null, confidence: 3, cpe: [] }),
  ];
  assert.equal(await report(next), 'accepted');
  assert.deepEqual(await ports(), ['common tcp/22', 'common tcp/80']);
  assert.equal((await observation(80)).product, null);
});

test('a result that arrives late replaces nothing newer, and opens nothing that was closed later', async () => {
  const late = result(target, 'common', [22, 80], { endedAgo: 900 });
  late.services[0]!.version = '1.0';
  await report(result(target, 'common', [22, 80], { endedAgo: 500 }));
  await report(result(target, 'common', [22], { endedAgo: 100 }));
  assert.equal(await report(late), 'accepted');
  assert.deepEqual(await ports(), ['common tcp/22', 'common tcp/80 closed']);
  assert.equal((await observation(22)).version, '9.6p1');
});

test('NET-2.7.10: what was seen since a scan began stays, and no port closes before it was seen', async () => {
  await report(result(target, 'common', [22, 80], { endedAgo: 100 }));
  await report(result(target, 'common', [22], { endedAgo: 50, started_at: secondsAgo(130) }));
  assert.deepEqual(await ports(), ['common tcp/22', 'common tcp/80']);
  const times = { started_at: secondsAgo(20), finished_at: secondsAgo(400) };
  await report(result(target, 'common', [22], times));
  const { observed_at, closed_at } = await observation(80);
  assert.ok(closed_at > observed_at, `${closed_at}`);
});

test('a port stays open since its first observation; one that was closed begins anew', async () => {
  const first = result(target, 'common', [22, 80], { endedAgo: 900 });
  await report(first);
  await report(result(target, 'common', [22], { endedAgo: 600 }));
  const again = result(target, 'common', [22, 80], { endedAgo: 300 });
  await report(again);
  const since = async (port: number) => (await observation(port)).first_observed_at.toISOString();
  assert.deepEqual([await since(22), await since(80)], [first.at, again.at]);
});

test('a clock that is ahead observed now; what is older than seven days is not kept (NET-8.R4)', async () => {
  const ahead = result(target, 'common', [22], { endedAgo: -3600 });
  assert.equal(await report(ahead), 'accepted');
  assert.ok((await observation(22)).observed_at.getTime() <= Date.now() + 1000);
  const old = result(target, 'common', [25], { endedAgo: 7.1 * 86_400 });
  assert.equal(await report(old), 'accepted');
  assert.equal(await observation(25), undefined);
});

test('what a service writes is stored without control characters, and each port once', async () => {
  const hostile = result(target, 'common', [22]);
  const product = 'Evil\u0000\u001b[31m<script>\u202e';
  hostile.services = [
    service(22, { product: 'first' }),
    service(22, { product, extra_info: '\u0007', version: `'; drop table scan_attempts; --` }),
    service(22, { transport: 'udp' }),
  ];
  assert.equal(await report(hostile), 'accepted');
  const { rows } = await stage.pool.query(
    "select product, extra_info, version from scan_observations where transport = 'tcp'",
  );
  assert.deepEqual(rows, [
    { product: 'Evil  [31m<script>', extra_info: null, version: `'; drop table scan_attempts; --` },
  ]);
});

test('a time that no clock shows is refused by name, and nothing of the report is kept', async () => {
  for (const time of ['2016-12-31T23:59:60Z', '0000-01-01T00:00:00Z', '1969-12-31T23:59:59Z'])
    for (const change of [
      { at: time },
      { started_at: time },
      { finished_at: time },
      { services: [service(22, { observed_at: time })] },
      { services: [service(22, { first_observed_at: time })] },
      { pauses: [{ reason: 'cpu' as const, started_at: time, ended_at: time }] },
    ]) {
      const { status } = await stage.ask(result(target, 'common', [], change));
      assert.equal(status, 422, JSON.stringify(change));
    }
  const { rows } = await stage.pool.query('select 1 from scan_attempts');
  assert.equal(rows.length, 0);
});

test('two copies of one result at the same time are stored once', async () => {
  const body = result(target, 'full', [22, 80, 443]);
  const receipts = await Promise.all(Array.from({ length: 6 }, () => report(body)));
  assert.deepEqual(receipts.sort(), ['accepted', ...Array(5).fill('duplicate')]);
});

test('no value of JSON in any place of a report is a fault of the server', async () => {
  for (const body of hostileBodies(result(target, 'common', [22]), hostileReports, 13)) {
    const { status, json } = await stage.ask(body);
    assert.ok(status < 500, `${status} ${JSON.stringify(body).slice(0, 500)}: ${JSON.stringify(json)}`);
  }
});
