import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { visit } from '#operations/testing/visit.ts';
import { judgeRoutes } from '#service-kit/audit/testing/audited-routes.ts';
import { createStage, type Stage } from './testing/audit-stage.ts';
import { cases, exceptions, otherCases } from './testing/audited-routes.ts';

let stage: Stage;
before(async () => {
  stage = await createStage();
});
after(() => stage[Symbol.asyncDispose]());

const actorKindOf = (route: string) =>
  / \/api\//.test(route) ? 'key' : / \/(console|sign-on)\//.test(route) ? 'staff' : 'person';

test('every route that changes something says in the audit trail who did what, and from where', async () => {
  const { pool } = stage.world.database;
  const { routes } = stage.world;
  assert.deepEqual(await judgeRoutes(stage, { routes, pool, cases, exceptions, actorKindOf }), []);
});

for (const [what, [operations, change]] of Object.entries(otherCases))
  test(`what changes without a route is in the audit trail: ${what}`, async () => {
    const { pool } = stage.world.database;
    const { rows: before } = await pool.query('select coalesce(max(id), 0) as id from audit_entries');
    await change(stage);
    const { rows } = await pool.query('select operation from audit_entries where id > $1', [before[0].id]);
    const found = rows.map(({ operation }) => operation);
    for (const operation of [operations].flat())
      assert.ok(found.includes(operation), `${operation} of ${found}`);
  });

test('an operator finds a deposit by person, subject, kind and time, and takes it away as a file', async () => {
  const { operated, tenant } = stage;
  await operated.post(`/console/customers/${tenant.id}/credit`, {
    amount: '999999.00',
    reference: 'wire-A',
  });
  const find = async (query: string) => (await operated.page(`/console/audit/?${query}`)).includes('wire-A');
  assert.equal(await find('who=operator%40staff.test'), true);
  assert.equal(await find('who=other%40else.test'), false);
  assert.equal(await find(`subject=tenant+${tenant.id}`), true);
  assert.equal(await find('operation=credit.deposit'), true);
  assert.equal(await find('operation=credit'), true);
  assert.equal(await find('operation=card'), false);
  assert.equal(await find('from=2099-01-01T00:00'), false);
  assert.match(await operated.page('/console/audit/?operation=credit.deposit'), /9,?999,?990,?000/);
  const csv = await operated.get('/console/audit/?operation=credit.deposit&format=csv');
  assert.match(csv.headers.get('content-disposition')!, /audit-trail\.csv/);
  const lines = (await csv.text()).split('\r\n');
  assert.match(lines[0]!, /^id,occurred_at,operation,actor_kind,actor_id,actor_name/);
  assert.ok(lines.some((line) => line.includes('operator@staff.test') && line.includes('wire-A')));
  const json = (await (
    await operated.get('/console/audit/?operation=credit.deposit&format=json')
  ).json()) as { rows: { after: { paymentReference: string } }[] };
  assert.ok(json.rows.some((entry) => entry.after.paymentReference === 'wire-A'));
});

test('a customer reads the own organization’s entries alone, and no operator’s name or address', async () => {
  const { operated, owned, tenant, world, otherCustomer } = stage;
  await operated.post(`/console/customers/${tenant.id}/credit`, { amount: '5.00', reference: 'wire-B' });
  await owned.post('/client/developer/', { name: 'audited key', scope: 'read' });
  const other = await otherCustomer();
  const stranger = await visit(world, other.email, '/client/');
  await stranger.post('/client/developer/', { name: 'strange key', scope: 'read' });
  const mine = await owned.page('/client/activity/');
  assert.match(mine, /credit\.deposit/);
  assert.match(mine, /audited key/);
  assert.doesNotMatch(mine, /operator@staff\.test|strange key/);
  const file = await (await owned.get('/client/activity/?format=json')).text();
  assert.doesNotMatch(file, /operator@staff\.test|strange key/);
  assert.doesNotMatch(await owned.page('/client/activity/?who=operator%40staff.test'), /credit\.deposit/);
  const theirs = await stranger.page('/client/activity/');
  assert.match(theirs, /strange key/);
  assert.doesNotMatch(theirs, /audited key|wire-B/);
});

test('a member reads what happens to the servers, and not what happens to people and keys', async () => {
  const { owned, member, world, server } = stage;
  const { email } = await member();
  await owned.post('/client/developer/', { name: 'owner’s key', scope: 'read' });
  const id = await server('members-see-this');
  const seen = await (await visit(world, email, '/client/')).page('/client/activity/');
  assert.match(seen, new RegExp(`server ${id}`));
  assert.doesNotMatch(seen, /\bkey\.create\b/);
});
