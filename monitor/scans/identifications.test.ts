import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { makeScan, pairHistories } from '#contracts/port-scan/testing/interrupted-scans.ts';
import { createEarlierDatabase } from '#service-kit/testing/earlier-database.ts';
import { createHistoryTaker } from './testing/identification-histories.ts';
import { type ScanStage, startScanStage } from './testing/scan-world.ts';

let stage: ScanStage;
let take: Awaited<ReturnType<typeof createHistoryTaker>>;
before(async () => {
  stage = await startScanStage();
  take = await createHistoryTaker(stage);
});
after(() => stage[Symbol.asyncDispose]());

test('NET-2.7.5, NET-2.7.10: what a scan identified stays with its time, wherever another one ends, in any order', async () => {
  for (const history of pairHistories(Date.now())) assert.deepEqual(await take(history), [], history.name);
});

test('NET-2.7.10: an identification expires after seven days, while the port is still seen open', async () => {
  const nowMs = Date.now();
  const scans = [
    makeScan('complete', 'common', nowMs - 60_000),
    makeScan('before_identification', 'common', nowMs),
  ];
  assert.deepEqual(await take({ name: '', scans }), []);
  await stage.pool.query(
    "update scan_identifications set identified_at = svc_now() - interval '7 days 1 second'",
  );
  const [port] = await stage.monitor.scans.listOpenPorts(stage.siteId, 1);
  assert.deepEqual([port?.version, port?.method, port?.identifiedAtMs], [null, 'table', null]);
  const [evidence] = await stage.monitor.scans.listEvidence([{ clusterId: 7, serverId: 1 }]);
  assert.deepEqual([evidence?.version, evidence?.scanId], [null, scans[1]!.scan_id]);
});

test('NET-2.7.5: what was identified before an upgrade is an identification after it', async () => {
  await using earlier = await createEarlierDatabase('monitor', '0584');
  await earlier.pool.query(`
    insert into sites (name) values ('Site');
    insert into sensors (site_id, host_name, node) select id, 'node-1', 'node-1' from sites;
    insert into scan_observations (cluster_id, vm_id, address, profile, transport, port, site_id, sensor_id, first_observed_at,
      observed_at, scan_id, service, product, method, confidence, cpe)
    select 7, 1, '203.0.113.10', 'full', 'tcp', port, site_id, id, now(), '2026-01-01Z', gen_random_uuid(), service, product, method,
      confidence, '{}'
    from sensors, (values (22, 'ssh', 'OpenSSH', 'probed', 10), (80, 'http', null, 'table', 3),
      (443, 'tcpwrapped', null, 'probed', 8)) as v(port, service, product, method, confidence)`);
  await earlier.upgrade();
  const { rows } = await earlier.pool.query(
    'select port, product, identified_at as at from scan_identifications',
  );
  assert.deepEqual(rows, [{ port: 22, product: 'OpenSSH', at: new Date('2026-01-01Z') }]);
});
