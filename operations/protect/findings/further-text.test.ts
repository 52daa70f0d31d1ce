/** Ignores hold for product and version, also where an earlier monitor sends a fingerprint of more. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import {
  createFindingMonitor,
  type FindingMonitor,
  findingOf,
  fingerprintOf,
  projectedService,
  projectionOf,
} from '#operations/testing/projection-of.ts';
import { ownerOf } from '#operations/testing/scan-of.ts';
import { createEarlierDatabase } from '#service-kit/testing/earlier-database.ts';

let world: World;
let monitor: FindingMonitor;
before(async () => {
  world = await createWorld();
  monitor = await createFindingMonitor(world);
});
after(() => world[Symbol.asyncDispose]());

const cve = 'CVE-2019-11596';
const memcached = (sent: string, version = '1.5.6') =>
  projectedService({
    ...{ port: 11_211, product: 'Memcached', version, fingerprint: sent.repeat(64) },
    findings: [findingOf(cve)],
  });

test('NET-2.6.5: an ignore survives a check that differs in the fingerprint alone, and is not inherited by another version', async () => {
  const customer = await world.createCustomer('Further text');
  const { serverId } = await world.deploy(customer.tenant, 'cache-1');
  await world.backdate(serverId, '2 days');
  const [address] = await world.addresses.listAllocationsOfServers([serverId]);
  const actor = ownerOf(customer);
  const of = { serverId, tenantId: customer.tenant.id };
  let seconds = 500;
  const check = async (service: ReturnType<typeof memcached>) => {
    seconds -= 50;
    const projection = projectionOf(address!, { checkedSecondsAgo: seconds, services: [service] });
    assert.deepEqual(await monitor.deliver(projection), ['accepted']);
    const { summary } = await world.protectFindings.read(actor, of);
    return [summary.active, summary.ignored];
  };
  assert.deepEqual(await check(memcached('a')), [1, 0]);
  const key = { address: null, transport: 'tcp', port: 11_211, cveId: cve } as const;
  await world.protectFindings.ignore(actor, serverId, {
    ...{ ...key, fingerprint: fingerprintOf('Memcached 1.5.6'), reason: 'only local', until: null },
  });
  assert.deepEqual(await check(memcached('b')), [0, 1]);
  assert.deepEqual(await check(memcached('b', '1.5.7')), [1, 0]);
});

test('NET-2.6.5: ignores and known findings of before an upgrade go on under the fingerprint of product and version', async () => {
  await using earlier = await createEarlierDatabase('operations', '0303', '9999');
  const { pool } = earlier;
  // Without the servers and customers that the rows are about.
  const client = await pool.connect();
  try {
    await client.query(`alter table known_findings drop constraint known_findings_server_id_fkey,
      drop constraint known_findings_tenant_id_fkey; set session_replication_role = replica`);
    await client.query(`
      insert into finding_projections (allocation_id, tenant_id, server_id, address, project_id, source_site_id)
      values (1, 1, 1, '203.0.113.10', 1, 1), (2, 1, 1, '203.0.113.11', 1, 1);
      insert into finding_services (allocation_id, transport, port, scan_id, observed_at, fingerprint, product, version)
      values (1, 'tcp', 11211, gen_random_uuid(), now(), 'one', 'Memcached', '1.5.6'),
        (2, 'tcp', 11211, gen_random_uuid(), now(), 'two', 'Memcached', '1.5.6');
      insert into findings (allocation_id, transport, port, cve_id, fingerprint, is_upstream, summary, published_at, modified_at,
        is_disputed, is_known_exploited)
      select allocation_id, transport, port, '${cve}', fingerprint, false, '', now(), now(), false, false from finding_services;
      insert into finding_ignores (tenant_id, server_id, allocation_id, transport, port, fingerprint, cve_id, reason)
      values (1, 1, 1, 'tcp', 11211, 'one', '${cve}', 'only local'), (1, 1, 1, 'tcp', 11211, 'earlier', '${cve}', 'only local');
      insert into known_findings (server_id, tenant_id, transport, port, fingerprint, cve_id, first_at, severity_rank)
      values (1, 1, 'tcp', 11211, 'one', '${cve}', '2026-01-01Z', 1), (1, 1, 'tcp', 11211, 'two', '${cve}', '2026-02-01Z', 3)`);
  } finally {
    client.release(true);
  }
  await earlier.upgrade();
  const { rows } = await pool.query(`
    select f.allocation_id::int as id, f.fingerprint, s.fingerprint = f.fingerprint as "isOfService", k.severity_rank as rank,
      k.first_at as "firstAt", i.reason
    from findings f join finding_services s using (allocation_id, transport, port)
    left join known_findings k on k.fingerprint = f.fingerprint and k.cve_id = f.cve_id
    left join finding_ignores i on i.allocation_id = f.allocation_id and i.fingerprint = f.fingerprint order by 1`);
  const fingerprint = fingerprintOf('Memcached 1.5.6');
  const known = { fingerprint, isOfService: true, rank: 3, firstAt: new Date('2026-01-01Z') };
  assert.deepEqual(rows, [
    { id: 1, ...known, reason: 'only local' },
    { id: 2, ...known, reason: null },
  ]);
});
