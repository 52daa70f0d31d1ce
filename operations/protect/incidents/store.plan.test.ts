import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemActor } from '#operations/accounts/index.ts';
import { createWorld } from '#operations/testing/dated-world.ts';
import { explainStatements, rowsReadBy } from '#operations/testing/explain-statements.ts';
import { worldNowMs } from '#operations/testing/world-time.ts';

test('a page of incidents reads its own rows in their order, in the middle of a long list too', async () => {
  await using world = await createWorld();
  const { tenant } = await world.createCustomer('Planned');
  const { serverId } = await world.deploy(tenant, 'attacked');
  await world.deploy(tenant, 'other');
  const { id: projectId } = await world.adminProjects.create(systemActor, {
    name: 'Monitor',
    permissions: ['ddos_incident_ingest'],
    clusterIds: null,
  });
  await world.database.pool.query(
    `insert into protect_incidents (incident_id, project_id, source_site_id, allocation_id, tenant_id, server_id, address,
      revision, direction, class, severity, vectors, state, started_at, detected_at, last_observed_at, recovered_at,
      peak_bps, peak_bps_at, peak_pps, peak_pps_at, total_bytes, total_packets, coverage, is_drill, actions)
    select gen_random_uuid(), $1, 1, a.id, a.tenant_id, a.server_id, a.address, 1, 'inbound', 'syn_flood', 'attack', '[]',
      'recovered', at, at, at, at, 1, at, 1, at, 1, 1, 'complete', false, '[]'
    from allocations a, (select svc_now() - n * interval '1 hour' as at from generate_series(1, 3000) n) hours
    where a.server_id <> $2 or extract(epoch from at)::bigint / 3600 % 20 = 0`,
    [projectId, serverId],
  );
  await world.database.pool.query('analyze protect_incidents');
  const startedMs = worldNowMs() - 1_500 * 3_600_000;
  const after = { startedMs, id: 'ffffffff-ffff-ffff-ffff-ffffffffffff' };
  const query = { severity: 'attack', after, limit: 51 } as const;
  const nodes = await explainStatements(world.database, async () => {
    const page = await world.protectIncidents.list(systemActor, { serverId, tenantId: tenant.id }, query);
    assert.equal(page.length, 51);
  });
  const [scan, ...others] = nodes.filter((node) => node['Relation Name'] === 'protect_incidents');
  assert.deepEqual([scan!['Index Name'], others], ['protect_incidents_server_id', []]);
  assert.match(scan!['Index Cond']!, /server_id = .*ROW\(started_at, incident_id\) </);
  // Rows of one time stand together; the limit may cut them anywhere.
  assert.ok(rowsReadBy(scan!) <= 52, `${rowsReadBy(scan!)} rows`);
});
