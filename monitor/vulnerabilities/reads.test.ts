import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemActor } from '#monitor/operators/index.ts';
import { type AssessWorld, addressOf, nginx, openssh, startAssessWorld } from './testing/assess-world.ts';
import { records } from './testing/records/index.ts';

let world: AssessWorld;
before(async () => {
  world = await startAssessWorld(3);
  await world.copyRecords();
  await world.scan(addressOf(1), [nginx('1.18.0')]);
  await world.scan(addressOf(2), [openssh('9.6'), nginx('1.18.0', { port: 8080 })]);
  await world.scan(addressOf(3), [{ port: 25, product: 'Exim smtpd', version: '4.96', cpe: [] }]);
  await world.assess();
});
after(() => world[Symbol.asyncDispose]());

const page = { offset: 0, limit: 50 };

test('NET-2.6.1: servers are listed by the severity of their active findings, and in pages', async () => {
  const servers = await world.vulnerabilities.listServers(world.siteId, page);
  assert.deepEqual(
    servers.map(({ serverId }) => serverId),
    [2, 1, 3],
  );
  assert.ok(servers[0]!.high > servers[1]!.high);
  assert.deepEqual(await world.vulnerabilities.listServers(world.siteId, { offset: 1, limit: 1 }), [
    servers[1],
  ]);
  assert.deepEqual(await world.vulnerabilities.listServers(world.siteId + 1, page), []);
  const totals = await world.vulnerabilities.readTotals(null);
  assert.deepEqual(
    [totals.servers, totals.affected, totals.services, totals.unable, totals.waiting],
    [3, 2, 4, 1, 0],
  );
  assert.equal(totals.high, servers[0]!.high + servers[1]!.high);
});

test('NET-2.6.1: records are listed with what they touch, known exploited ones first', async () => {
  const cves = await world.vulnerabilities.listCves(world.siteId, page);
  const ranks = cves.map(({ finding }) => [finding.isKnownExploited, finding.severity?.score ?? -1] as const);
  assert.deepEqual(
    ranks,
    ranks.toSorted((a, b) => Number(b[0]) - Number(a[0]) || b[1] - a[1]),
  );
  const one = cves.find(({ cve }) => cve === 'CVE-2021-23017')!;
  assert.deepEqual([one.services, one.ignored, one.products], [2, 0, ['nginx']]);
  const touched = await world.vulnerabilities.listTouched('CVE-2021-23017', world.siteId, page);
  assert.deepEqual(
    touched.map(({ serverId, port, isIgnored }) => [serverId, port, isIgnored]),
    [
      [1, 80, false],
      [2, 8080, false],
    ],
  );
  const [{ address, transport, port, fingerprint }] = touched as [(typeof touched)[0]];
  const id = await world.vulnerabilities.ignore(systemActor, {
    ...{ clusterId: 7, serverId: 1, address, transport, port, fingerprint, cve: 'CVE-2021-23017' },
    ...{ reason: 'no resolver is configured', untilMs: null },
  });
  const again = (await world.vulnerabilities.listCves(null, page)).find(
    ({ cve }) => cve === 'CVE-2021-23017',
  )!;
  assert.deepEqual([again.services, again.ignored], [2, 1]);
  assert.equal((await world.vulnerabilities.listTouched('CVE-2021-23017', null, page))[0]!.isIgnored, true);
  await world.vulnerabilities.endIgnore(systemActor, id);
  assert.equal((await world.vulnerabilities.findFinding('CVE-2021-23017'))!.severity!.rating, 'high');
  assert.equal(await world.vulnerabilities.findFinding('CVE-2019-0211'), null, 'it touches nothing here');
});

test('NET-2.6.3: a copy that was not refreshed for three days is a problem with its age, and is still used', async () => {
  const problems = async () => (await world.monitor.health.read()).problems.join();
  assert.equal((await problems()).includes('vulnerability database'), false);
  await world.pool.query(
    "update vulnerability_products set refreshed_at = svc_now() - interval '30 days', error = 'It does not answer.' where product = 'nginx'",
  );
  assert.match(
    await problems(),
    /copy of the vulnerability database was not refreshed for 30 days: It does not answer\. The last records are still used\./,
  );
  assert.equal((await world.vulnerabilities.listServers(null, page))[0]!.high > 0, true);
  await world.monitor.alerts.loop.runOnce();
  const alerts = await world.rows<{ kind: string }>(
    'select kind from alert_episodes where resolved_at is null order by 1',
  );
  assert.deepEqual(
    alerts.map(({ kind }) => kind).filter((kind) => kind !== 'findings_new'),
    ['vulnerability_copy_old'],
  );
  await world.copyRecords(records);
  assert.equal((await problems()).includes('vulnerability database'), false);
  await world.pool.query(
    "insert into vulnerability_products (product, first_attempt_at) values ('never-fetched', svc_now() - interval '4 days')",
  );
  assert.match(
    await problems(),
    /not refreshed for 4 days/,
    'a product that was never fetched, beside fresh ones',
  );
});
