import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { silentReporter } from '#common/reporter/index.ts';
import { systemActor } from '#operations/accounts/index.ts';
import { createWorld, password, type World } from '#operations/testing/dated-world.ts';
import { createWebhookSender } from '#operations/webhooks/send-deliveries.ts';
import { type Receiver, startReceiver } from '#service-kit/webhooks/testing/start-receiver.ts';

let world: World;
let receiver: Receiver;
before(async () => {
  world = await createWorld();
  receiver = await startReceiver();
});
after(async () => {
  await receiver[Symbol.asyncDispose]();
  await world[Symbol.asyncDispose]();
});

const base = '/client/developer/webhooks/';

function visit(cookie: string) {
  const get = async (path: string) => {
    const answer = await fetch(`${world.url}${path}`, {
      headers: { accept: 'text/html', cookie },
      redirect: 'manual',
    });
    return { status: answer.status, text: await answer.text(), location: answer.headers.get('location') };
  };
  const post = async (path: string, fields: [string, string][]) => {
    const csrf = /name="csrf_token" value="([^"]+)"/.exec((await get('/client/')).text)![1]!;
    const answer = await fetch(`${world.url}${path}`, {
      method: 'POST',
      headers: { accept: 'text/html', cookie },
      body: new URLSearchParams([...fields, ['csrf_token', csrf]]),
      redirect: 'manual',
    });
    return { status: answer.status, text: await answer.text(), location: answer.headers.get('location') };
  };
  return { get, post };
}

const send = () =>
  createWebhookSender({
    secrets: world.secrets,
    db: () => world.database.db,
    clock: world.clock,
    reporter: silentReporter,
    rules: { allowPrivate: true },
  }).drain();

test('the owner adds an endpoint, sees its secret once, tests it, reads its log, sends again, and deletes it', async () => {
  const { email, tenant } = await world.createCustomer('Hooked');
  const { get, post } = visit(await world.signIn(email));
  assert.match((await get(base)).text, /No endpoints\. No events are delivered/);
  const made = await post(base, [
    ['scope', `organization:${tenant.organizationId}`],
    ['url', `${receiver.url}/portal/200`],
    ['description', 'Deployments'],
    ['events', 'server.provisioned'],
    ['events', 'key.created'],
  ]);
  assert.equal(made.status, 200);
  const secret = /whsec_[A-Za-z0-9+/]{43}=/.exec(made.text)![0];
  receiver.learn(secret);
  const path = /action="(\/client\/developer\/webhooks\/\d+)\/test"/.exec(made.text)![1]!;
  for (const later of [path, base]) assert.ok(!(await get(later)).text.includes(secret), later);

  assert.equal((await post(`${path}/test`, [])).location, `${path}?done=test`);
  await send();
  assert.equal(receiver.received.at(-1)!.fitting, 1);
  const page = (await get(path)).text;
  assert.match(page, /webhook\.test/);
  assert.match(page, /Delivering\./);
  const delivery = /href="([^"]*\/deliveries\/(\d+))"/.exec(page)!;
  const log = (await get(delivery[1]!)).text;
  assert.match(log, /Delivered/);
  assert.match(log, /&quot;endpoint_id&quot;/);
  assert.equal((await post(`${path}/replay`, [['delivery', delivery[2]!]])).status, 303);
  await send();
  assert.equal(receiver.received.filter((one) => one.path === '/portal/200').length, 2);

  const rotated = await post(`${path}/rotate`, []);
  assert.notEqual(/whsec_[A-Za-z0-9+/]{43}=/.exec(rotated.text)![0], secret);
  assert.match((await get(path)).text, /Two signatures until/);
  assert.equal((await post(`${path}/disable`, [])).status, 303);
  assert.match((await get(path)).text, /Disabled: no deliveries/);
  assert.equal((await post(`${path}/test`, [])).status, 409);
  assert.equal((await post(`${path}/delete`, [['confirm_name', 'another']])).status, 422);
  const { host } = new URL(receiver.url);
  assert.equal((await post(`${path}/delete`, [['confirm_name', host]])).location, base);
  assert.equal((await get(path)).status, 404);
});

test('a refused form says what to do and keeps what was typed', async () => {
  const { email, tenant } = await world.createCustomer('Refused');
  const { post } = visit(await world.signIn(email));
  const answer = await post(base, [
    ['scope', `tenant:${tenant.id}`],
    ['url', 'ftp://files.example/'],
    ['description', 'my "own" words'],
    ['events', 'key.created'],
  ]);
  assert.equal(answer.status, 422);
  assert.match(answer.text, /must begin with https/);
  assert.match(answer.text, /value="ftp:\/\/files\.example\/"/);
  assert.match(answer.text, /my &quot;own&quot; words/);
  const none = await post(base, [
    ['scope', `tenant:${tenant.id}`],
    ['url', 'https://example.com/'],
  ]);
  assert.match(none.text, /Choose at least one event/);
});

test('another’s endpoint does not exist, and members are told to ask the owner', async () => {
  const owner = await world.createCustomer('Keeper');
  const kept = visit(await world.signIn(owner.email));
  const made = await kept.post(base, [
    ['scope', `organization:${owner.tenant.organizationId}`],
    ['url', 'https://example.com/'],
    ['events', 'key.created'],
  ]);
  const path = /action="(\/client\/developer\/webhooks\/\d+)\/test"/.exec(made.text)![1]!;
  const member = await world.accounts.createPerson(systemActor, {
    email: 'member@keeper.test',
    name: 'Member',
    password,
  });
  await world.accounts.addMember(systemActor, owner.tenant.organizationId, member.id);
  const stranger = visit(await world.signIn((await world.createCustomer('Other')).email));
  const asMember = visit(await world.signIn('member@keeper.test'));
  assert.match((await asMember.get(base)).text, /Only the owner of the organization sets up webhooks/);
  for (const { get, post } of [stranger, asMember]) {
    const missing = await get(`${base}999999`);
    assert.equal((await get(path)).text, missing.text);
    for (const what of ['/test', '/rotate', '/disable', '/enable', '/delete', ''])
      assert.equal((await post(`${path}${what}`, [['url', 'https://example.com/']])).status, 404, what);
    const theirs = await post(base, [
      ['scope', `organization:${owner.tenant.organizationId}`],
      ['url', 'https://example.com/'],
      ['events', 'key.created'],
    ]);
    assert.equal(theirs.status, 403);
  }
});
