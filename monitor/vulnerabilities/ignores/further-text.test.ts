/** What a service shows beside its product and version changes with every scan, and ends no ignore. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { ScanService } from '#contracts/port-scan/index.ts';
import { systemActor } from '#monitor/operators/index.ts';
import { createEarlierDatabase } from '#service-kit/testing/earlier-database.ts';
import { type AssessWorld, addressOf, startAssessWorld } from '../testing/assess-world.ts';

let world: AssessWorld;
before(async () => {
  world = await startAssessWorld();
  await world.copyRecords();
});
after(() => world[Symbol.asyncDispose]());

const cve = 'CVE-2019-11596';
const memcached = (uptime: number, version = '1.5.6'): Partial<ScanService> => ({
  ...{ port: 11_211, service: 'memcached', product: 'Memcached', version, confidence: 10 },
  ...{ extra_info: `uptime ${uptime} seconds`, cpe: [`cpe:/a:memcached:memcached:${version}`] },
});
const read = async () => (await world.vulnerabilities.readServer(7, 1))!;

async function scan(service: Partial<ScanService>, endedAgo: number) {
  await world.scan(addressOf(1), [service], { endedAgo });
  await world.assess();
  const { services } = await read();
  const finding = services[0]?.findings.find((one) => one.finding.cve === cve);
  return { service: services[0]!, isIgnored: finding !== undefined && finding.ignore !== null };
}

test('NET-2.6.5: an ignore survives scans that change only the uptime, and is not inherited by another version', async () => {
  const { service } = await scan(memcached(4711), 900);
  const { address, transport, port, fingerprint } = service;
  const key = { clusterId: 7, serverId: 1, address, transport, port, fingerprint, cve };
  await world.vulnerabilities.ignore(systemActor, { ...key, reason: 'only local', untilMs: null });
  const later = await scan(memcached(8311), 600);
  assert.equal(later.isIgnored, true);
  assert.equal(later.service.extraInfo, 'uptime 8311 seconds', 'what is shown is what the scan read');
  const { rows } = await world.pool.query(
    "select 1 from events where kind = 'potential_vulnerabilities_found'",
  );
  assert.equal(rows.length, 1, 'the same finding is told once');
  assert.equal((await scan(memcached(60, '1.5.7'), 300)).isIgnored, false);
});

test('a mark of a package in the further text still decides about the assessment', async () => {
  await scan(memcached(1), 200);
  const marked = await scan({ ...memcached(1), extra_info: 'Ubuntu' }, 100);
  assert.equal(marked.service.reason, 'distribution_package');
});

test('NET-2.6.5: ignores and told findings of before an upgrade go on under the fingerprint of product and version', async () => {
  await using earlier = await createEarlierDatabase('monitor', '0583');
  await earlier.pool.query(`
    insert into sites (name) values ('Site');
    insert into vulnerability_servers (cluster_id, vm_id, site_id) select 7, 1, id from sites;
    insert into vulnerability_software (product, version) values ('memcached', '1.5.6 0 0');
    insert into vulnerability_services (cluster_id, vm_id, address, transport, port, scan_id, first_observed_at, observed_at,
      product, version, extra_info, fingerprint, software_id, product_key)
    select 7, 1, address, 'tcp', 11211, gen_random_uuid(), now(), now(), 'Memcached', '1.5.6', 'uptime', fingerprint, id, 'memcached'
    from vulnerability_software, (values ('203.0.113.10'::inet, 'one'), ('203.0.113.11', 'two')) as v(address, fingerprint);
    insert into vulnerability_ignores (cluster_id, vm_id, address, transport, port, fingerprint, cve, reason, created_by)
    values (7, 1, '203.0.113.10', 'tcp', 11211, 'one', '${cve}', 'only local', 'operator'),
      (7, 1, '203.0.113.10', 'tcp', 11211, 'of an earlier version', '${cve}', 'only local', 'operator');
    insert into vulnerability_noted (cluster_id, vm_id, transport, port, fingerprint, software_id, seq)
    select 7, 1, 'tcp', 11211, fingerprint, id, seq from vulnerability_software, (values ('one', 3), ('two', 5)) as v(fingerprint, seq)`);
  await earlier.upgrade();
  const { rows: ignores } = await earlier.pool.query(
    `select i.reason from vulnerability_ignores i join vulnerability_services v using (address, port, fingerprint)`,
  );
  const { rows: noted } = await earlier.pool.query(
    `select n.seq::int, count(*)::int as services from vulnerability_noted n
     join vulnerability_services v using (port, fingerprint) group by n.seq`,
  );
  assert.deepEqual([ignores, noted], [[{ reason: 'only local' }], [{ seq: 5, services: 2 }]]);
  const { rows: made } = await earlier.pool.query('select distinct fingerprint from vulnerability_services');
  assert.equal(made[0].fingerprint, (await scan(memcached(5), 50)).service.fingerprint);
});
