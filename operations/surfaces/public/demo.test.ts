/** What only a demo on this machine has: one click signs in as its people, and attacks one of their servers. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { type IncomingMessage, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { systemActor } from '#operations/accounts/index.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { demoOf } from '#service-kit/demo/index.ts';
import { demoRolesOf } from '#service-kit/sign-in/index.ts';

const roles = [{ label: 'Customer', email: 'customer@demo.example' }];

async function click(world: World, email: string, headers: Record<string, string> = {}) {
  return fetch(`${world.url}/sign-in/demo`, {
    method: 'POST',
    redirect: 'manual',
    headers: { accept: 'text/html', ...headers },
    body: new URLSearchParams({ email }),
  });
}

test('the demo’s sign-in page signs in by one click, as its own people alone, and not for another site', async () => {
  await using world = await createWorld({ demoWorld: true });
  const person = { email: roles[0]!.email, name: 'Casey Customer', password: 'a password for tests' };
  await world.accounts.createPerson(systemActor, { ...person, staffRole: null });
  const { email: stranger } = await world.createCustomer('Stranger');
  const page = await (await fetch(`${world.url}/sign-in`, { headers: { accept: 'text/html' } })).text();
  assert.match(page, /action="\/sign-in\/demo"/);
  const done = await click(world, person.email);
  assert.deepEqual([done.status, done.headers.get('location')], [303, '/client/']);
  const cookie = done.headers.get('set-cookie')!.split(';')[0]!;
  const home = await fetch(`${world.url}/client/`, { headers: { accept: 'text/html', cookie } });
  assert.match(await home.text(), /Casey Customer/);
  assert.equal((await click(world, stranger)).status, 404, 'another person needs a password');
  assert.equal((await click(world, 'operator@demo.example')).status, 404, 'a person who does not exist');
  assert.equal((await click(world, person.email, { 'sec-fetch-site': 'cross-site' })).status, 403);
});

test('without the demo there is no such page, and none in a demo that other machines reach', async () => {
  await using world = await createWorld();
  const page = await (await fetch(`${world.url}/sign-in`, { headers: { accept: 'text/html' } })).text();
  assert.doesNotMatch(page, /sign-in\/demo/);
  assert.equal((await click(world, roles[0]!.email)).status, 404);
  for (const host of ['0.0.0.0', '::', '192.0.2.7', 'demo.example', ''])
    assert.deepEqual(demoRolesOf({ isDemo: true, host }, roles), [], host);
  assert.deepEqual(demoRolesOf({ isDemo: false, host: '127.0.0.1' }, roles), []);
  for (const host of ['127.0.0.1', '::1', 'localhost'])
    assert.deepEqual(demoRolesOf({ isDemo: true, host }, roles), roles, host);
});

test('the demo signs in no one who comes through a proxy, or under a name that a stranger may have given to this machine', async () => {
  await using world = await createWorld({
    ...{ demoWorld: true, trustedProxies: ['127.0.0.0/8', '::1/128'], acceptedHosts: ['demo.example'] },
  });
  const person = { email: roles[0]!.email, name: 'Casey Customer', password: 'a password for tests' };
  await world.accounts.createPerson(systemActor, { ...person, staffRole: null });
  const forwarded = await click(world, person.email, { 'x-forwarded-for': '198.51.100.7' });
  assert.deepEqual([forwarded.status, forwarded.headers.get('set-cookie')], [403, null]);
  const named = request(`${world.url}/sign-in/demo`, {
    method: 'POST',
    headers: { host: 'demo.example', 'content-type': 'application/x-www-form-urlencoded' },
  });
  named.end(String(new URLSearchParams({ email: person.email })));
  const [answer] = (await once(named, 'response')) as [IncomingMessage];
  answer.resume();
  assert.equal(answer.statusCode, 403);
  assert.equal((await click(world, person.email)).status, 303);
});

test('the demo attacks one’s own running server by a button, one attack at a time, and for no other site', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'svc-demo-attack-'));
  t.after(() => rm(folder, { recursive: true }));
  const [asked, over] = [join(folder, 'asked'), join(folder, 'over')];
  // Stands in for the lab's command: it ends when the test says so.
  const script = `echo "$*" >> ${asked}; until [ -e ${over} ]; do sleep 0.02; done; echo sent a flood`;
  const demoAttack = JSON.stringify(['sh', '-c', script, 'attack']);
  await using world = await createWorld({ demoWorld: true, demoAttack });
  const [owner, other] = [await world.createCustomer('Owner'), await world.createCustomer('Other')];
  const own = (await world.deploy(owner.tenant, 'attacked')).allocations[0]!.address;
  const foreign = (await world.deploy(other.tenant, 'spared')).allocations[0]!.address;
  const cookie = await world.signIn(owner.email);
  const { csrfToken } = (await world.sessions.read(cookie))!;
  const path = '/client/demo/attack';
  const read = async (at = path) =>
    (await fetch(world.url + at, { headers: { accept: 'text/html', cookie } })).text();
  const attack = async (target: string, headers: Record<string, string> = {}) => {
    const answer = await fetch(world.url + path, {
      method: 'POST',
      redirect: 'manual',
      headers: { accept: 'text/html', cookie, ...headers },
      body: new URLSearchParams({ csrf_token: csrfToken, target, class: 'syn_flood' }),
    });
    return { status: answer.status, text: await answer.text() };
  };

  assert.match(await read('/client/'), /href="\/client\/demo\/attack"/, 'the first page leads there');
  const page = await read();
  assert.ok(page.includes(own) && !page.includes(foreign));
  assert.equal((await attack(foreign)).status, 404, 'another customer’s server');
  assert.equal((await attack(own, { 'sec-fetch-site': 'cross-site' })).status, 403);
  assert.equal((await attack(own)).status, 303);
  assert.match(await read(), /Sending packets/);
  const second = await attack(own);
  assert.equal(second.status, 409);
  assert.ok(second.text.includes(`An attack on ${own} is running`));
  await writeFile(over, '');
  while (!(await read()).includes('It is over: sent a flood.'));
  assert.equal((await readFile(asked, 'utf8')).trim(), `--target ${own} --class syn_flood --seconds 60`);
});

test('there is no attack by a button in a demo that other machines reach', () => {
  const attack = JSON.stringify(['false']);
  for (const host of ['0.0.0.0', '::', '192.0.2.7', 'demo.example', ''])
    assert.equal(demoOf({ isDemo: true, host, attack }), null, host);
  assert.equal(demoOf({ isDemo: false, host: '127.0.0.1', attack }), null);
});
