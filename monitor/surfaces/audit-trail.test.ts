import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemActor } from '#monitor/operators/index.ts';
import { judgeRoutes } from '#service-kit/audit/testing/audited-routes.ts';
import { createStage, type Stage } from './testing/audit-stage.ts';
import { cases, exceptions, otherCases } from './testing/audited-routes.ts';

let stage: Stage;
before(async () => {
  stage = await createStage();
});
after(() => stage[Symbol.asyncDispose]());

const actorKindOf = (route: string) => (route.includes('/agent/') ? 'sensor' : 'operator');

test('every route of the monitor that changes data records actor, operation and source in the audit trail', async () => {
  const { routes, database } = stage.server;
  assert.deepEqual(
    await judgeRoutes(stage, { routes, pool: database.pool, cases, exceptions, actorKindOf }),
    [],
  );
});

for (const [what, [operation, change]] of Object.entries(otherCases))
  test(`what changes without a route is in the audit trail: ${what}`, async () => {
    const { pool } = stage.server.database;
    const { rows: before } = await pool.query('select coalesce(max(id), 0) as id from audit_entries');
    await change(stage);
    const { rows } = await pool.query('select operation from audit_entries where id > $1', [before[0].id]);
    assert.ok(rows.some((row) => row.operation === operation));
  });

test('NET-4: a thing of one site is not there under another site', async () => {
  const { operator, siteId, monitor, server } = stage;
  const other = (await monitor.sites.create(systemActor, 'Other site')).id;
  const post: Stage['operator']['post'] = (path, fields) =>
    operator.post(path.replace(`/sites/${siteId}/`, `/sites/${other}/`), fields);
  for (const route of Object.keys(cases).filter((one) => /\/sites\/:siteId\/.*:\w+Id/.test(one))) {
    const { headers } = await cases[route]![1]({ ...stage, operator: { ...operator, post } });
    const { rowCount } = await server.database.pool.query('select from audit_entries where request_id = $1', [
      headers.get('x-request-id'),
    ]);
    assert.equal(rowCount, 0, route);
  }
});

test('operators and viewers search the trail and download it as a file; it contains no secret', async () => {
  const { operator, server } = stage;
  await operator.post('/sites', { name: 'Searched site' });
  const viewer = await server.signIn('viewer');
  assert.match((await viewer.get('/audit?operation=site.create')).text, /Searched site/);
  assert.doesNotMatch((await viewer.get('/audit?operation=operator')).text, /Searched site/);
  const { text } = await operator.get('/audit?format=json');
  const { rows } = JSON.parse(text) as { rows: { operation: string; actor_name: string }[] };
  const made = rows.find((entry) => entry.operation === 'site.create');
  assert.equal(made?.actor_name, 'operator@monitor.example');
  assert.doesNotMatch(text, /svcadm_[a-z0-9]{16}_|svcenr_|svcsen_/);
});
