// Slow: asks every route for ids that can't be.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemActor } from '#operations/accounts/index.ts';
import { createWorld, password, type World } from '#operations/testing/dated-world.ts';
import { visit } from '#operations/testing/visit.ts';

let world: World;
before(async () => {
  world = await createWorld();
});
after(() => world[Symbol.asyncDispose]());

test('an id that is no number, or none that a database holds, is an answer and never a fault of ours', async () => {
  await world.accounts.createPerson(systemActor, {
    email: 'operator@staff.test',
    name: 'Operator',
    password,
    staffRole: 'operator',
  });
  const { email } = await world.createCustomer('Ids');
  const visitors = {
    console: await visit(world, 'operator@staff.test', '/console/'),
    client: await visit(world, email, '/client/'),
  };
  const faults: string[] = [];
  let tried = 0;
  for (const { method, url } of world.routes) {
    if (!url.includes(':') || !['GET', 'POST'].includes(method) || url.startsWith('/api/')) continue;
    const who = url.startsWith('/console') ? visitors.console : visitors.client;
    for (const id of ['abc', '1e9', '0', '-1', '9999999999999999999999', '1.5', '%00', '%2e%2e']) {
      const path = url.replaceAll(/:\w+/g, id);
      const answer = method === 'GET' ? await who.get(path) : await who.post(path, { confirm_name: 'x' });
      await answer.arrayBuffer();
      tried += 1;
      if (answer.status >= 500) faults.push(`${method} ${path}: ${answer.status}`);
    }
  }
  assert.deepEqual(faults, []);
  assert.ok(tried > 200, `${tried} requests`);
});
