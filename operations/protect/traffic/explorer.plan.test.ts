/** How PostgreSQL reads what the explorer asks: sums of the range and of the servers that were asked for, and nothing else. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemActor } from '#operations/accounts/index.ts';
import { createWorld, type World } from '#operations/testing/create-world.ts';
import { explainStatements, type PlanNode, rowsReadBy } from '#operations/testing/explain-statements.ts';
import { fillMinutes } from '#operations/testing/fill-minutes.ts';

const servers = 6;
const hourMs = 3_600_000;
let world: World;
const serverIds: number[] = [];
before(async () => {
  world = await createWorld();
  const { tenant } = await world.createCustomer('Planned');
  for (let n = 0; n < servers; n += 1) serverIds.push((await world.deploy(tenant, `web-${n}`)).serverId);
  await fillMinutes(world.database.db, serverIds, { days: 2, applications: 3 });
  // Sums of months, as minutes that were there would have left them: enough rows that looking at all of them costs.
  const { pool } = world.database;
  await pool.query(
    `insert into protect_usage_hours
     select allocation_id, at, 1, 1, 1, 1 from protect_series,
       generate_series(date_trunc('hour', svc_now()) - interval '90 days', svc_now() - interval '3 days', '1 hour') at order by at`,
  );
  await pool.query('vacuum analyze protect_usage_hours');
});
after(() => world[Symbol.asyncDispose]());

const toMs = Math.ceil(Date.now() / hourMs) * hourMs;
const day = { fromMs: toMs - 24 * hourMs, toMs, stepSeconds: 3600 };

const of = (nodes: readonly PlanNode[], table: string) =>
  nodes.filter(
    (node) => node['Relation Name'] === table || (node['Index Name'] ?? '').startsWith(`${table}_`),
  );
const rowsOf = (nodes: readonly PlanNode[], table: string) =>
  Math.max(0, ...of(nodes, table).map((node) => rowsReadBy(node)));

test('a day of all servers is read from the hours of its days, and from no minute', async () => {
  const explored = await world.protectTraffic.explore(systemActor, { ...day, filters: [] });
  const nodes = await explainStatements(world.database, async () => {
    const ranking = await explored.rank('server', { limit: 3 });
    assert.equal(ranking.rows.length, 3);
    await explored.lines(ranking, { count: 3, hasRest: true });
  });
  assert.equal(of(nodes, 'protect_minutes').length, 0, JSON.stringify(nodes));
  // Of three months in the table; the index knows which pages are of a day, not which rows.
  assert.ok(rowsOf(nodes, 'protect_usage_hours') < (servers * 2 * 90 * 24) / 5, JSON.stringify(nodes));
});

test('a day of one server is looked up by its addresses', async () => {
  const filters = [{ dimension: 'server' as const, isNot: false, values: [String(serverIds[2])] }];
  const explored = await world.protectTraffic.explore(systemActor, { ...day, filters });
  const nodes = await explainStatements(world.database, async () => {
    await explored.rank('server', { limit: 3 });
    await explored.rank('app', { limit: 3 });
  });
  const reads = of(nodes, 'protect_usage_hours');
  assert.ok(reads.length > 0);
  for (const node of reads) assert.ok(rowsReadBy(node) <= 2 * 49, JSON.stringify(node));
  assert.equal(of(nodes, 'protect_minutes').length, 0, JSON.stringify(nodes));
});

test('applications of 24 hours are read from hours alone', async () => {
  const explored = await world.protectTraffic.explore(systemActor, { ...day, filters: [] });
  const nodes = await explainStatements(world.database, async () => {
    const ranking = await explored.rank('app', { limit: 5 });
    assert.ok(ranking.rows.length > 0);
    await explored.lines(ranking, { count: 5, hasRest: true });
  });
  assert.ok(of(nodes, 'protect_application_hours').length > 0);
  assert.equal(of(nodes, 'protect_minutes').length, 0, JSON.stringify(nodes));
});
