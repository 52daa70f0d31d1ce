import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemActor } from '#operations/accounts/index.ts';
import { createWorld } from '#operations/testing/dated-world.ts';
import { explainStatements } from '#operations/testing/explain-statements.ts';
import {
  createFindingMonitor,
  findingOf,
  projectedService,
  projectionOf,
} from '#operations/testing/projection-of.ts';

test('findings of a server are read by its own generations, beside many of others', async () => {
  await using world = await createWorld();
  const { tenant } = await world.createCustomer('Planned');
  const { serverId } = await world.deploy(tenant, 'planned');
  await world.backdate(serverId, '1 day');
  const [first] = await world.addresses.listAllocationsOfServers([serverId]);
  const monitor = await createFindingMonitor(world);
  const findings = Array.from({ length: 20 }, (_, n) => findingOf(`CVE-2024-${1000 + n}`));
  await monitor.deliver(projectionOf(first!, { services: [projectedService({ findings })] }));
  // The same of 1,000 other generations.
  await world.database.pool.query(
    `with others as (
       insert into allocations (pool_id, cluster_id, tenant_id, server_id, address, prefix_length, gateway, is_primary, released_at)
       select pool_id, cluster_id, tenant_id, server_id, '198.18.0.0'::inet + n, prefix_length, gateway, false, svc_now()
       from allocations, generate_series(1, 1000) n where id = $1 returning *),
     projections as (
       insert into finding_projections (allocation_id, tenant_id, server_id, address, project_id, source_site_id, scan_id, checked_at)
       select o.id, o.tenant_id, o.server_id, host(o.address), p.project_id, 1, p.scan_id, p.checked_at
       from others o, finding_projections p where p.allocation_id = $1 returning allocation_id),
     services as (
       insert into finding_services (allocation_id, transport, port, scan_id, observed_at, fingerprint)
       select p.allocation_id, s.transport, s.port, s.scan_id, s.observed_at, s.fingerprint
       from projections p, finding_services s where s.allocation_id = $1 returning allocation_id)
     insert into findings (allocation_id, transport, port, cve_id, fingerprint, is_upstream, severity, score, summary,
       published_at, modified_at, is_disputed, is_known_exploited)
     select s.allocation_id, f.transport, f.port, f.cve_id, f.fingerprint, false, f.severity, f.score, f.summary,
       f.published_at, f.modified_at, false, false
     from services s, findings f where f.allocation_id = $1`,
    [first!.id],
  );
  await world.database.pool.query('analyze');
  const subject = { serverId, tenantId: tenant.id };
  const nodes = await explainStatements(world.database, async () => {
    const page = await world.protectFindings.list(systemActor, subject, { limit: 50 });
    assert.equal(page.length, 20);
    assert.equal(await world.protectFindings.count(systemActor, subject, {}), 20);
    await world.protectFindings.read(systemActor, subject);
  });
  const whole = nodes.filter(
    (node) =>
      node['Node Type'] === 'Seq Scan' &&
      ['finding_projections', 'finding_services', 'findings'].includes(node['Relation Name'] ?? ''),
  );
  assert.deepEqual(whole, []);
  const nodesOfAll = await explainStatements(world.database, async () => {
    const page = await world.protectFindings.listAll(systemActor, { state: 'active', limit: 51 });
    assert.equal(page.length, 20);
  });
  const inOrder = nodesOfAll.some((node) => node['Index Name'] === 'findings_worst');
  assert.ok(inOrder, 'active ones of all customers are read in the order of their pages');
});
