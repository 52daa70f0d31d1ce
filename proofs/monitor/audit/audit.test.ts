import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
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
