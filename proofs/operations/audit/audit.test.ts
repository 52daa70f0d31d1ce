import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { judgeAll } from './judge.ts';
import { createStage, type Stage } from './stage.ts';

let stage: Stage;
before(async () => {
  stage = await createStage();
});
after(() => stage[Symbol.asyncDispose]());

test('every route that changes something says in the audit trail who did what, and from where', async () => {
  const { routes, faults } = await judgeAll(stage);
  assert.deepEqual(faults, []);
  assert.ok(routes > 90, `${routes} routes`);
});
