/** The requests of audited routes, each of which changes something, sent by people and keys that may not. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { visit } from '#operations/testing/visit.ts';
import { callWith, createStage, type Stage } from './testing/audit-stage.ts';
import { cases } from './testing/audited-routes.ts';

let stage: Stage;
before(async () => {
  stage = await createStage();
});
after(() => stage[Symbol.asyncDispose]());

/** The routes under a path, without those of one's own account, which is anyone's to change. */
const routesUnder = (path: string) =>
  Object.keys(cases).filter((route) => route.split(' ')[1]!.startsWith(path) && !route.includes('/account/'));

/** The routes of those under `path` that do what is asked, when the request comes from `caller`. The others refuse with one of `refusals`. */
async function listDone(
  path: string,
  caller: Partial<Stage>,
  refusals: readonly number[],
): Promise<string[]> {
  const done: string[] = [];
  for (const route of routesUnder(path)) {
    const answer = await cases[route]![1]({ ...stage, ...caller });
    await answer.arrayBuffer();
    if (answer.status < 400) {
      done.push(route);
      continue;
    }
    assert.ok(refusals.includes(answer.status), `${route}: ${answer.status}`);
    const { rowCount } = await stage.world.database.pool.query(
      'select from audit_entries where request_id = $1',
      [answer.headers.get('x-request-id')],
    );
    assert.equal(rowCount, 0, `${route} was refused and recorded`);
  }
  return done;
}

test('API-4.3: every form of the portal is refused to another customer for what is not theirs', async () => {
  const stranger = await visit(stage.world, (await stage.otherCustomer()).email, '/client/');
  assert.deepEqual(
    await listDone('/client/', { owned: stranger }, [403, 404, 422]),
    // Forms that name nothing of a workspace: what they make is the stranger's own.
    ['POST /client/traffic/views', 'POST /client/developer/'],
  );
});

/** What the owners of an organization keep to themselves, and the owner's own views. */
const ofOwners = /^POST \/client\/(settings\/|developer\/(?!ssh-keys)|traffic\/views\/:viewId)/;

test('forms for owners are refused to a member, who may send all others', async () => {
  const member = await visit(stage.world, (await stage.member()).email, '/client/');
  const done = await listDone('/client/', { owned: member }, [403, 404]);
  assert.deepEqual(
    routesUnder('/client/').filter((route) => !done.includes(route)),
    routesUnder('/client/').filter((route) => ofOwners.test(route)),
  );
});

test('forms of the console are no pages for a customer', async () => {
  assert.deepEqual(await listDone('/console/', { operated: stage.owned }, [404]), []);
});

test('API-4.2, API-8.4: every changing operation of the API is refused to a read key, and to another customer', async () => {
  const { world } = stage;
  const other = await stage.otherCustomer();
  const [reading, writing] = [await world.createKey(other, 'read'), await world.createKey(other)];
  for (const path of ['/api/v1/', '/api/v2/']) {
    assert.deepEqual(await listDone(path, { call: callWith(world, reading) }, [403]), []);
    const own = ['POST servers', 'POST networks'];
    if (path === '/api/v2/')
      own.push('POST addresses', 'POST ssh-keys', 'PATCH account', 'POST webhooks', 'POST keys');
    assert.deepEqual(
      await listDone(path, { call: callWith(world, writing) }, [404]),
      own.map((one) => one.replace(' ', ` ${path}`)),
    );
  }
});
