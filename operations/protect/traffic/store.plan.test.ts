import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemActor } from '#operations/accounts/index.ts';
import { createWorld } from '#operations/testing/dated-world.ts';
import { explainStatements, rowsReadBy } from '#operations/testing/explain-statements.ts';
import { fillMinutes } from '#operations/testing/fill-minutes.ts';
import { worldMinuteMs } from '#operations/testing/world-time.ts';

test('the steps of an hour are read by address and time, without those of other servers and days', async () => {
  await using world = await createWorld();
  const { tenant } = await world.createCustomer('Planned');
  const serverIds: number[] = [];
  for (let n = 0; n < 4; n += 1) serverIds.push((await world.deploy(tenant, `web-${n}`)).serverId);
  await fillMinutes(world.database.db, serverIds, { days: 1, applications: 1 });
  const toMs = worldMinuteMs - 6 * 3_600_000;
  const range = { fromMs: toMs - 3_600_000, toMs, stepSeconds: 60 };
  const subject = { serverId: serverIds[2]!, tenantId: tenant.id };
  const nodes = await explainStatements(world.database, async () => {
    assert.equal((await world.protectTraffic.readSteps(systemActor, subject, range)).length, 60);
  });
  const ofMinutes = nodes.filter(
    (node) =>
      node['Relation Name'] === 'protect_minutes' || node['Index Name']?.startsWith('protect_minutes'),
  );
  const conditions = ofMinutes.flatMap((node) => node['Index Cond'] ?? []);
  assert.match(conditions.join(), /^\(\(allocation_id = .*minute >= .*minute </, JSON.stringify(nodes));
  for (const node of ofMinutes) assert.equal(rowsReadBy(node), 120, 'rows of two addresses and one hour');
});
