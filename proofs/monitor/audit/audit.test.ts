import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemActor } from '#monitor/operators/index.ts';
import { cases } from './cases.ts';
import { judgeAll } from './judge.ts';
import { createStage, type Stage } from './stage.ts';

let stage: Stage;
before(async () => {
  stage = await createStage();
});
after(() => stage[Symbol.asyncDispose]());

test('every route of the monitor that changes data records actor, operation and source in the audit trail', async () => {
  const { routes, faults } = await judgeAll(stage);
  assert.deepEqual(faults, []);
  assert.ok(routes > 30, `${routes} routes`);
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

/** Sends each request of these routes as `operator`; returns the routes that changed something, by the audit trail. */
async function listDone(routes: RegExp, operator: Stage['operator']): Promise<string[]> {
  const done: string[] = [];
  for (const [route, [, send]] of Object.entries(cases)) {
    if (!routes.test(route)) continue;
    const { headers } = await send({ ...stage, operator });
    const { rows } = await stage.server.database.pool.query(
      'select 1 from audit_entries where request_id = $1',
      [headers.get('x-request-id')],
    );
    if (rows.length > 0) done.push(route);
  }
  return done;
}

test('NET-5.5: every route that changes data refuses a viewer', async () => {
  // All but signing in, one's own account, and what sensors send.
  const routes = / \/(?!agent|sign-|set-password|account)/;
  assert.deepEqual(await listDone(routes, await stage.server.signIn('viewer')), []);
});

test('NET-4: a thing of one site is not there under another site', async () => {
  const { operator, siteId, monitor } = stage;
  const other = (await monitor.sites.create(systemActor, 'Other site')).id;
  const post: Stage['operator']['post'] = (path, fields) =>
    operator.post(path.replace(`/sites/${siteId}/`, `/sites/${other}/`), fields);
  assert.deepEqual(await listDone(/\/sites\/:siteId\/.*:\w+Id/, { ...operator, post }), []);
});
