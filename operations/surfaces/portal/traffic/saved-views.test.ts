/** Views of the explorer under a name: of the person who saved them, and of no other customer. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { hasCode } from '#common/errors/index.ts';
import { systemActor } from '#operations/accounts/index.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { visit } from '#operations/testing/visit.ts';

let world: World;
before(async () => {
  world = await createWorld();
});
after(() => world[Symbol.asyncDispose]());

const home = '/client/traffic/';

test('a view is saved, opened, replaced and removed by its person', async () => {
  const { email, tenant } = await world.createCustomer('Saver');
  await world.deploy(tenant, 'saver-1');
  const person = await visit(world, email, home);
  const query =
    'q=app%3Aone.example&by=port&tables=app%2Cserver&sort1=in&dir1=asc&compare=previous&evil=%22%3E';
  const saved = await person.post(`${home}views`, { name: ' Large <one> ', query });
  assert.equal(saved.status, 303);
  const href = saved.headers.get('location')!;
  assert.equal(
    href,
    `${home}?q=app%3Aone.example&by=port&tables=app%2Cserver&compare=previous&sort1=in&dir1=asc&saved=1`,
    'nothing else is kept',
  );
  const page = await person.page(href);
  assert.match(page, /<strong>Large &lt;one&gt;<\/strong>/, 'it is marked');
  assert.match(page, /Remove the filter app one\.example/);
  assert.match(page, /Ports over time/);
  assert.doesNotMatch(page, /All operators/);
  assert.equal((await person.post(`${home}views`, { name: 'LARGE <ONE>', query: 'by=app' })).status, 303);
  const again = await person.page(home);
  assert.match(again, /LARGE &lt;ONE&gt;/);
  assert.doesNotMatch(again, /Large &lt;one&gt;/);
  const remove = /action="(\/client\/traffic\/views\/\d+\/remove)"/.exec(again)![1]!;
  assert.equal((await person.post(remove, {})).status, 303);
  assert.doesNotMatch(await person.page(home), /LARGE &lt;ONE/);
  assert.equal((await person.post(remove, {})).status, 404);
  for (const [name, given] of [
    [' ', ''],
    ['long', `q=${'a'.repeat(4_100)}`],
  ])
    assert.equal((await person.post(`${home}views`, { name: name!, query: given! })).status, 422);
});

test('another customer neither sees nor removes a view, and none is saved for operators from the portal', async () => {
  const [first, second] = [await world.createCustomer('First'), await world.createCustomer('Second')];
  const [own, other] = [await visit(world, first.email, home), await visit(world, second.email, home)];
  assert.equal((await own.post(`${home}views`, { name: 'Secret view', query: 'by=app' })).status, 303);
  const remove = /action="(\/client\/traffic\/views\/\d+\/remove)"/.exec(await own.page(home))![1]!;
  assert.doesNotMatch(await other.page(home), /Secret view/);
  assert.equal((await other.post(remove, {})).status, 404);
  assert.match(await own.page(home), /Secret view/);
  const shared = await own.post(`${home}views`, { name: 'Shared', query: '', for: 'operators' });
  assert.equal(shared.status, 403);
  await assert.rejects(
    world.savedViews.list(systemActor),
    (error) => hasCode(error, 'accounts.forbidden'),
    'only people have views',
  );
});

test('a person has at most a hundred views, also when they are saved at once', async () => {
  const { owner } = await world.createCustomer('Many');
  const actor = (await world.accounts.customerActorOf(owner.id))!;
  const save = (name: string) => world.savedViews.save(actor, { name, query: '', isShared: false });
  const results = await Promise.allSettled(Array.from({ length: 104 }, (_, n) => save(`view ${n}`)));
  assert.equal(results.filter(({ status }) => status === 'fulfilled').length, 100);
  const [one] = await world.savedViews.list(actor);
  await save(one!.name.toUpperCase());
  assert.equal((await world.savedViews.list(actor)).length, 100, 'one that is there can still be replaced');
});
