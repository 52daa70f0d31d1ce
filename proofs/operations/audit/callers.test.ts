/** The requests of the audit's cases, each of which changes something, sent by people and keys that may not. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemActor } from '#operations/accounts/index.ts';
import { password } from '#operations/testing/dated-world.ts';
import { visit } from '#operations/testing/visit.ts';
import { cases } from './cases.ts';
import { callWith, createStage, type Stage } from './stage.ts';

let stage: Stage;
before(async () => {
  stage = await createStage();
});
after(() => stage[Symbol.asyncDispose]());

/** The routes under a path, each with its request that changes something. One's own account is anyone's to change. */
const casesUnder = (path: string) =>
  Object.entries(cases)
    .filter(([route]) => route.split(' ')[1]!.startsWith(path) && !route.includes('/account/'))
    .map(([route, [, send]]) => ({ route, send }));

/** How many entries a request has left in the audit trail. */
async function countEntries(answer: Response): Promise<number> {
  const { rows } = await stage.world.database.pool.query<{ count: number }>(
    'select count(*)::int as count from audit_entries where request_id = $1',
    [answer.headers.get('x-request-id')],
  );
  return rows[0]!.count;
}

/** The routes of those under `path` that do what is asked, when the request comes from `caller`. The others refuse with one of `refusals`. */
async function listDone(
  path: string,
  caller: Partial<Stage>,
  refusals: readonly number[],
): Promise<string[]> {
  const done: string[] = [];
  for (const { route, send } of casesUnder(path)) {
    const answer = await send({ ...stage, ...caller });
    await answer.arrayBuffer();
    if (answer.status < 400) done.push(route);
    else {
      assert.ok(refusals.includes(answer.status), `${route}: ${answer.status}`);
      assert.equal(await countEntries(answer), 0, `${route} was refused and recorded`);
    }
  }
  return done;
}

test('API-4.3: every form of the portal is refused to another customer for what is not theirs', async () => {
  const stranger = await visit(stage.world, (await stage.otherCustomer()).email, '/client/');
  assert.deepEqual(
    await listDone('/client/', { owned: stranger }, [403, 404, 422]),
    // Forms that name nothing of a workspace: what they make is the stranger's own.
    ['POST /client/developer/', 'POST /client/traffic/views'],
  );
});

/** What the owners of an organization keep to themselves, and the owner's own views. */
const ofOwners = /^POST \/client\/(settings\/|developer\/|traffic\/views\/:viewId)/;

test('forms for owners are refused to a member, who may send all others', async () => {
  const member = await visit(stage.world, (await stage.member()).email, '/client/');
  const done = await listDone('/client/', { owned: member }, [403, 404]);
  assert.deepEqual(
    casesUnder('/client/').flatMap(({ route }) => (done.includes(route) ? [] : [route])),
    casesUnder('/client/').flatMap(({ route }) => (ofOwners.test(route) ? [route] : [])),
  );
});

test('API-1.S6: every form of the console is refused to support and to customers', async () => {
  const { world, owned } = stage;
  await world.accounts.createPerson(systemActor, {
    ...{ email: 'support@staff.test', name: 'Support', password, staffRole: 'support' },
  });
  const support = await visit(world, 'support@staff.test', '/console/');
  assert.deepEqual(await listDone('/console/', { operated: support }, [403]), []);
  assert.deepEqual(await listDone('/console/', { operated: owned }, [404]), []);
});

test('API-4.2, API-8.4: every changing operation of the API is refused to a read key, and to another customer', async () => {
  const { world } = stage;
  const other = await stage.otherCustomer();
  const [reading, writing] = [await world.createKey(other, 'read'), await world.createKey(other)];
  for (const path of ['/api/v1/', '/api/v2/']) {
    assert.deepEqual(await listDone(path, { call: callWith(world, reading) }, [403]), []);
    assert.deepEqual(await listDone(path, { call: callWith(world, writing) }, [404]), [
      `POST ${path}servers`,
      `POST ${path}networks`,
    ]);
  }
});
