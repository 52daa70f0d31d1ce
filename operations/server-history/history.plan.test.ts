/** How PostgreSQL reads what happened to servers: by server or by time, never the whole audit trail or all incidents. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemActor } from '#operations/accounts/index.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { explainStatements, type PlanNode, rowsReadBy } from '#operations/testing/explain-statements.ts';
import { ownerOf } from '#operations/testing/scan-of.ts';
import { worldNowMs } from '#operations/testing/world-time.ts';
import { toldEventsMax } from './index.ts';

const hourMs = 3_600_000;
let world: World;
let owner: ReturnType<typeof ownerOf>;
const serverIds: number[] = [];
before(async () => {
  world = await createWorld();
  const customer = await world.createCustomer('Planned');
  owner = ownerOf(customer);
  for (let at = 0; at < 12; at += 1)
    serverIds.push((await world.deploy(customer.tenant, `web-${at}`)).serverId);
  const { pool } = world.database;
  const project = await world.adminProjects.create(systemActor, {
    ...{ name: 'Monitor', permissions: ['ddos_incident_ingest'], clusterIds: null },
  });
  // A busy installation: changes of 1,000 other servers, and an incident in every third hour of four months for each server.
  await pool.query(
    `insert into audit_entries (operation, actor_kind, subject_kind, subject_id, tenant_id)
    select 'firewall.add', 'system', 'server', 1000 + n % 1000, $1 from generate_series(1, 10000) n`,
    [customer.tenant.id],
  );
  await pool.query(
    `insert into protect_incidents (incident_id, project_id, source_site_id, allocation_id, tenant_id, server_id, address,
      revision, direction, class, severity, vectors, state, started_at, detected_at, last_observed_at, recovered_at,
      peak_bps, peak_bps_at, peak_pps, peak_pps_at, total_bytes, total_packets, coverage, is_drill, actions)
    select gen_random_uuid(), $1, 1, a.id, a.tenant_id, a.server_id, a.address, 1, 'inbound', 'syn_flood', 'attack', '[]',
      'recovered', at, at, at, at, 1, at, 1, at, 1, 1, 'complete', false, '[]'
    from (select distinct on (server_id) * from allocations order by server_id, id) a,
      (select svc_now() - n * interval '1 hour' as at from generate_series(1, 3000, 3) n) hours`,
    [project.id],
  );
  await pool.query('analyze');
});
after(() => world[Symbol.asyncDispose]());

const of = (nodes: readonly PlanNode[], table: string) =>
  nodes.filter((node) => node['Relation Name'] === table);
const day = () => ({ fromMs: worldNowMs() - 24 * hourMs, toMs: worldNowMs() + hourMs });

test('events of ten servers are looked up by their servers, however much happened to others', async () => {
  const nodes = await explainStatements(world.database, async () => {
    const { events } = await world.serverHistory.list(owner, { serverIds: serverIds.slice(0, 10), ...day() });
    assert.equal(events.length, toldEventsMax);
  });
  for (const table of ['audit_entries', 'protect_incidents']) {
    const [scan, ...others] = of(nodes, table);
    assert.deepEqual(others, [], table);
    assert.notEqual(scan!['Node Type'], 'Seq Scan', table);
    assert.ok(rowsReadBy(scan!) <= 150, `${rowsReadBy(scan!)} rows of ${table}`);
  }
});

for (const [who, isEveryServer] of [
  ['operators', true],
  ['a customer', true],
  ['a customer who filters', false],
] as const)
  test(`attacks on many servers are read from the newest on, for ${who}`, async () => {
    const actor = who === 'operators' ? systemActor : owner;
    const nodes = await explainStatements(world.database, async () => {
      const { events } = await world.serverHistory.list(actor, { serverIds, isEveryServer, ...day() });
      assert.equal(events.length, toldEventsMax);
    });
    assert.deepEqual(of(nodes, 'audit_entries'), []);
    const [scan, ...others] = of(nodes, 'protect_incidents');
    assert.deepEqual([scan!['Index Name'], others], ['protect_incidents_started_at', []]);
    assert.ok(rowsReadBy(scan!) <= 60, `${rowsReadBy(scan!)} rows`);
    // Fewer than a chart has: the time ends the reading.
    const hours = { fromMs: worldNowMs() - 4 * hourMs, toMs: worldNowMs() + hourMs };
    const read = await explainStatements(world.database, async () => {
      const { events } = await world.serverHistory.list(actor, { serverIds, isEveryServer, ...hours });
      assert.ok(events.length > 0 && events.length < toldEventsMax);
    });
    for (const node of of(read, 'protect_incidents'))
      assert.ok(rowsReadBy(node) <= 60, `${rowsReadBy(node)} rows`);
  });
