import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { sql } from 'kysely';
import { systemClock } from '#common/clock/index.ts';
import { createReporter, silentReporter } from '#common/reporter/index.ts';
import { type AssessWorld, addressOf, nginx, openssh, startAssessWorld } from '../testing/assess-world.ts';
import { records } from '../testing/records/index.ts';
import { type AssessorDeps, createAssessor } from './assessor.ts';

let world: AssessWorld;
before(async () => {
  world = await startAssessWorld(3);
});
after(() => world[Symbol.asyncDispose]());
beforeEach(async () => {
  await world.pool.query(
    `truncate scan_attempts, scan_observations, scan_identifications, vulnerability_servers, vulnerability_software, vulnerability_products,
      vulnerability_advisories, vulnerability_ignores, alert_episodes, events, leases cascade`,
  );
});

const [first, second, third] = [addressOf(1), addressOf(2), addressOf(3)];
const read = async (serverId = 1) => (await world.vulnerabilities.readServer(7, serverId))!;
const cvesOf = async (serverId = 1, port = 22) =>
  (await read(serverId)).services
    .find((one) => one.port === port)!
    .findings.map(({ finding }) => finding.cve)
    .sort();
/** Which rows were written, by their versions. */
const versions = async (table: string) =>
  (await world.rows<{ row: string }>(`select ctid || ' ' || xmin as row from ${table} order by 1`)).map(
    ({ row }) => row,
  );
const anAssessor = (change: Partial<AssessorDeps>) =>
  createAssessor({
    ...{
      db: () => world.database.db,
      clock: systemClock,
      reporter: silentReporter,
      scans: world.monitor.scans,
    },
    ...{ severe: ['high', 'critical'], onChecked: async () => {}, ...change },
  });

test('NET-2.6.1: every open port has one assessment, bound to the scan and the software that it rests on', async () => {
  await world.copyRecords();
  const common = await world.scan(first, [openssh('9.6'), nginx('1.18.0')], { endedAgo: 600 });
  const full = await world.scan(first, [openssh('9.6'), nginx('1.25.3', { port: 8080 })], {
    ...{ profile: 'full', endedAgo: 60 },
  });
  assert.equal(await world.assess(), 1);
  const { server, services } = await read();
  assert.deepEqual(
    services.map(({ port, scanId, version, reason, productKey }) => [
      port,
      scanId,
      version,
      reason,
      productKey,
    ]),
    [
      [22, full, '9.6', null, 'openssh'],
      [80, common, '1.18.0', null, 'nginx'],
      [8080, full, '1.25.3', null, 'nginx'],
    ],
  );
  const [ssh, web, other] = services;
  assert.notEqual(web!.fingerprint, other!.fingerprint);
  assert.equal(Math.round((ssh!.fullAtMs! - ssh!.commonAtMs!) / 60_000), 9);
  const evidence = services.map(({ product, version, extraInfo, port }) => ({
    ...{ product, version, extraInfo, method: 'probed' as const, confidence: 10 },
    cpe: [port === 22 ? `cpe:/a:openbsd:openssh:${version}` : `cpe:/a:igor_sysoev:nginx:${version}`],
  }));
  const expected = await world.vulnerabilities.assess(evidence);
  assert.deepEqual(
    services.map(({ findings }) => findings.map(({ finding }) => finding)),
    expected.map(({ findings }) => findings),
  );
  assert.ok(expected.every(({ findings }) => findings.length > 0));
  const all = expected.flatMap(({ findings }) => findings);
  const count = (rating: string) => all.filter(({ severity }) => severity?.rating === rating).length;
  assert.deepEqual(
    [server.services, server.unable, server.ignored, server.critical, server.high, server.medium, server.low],
    [3, 0, 0, count('critical'), count('high'), count('medium'), count('low')],
  );
  assert.ok(server.checkedAtMs! >= server.databaseAtMs!);
});

test('NET-2.6.2: a package of a distribution makes unmarked services of its server unable, and of no other', async () => {
  await world.copyRecords();
  await world.scan(first, [openssh('9.6p1 Ubuntu 3ubuntu13.5'), nginx('1.18.0')]);
  await world.scan(second, [
    nginx('1.18.0'),
    { port: 25, product: 'Exim smtpd', version: '4.96', cpe: ['cpe:/a:exim:exim:4.96'] },
  ]);
  await world.assess();
  const { server, services } = await read();
  assert.deepEqual(
    services.map(({ reason }) => reason),
    ['distribution_package', 'likely_packaged'],
  );
  assert.deepEqual([server.unable, server.critical + server.high + server.medium], [2, 0]);
  assert.ok(
    services.every(({ findings }) => findings.length > 0),
    'those of the original are one step away',
  );
  const other = await read(2);
  assert.deepEqual(
    other.services.map(({ port, reason }) => [port, reason]),
    [
      [25, 'unknown_product'],
      [80, null],
    ],
  );
  assert.ok(other.server.high > 0);
});

test('NET-2.6.4: after a refresh what changed is written and the rest is not, and every server has a newer check', async () => {
  await world.copyRecords(records.filter(({ cve }) => cve.id !== 'CVE-2024-6387'));
  await world.scan(first, [openssh('9.6'), nginx('1.18.0')]);
  await world.scan(second, [nginx('1.18.0')]);
  await world.assess();
  const before = [await read(), await read(2)];
  const rows = await Promise.all(['vulnerability_services', 'vulnerability_findings'].map(versions));
  assert.equal(await world.assess(), 0, 'nothing is due');
  assert.ok(!(await cvesOf()).includes('CVE-2024-6387'));
  await world.copyRecords();
  assert.equal(await world.assess(), 2);
  assert.ok((await cvesOf()).includes('CVE-2024-6387'));
  const after = [await read(), await read(2)];
  assert.equal(after[0]!.server.high, before[0]!.server.high + 1);
  for (const i of [0, 1]) {
    assert.ok(after[i]!.server.checkedAtMs! > before[i]!.server.checkedAtMs!);
    assert.ok(after[i]!.server.databaseAtMs! > before[i]!.server.databaseAtMs!);
  }
  const [services, findings] = await Promise.all(
    ['vulnerability_services', 'vulnerability_findings'].map(versions),
  );
  assert.deepEqual(services, rows[0], 'services are as they were');
  const kept = new Set(findings);
  // Findings behind the new one move by one place.
  const nginxRows = await world.rows<{ n: number }>(
    `select count(*)::int as n from vulnerability_findings f join vulnerability_software s on s.id = f.software_id where product = 'nginx'`,
  );
  assert.ok(rows[1]!.filter((row) => kept.has(row)).length >= nginxRows[0]!.n);
});

test('NET-2.6.3: a failed refresh keeps findings and their times; without records a service is unable', async () => {
  await world.scan(first, [openssh('9.6')]);
  await world.assess();
  assert.deepEqual(
    (await read()).services.map(({ reason }) => reason),
    ['no_database'],
  );
  await world.copyRecords(records, ['openssh']);
  await world.assess();
  const before = await read();
  assert.deepEqual([before.services[0]!.reason, before.services[0]!.findings.length > 0], [null, true]);
  await world.pool.query("update vulnerability_products set error = 'no answer', attempted_at = svc_now()");
  assert.equal(await world.assess(), 0);
  assert.deepEqual(await read(), before);
});

test('NET-2.6.1: a record that names every version is shown apart: not active, not counted, not alerted', async () => {
  const every = structuredClone(records.find(({ cve }) => cve.id === 'CVE-2007-2768')!);
  every.cve.metrics = { cvssMetricV31: [{ cvssData: { baseScore: 9.8, baseSeverity: 'CRITICAL' } }] };
  await world.copyRecords([every]);
  await world.scan(first, [openssh('9.6')]);
  await world.assess();
  const { server, services } = await read();
  assert.deepEqual([server.critical, server.high, server.unrated], [0, 0, 0]);
  assert.deepEqual([services[0]!.reason, services[0]!.findings], [null, []]);
  assert.deepEqual(
    services[0]!.apart.map(({ why, finding }) => [why, finding.cve]),
    [['any_version', 'CVE-2007-2768']],
  );
  assert.deepEqual(await world.rows('select 1 from vulnerability_noted'), []);
});

test('NET-2.6.4: new evidence is assessed, a new version by its own records, and closed and expired evidence goes', async () => {
  await world.copyRecords();
  await world.scan(first, [openssh('9.6'), nginx('1.18.0')], { endedAgo: 300 });
  await world.assess();
  const old = (await read()).services[0]!;
  await world.scan(first, [openssh('9.9')], { endedAgo: 100 });
  assert.equal(await world.assess(), 1);
  const { services } = await read();
  assert.deepEqual(
    services.map(({ port, version }) => [port, version]),
    [[22, '9.9']],
    'port 80 is closed',
  );
  assert.notEqual(services[0]!.fingerprint, old.fingerprint);
  assert.ok(!(await cvesOf()).includes('CVE-2024-6387'));
  await world.pool.query("update scan_observations set observed_at = svc_now() - interval '7 days 1 minute'");
  await world.pool.query('update vulnerability_servers set expires_at = svc_now(), due_at = svc_now()');
  await world.assess();
  const { server, services: none } = await read();
  assert.deepEqual([none, server.services, server.high], [[], 0, 0]);
});

test('NET-2.6.4: a result that arrives while its server is assessed has it assessed again', async () => {
  await world.copyRecords();
  await world.scan(first, [openssh('9.6')], { endedAgo: 300 });
  const { scans } = world.monitor;
  let reads = 0;
  const assessor = anAssessor({
    scans: {
      async listEvidence(servers) {
        const found = await scans.listEvidence(servers);
        reads += 1;
        if (reads === 1) await world.scan(first, [openssh('9.9')], { endedAgo: 10 });
        return found;
      },
    },
  });
  await assessor.runOnce();
  assert.equal(reads, 2);
  assert.equal((await read()).services[0]!.version, '9.9');
  await assessor.loop.stop();
});

test('NET-2.6.4: a process that dies in a page leaves it whole to the next one', async () => {
  await world.copyRecords();
  for (const address of [first, second, third]) await world.scan(address, [openssh('9.6')]);
  await world.assess();
  const before = await Promise.all([1, 2, 3].map(read));
  await world.copyRecords(records.filter(({ cve }) => cve.id !== 'CVE-2024-6387'));
  const dying = anAssessor({
    async onChecked(trx) {
      // The connection ends with its transaction open, as that of a killed process.
      await sql`select pg_terminate_backend(pg_backend_pid())`.execute(trx);
    },
  });
  await world.pool.query('truncate leases');
  await assert.rejects(dying.runOnce());
  await dying.loop.stop();
  assert.deepEqual(
    (await Promise.all([1, 2, 3].map(read))).map(({ server }) => server.checkedAtMs),
    before.map(({ server }) => server.checkedAtMs),
    'no server is half assessed',
  );
  await world.pool.query('truncate leases');
  await world.assess();
  for (const serverId of [1, 2, 3]) assert.ok(!(await cvesOf(serverId)).includes('CVE-2024-6387'));
});

test('NET-2.6.4: a server that can not be assessed waits while the others are', async () => {
  await world.copyRecords();
  await world.scan(first, [openssh('9.6')]);
  await world.scan(second, [openssh('9.6')]);
  const log: string[] = [];
  const { scans } = world.monitor;
  const assessor = anAssessor({
    reporter: createReporter({ program: 'monitor', write: (line) => log.push(line) }),
    scans: {
      async listEvidence(servers) {
        if (servers.some(({ serverId }) => serverId === 1)) throw new Error('a fault of ours');
        return scans.listEvidence(servers);
      },
    },
  });
  await assessor.runOnce();
  await assessor.loop.stop();
  assert.equal((await read(2)).services.length, 1);
  assert.equal((await read(1)).server.checkedAtMs, null);
  assert.match(log.join(), /can not be assessed/);
  assert.equal(await world.assess(), 0, 'it waits');
  await world.scan(first, [openssh('9.6')], { endedAgo: 5 });
  assert.equal(await world.assess(), 1, 'until there is new evidence, or ten minutes');
});

test('NET-2.6: operators are alerted once of a new severe finding of a server, not after each scan or refresh', async () => {
  const named = (...ids: string[]) => records.filter(({ cve }) => ids.includes(cve.id));
  const without = named('CVE-2023-48795');
  const both = named('CVE-2023-48795', 'CVE-2024-6387');
  const severe = async () =>
    world.rows<{
      subject_name: string;
      details: { found: number; first: string };
      resolution: string | null;
    }>(
      "select subject_name, details, resolution from alert_episodes where kind = 'findings_new' order by id",
    );
  const told = async () => (await severe()).map(({ details, resolution }) => [details.found, resolution]);
  await world.copyRecords(without);
  await world.scan(first, [openssh('9.6')], { endedAgo: 300 });
  await world.assess();
  assert.deepEqual(await told(), [], 'none is severe');
  await world.copyRecords(both);
  await world.assess();
  assert.deepEqual(await told(), [[1, null]]);
  assert.match((await severe())[0]!.details.first, /^CVE-2024-6387 at tcp\/22 \(OpenSSH 9\.6\)$/);
  await world.scan(first, [openssh('9.6')], { endedAgo: 200 });
  await world.copyRecords(both);
  await world.assess();
  // A check that finds nothing, as after a scan that missed the version, which mends nothing, and the same software again.
  await world.scan(first, [openssh('9.6', { version: null, cpe: [] })], { endedAgo: 150 });
  await world.assess();
  assert.deepEqual(await told(), [[1, 'removed']]);
  await world.scan(first, [openssh('9.6')], { endedAgo: 100 });
  await world.assess();
  const again = [
    [1, 'removed'],
    [1, null],
  ];
  assert.deepEqual(await told(), again, 'the alert follows the finding');
  await world.scan(first, [openssh('9.5')], { endedAgo: 50 });
  await world.assess();
  assert.deepEqual(
    await told(),
    [
      [1, 'removed'],
      [1, 'removed'],
      [1, null],
    ],
    'another version is new',
  );
  const events = await world.rows<{ details: { cves: string[] } }>(
    "select details from events where kind = 'potential_vulnerabilities_found' order by id",
  );
  assert.deepEqual(
    events.map(({ details }) => details.cves),
    [['CVE-2024-6387'], ['CVE-2024-6387']],
  );
});
