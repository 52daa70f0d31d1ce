/** How PostgreSQL reads what the explorer asks: sums of the range and of the servers that were asked for, and nothing else. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemActor } from '#operations/accounts/index.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { explainStatements, type PlanNode, rowsReadBy } from '#operations/testing/explain-statements.ts';
import { fillMinutes } from '#operations/testing/fill-minutes.ts';
import { worldStartMs } from '#operations/testing/world-time.ts';

const servers = 3;
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

const toMs = Math.ceil(worldStartMs / hourMs) * hourMs;
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
    const { rows } = await explored.table('server', { limit: 3, hasRates: true });
    assert.equal(rows.length, 3);
  });
  assert.equal(of(nodes, 'protect_minutes').length, 0, JSON.stringify(nodes));
  // Of three months in the table; the index knows which pages are of a day, not which rows.
  assert.ok(rowsOf(nodes, 'protect_usage_hours') < (servers * 2 * 90 * 24) / 5, JSON.stringify(nodes));
});

test('a day of one server is looked up by its addresses', async () => {
  const filters = [{ dimension: 'server' as const, is: true, values: [String(serverIds[2])] }];
  const explored = await world.protectTraffic.explore(systemActor, { ...day, filters });
  const nodes = await explainStatements(world.database, async () => {
    await explored.rank('server', { limit: 3 });
    await explored.rank('application', { limit: 3 });
  });
  const reads = of(nodes, 'protect_usage_hours');
  assert.ok(reads.length > 0);
  for (const node of reads) assert.ok(rowsReadBy(node) <= 2 * 49, JSON.stringify(node));
  assert.equal(of(nodes, 'protect_minutes').length, 0, JSON.stringify(nodes));
});

test('applications of 24 hours are read from hours alone', async () => {
  const explored = await world.protectTraffic.explore(systemActor, { ...day, filters: [] });
  const nodes = await explainStatements(world.database, async () => {
    const { rows } = await explored.table('application', { limit: 5, hasRates: true });
    assert.ok(rows.length > 0);
  });
  assert.ok(of(nodes, 'protect_application_hours').length > 0);
  assert.equal(of(nodes, 'protect_minutes').length, 0, JSON.stringify(nodes));
});

test('applications of a few servers, and the course of those that are shown, are one read each', async () => {
  const filters = [
    { dimension: 'server' as const, is: true, values: serverIds.slice(0, 2).map((id) => String(id)) },
  ];
  const explored = await world.protectTraffic.explore(systemActor, { ...day, filters });
  const readsOf = async (run: () => Promise<unknown>) =>
    of(await explainStatements(world.database, run), 'protect_application_hours').filter(
      (node) => node['Relation Name'] !== undefined && node['Actual Loops'] > 0,
    );
  await explored.rank('application', { limit: 2 });
  const ranked = await readsOf(() => explored.rank('application', { limit: 3 }));
  assert.equal(ranked.length, 1, JSON.stringify(ranked));
  const drawn = await readsOf(() => explored.table('application', { limit: 2, hasRates: true }));
  assert.equal(drawn.length, 1, JSON.stringify(drawn));
});

test('the course of a few applications is read by their names, and not among those of all applications', async () => {
  const { pool } = world.database;
  await pool.query(
    `insert into protect_application_hours
     select allocation_id, at, 'other-' || n || '.example.com', 'tcp', 443, 1, 1, at from protect_series,
       generate_series(1, 80) n, generate_series(date_trunc('hour', svc_now()) - interval '24 hours', svc_now(), '1 hour') at`,
  );
  await pool.query('vacuum analyze protect_application_hours');
  const explored = await world.protectTraffic.explore(systemActor, { ...day, filters: [] });
  const ranking = await explored.rank('application', { limit: 3 });
  const nodes = await explainStatements(world.database, async () => {
    const { rows } = await explored.table('application', { limit: 3, hasRates: true });
    assert.deepEqual(
      rows.map(({ key }) => key),
      ranking.rows.map(({ key }) => key),
    );
    assert.ok(rows.every(({ rates }) => rates.some((rate) => rate !== null && rate > 0)));
  });
  const most = servers * 2 * 3 * 49;
  assert.ok(rowsOf(nodes, 'protect_application_hours') <= most, JSON.stringify(nodes));
});

test('ports of a day and their course are one read of the hours, beside a look for those in which nothing was sent', async () => {
  const { pool } = world.database;
  const held = await pool.query<{ count: number }>(
    `select count(*)::int as count from protect_application_hours where at >= date_trunc('hour', svc_now() - interval '24 hours')`,
  );
  for (const dimension of ['port', 'transport'] as const) {
    const explored = await world.protectTraffic.explore(systemActor, { ...day, filters: [] });
    const nodes = await explainStatements(world.database, async () => {
      const { answer } = await explored.chart(dimension, { top: 5, read: 5, isCompared: false });
      assert.ok(answer.rows[0]!.rates.some((rate) => rate !== null && rate > 0));
    });
    const read = of(nodes, 'protect_application_hours').map((node) => rowsReadBy(node));
    const sum = read.reduce((total, rows) => total + rows, 0);
    assert.ok(sum <= 2.1 * held.rows[0]!.count, `${dimension}: ${read} of ${held.rows[0]!.count}`);
  }
});

test('servers, their addresses and customers of a day, and the course of all of them, are one read of the hours', async () => {
  const explored = await world.protectTraffic.explore(systemActor, { ...day, filters: [] });
  const nodes = await explainStatements(world.database, async () => {
    const rankings = await Promise.all([
      explored.rank('server', { limit: 3 }),
      explored.rank('customer', { limit: 3 }),
      explored.rank('address', { limit: 3 }),
    ]);
    for (const { rows } of rankings) assert.ok(rows.length > 0);
    const { whole } = await explored.chart(null, { top: 3, read: 3, isCompared: false });
    assert.ok(whole.series.minutes.length > 0);
  });
  const reads = of(nodes, 'protect_usage_hours').filter((node) => node['Relation Name'] !== undefined);
  // The sums of the day with the course that the total is of, and those of the day before.
  assert.equal(reads.length, 2, JSON.stringify(reads));
});
