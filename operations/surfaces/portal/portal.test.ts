import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemActor } from '#operations/accounts/index.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';

let world: World;

before(async () => {
  world = await createWorld();
});
after(() => world[Symbol.asyncDispose]());

function get(path: string, cookie = '', headers: Record<string, string> = {}): Promise<Response> {
  return fetch(`${world.url}${path}`, {
    headers: { accept: 'text/html', cookie, ...headers },
    redirect: 'manual',
  });
}

async function csrfOf(cookie: string): Promise<string> {
  const page = await (await get('/client/', cookie)).text();
  return /name="csrf_token" value="([^"]+)"/.exec(page)![1]!;
}

function post(
  path: string,
  cookie: string,
  fields: Record<string, string>,
  headers: Record<string, string> = {},
) {
  return fetch(`${world.url}${path}`, {
    method: 'POST',
    headers: { accept: 'text/html', cookie, ...headers },
    body: new URLSearchParams(fields),
    redirect: 'manual',
  });
}

test('a page asks strangers to sign in and then leads them to where they wanted', async () => {
  const { email, tenant } = await world.createCustomer('Landing');
  const { serverId } = await world.deploy(tenant, 'wanted');
  const path = `/client/servers/${serverId}/protect`;
  const asked = await get(path);
  assert.equal(asked.status, 303);
  const signIn = asked.headers.get('location')!;
  assert.equal(signIn, `/sign-in?next=${encodeURIComponent(path)}`);
  const form = await (await get(signIn)).text();
  assert.match(form, new RegExp(`name="next" value="${path}"`));
  const answer = await post('/sign-in', '', { email, password: 'a password for tests', next: path });
  assert.equal(answer.headers.get('location'), path);
  const elsewhere = { email, password: 'a password for tests', next: '//evil.example/' };
  assert.equal((await post('/sign-in', '', elsewhere)).headers.get('location'), '/client/');
});

test('a wrong password and an unknown address get the same page, and too many tries are refused unread', async () => {
  await using strict = await createWorld({ signInFailuresMax: 2 });
  const { email } = await strict.createCustomer('Guess');
  const attempt = async (as: string, given: string) => {
    const body = new URLSearchParams({ email: as, password: given });
    const answer = await fetch(`${strict.url}/sign-in`, { method: 'POST', body, redirect: 'manual' });
    return {
      status: answer.status,
      page: (await answer.text()).replaceAll(as, ''),
      cookie: answer.headers.get('set-cookie'),
    };
  };
  const wrong = await attempt(email, 'wrong');
  const unknown = await attempt('unknown@guess.test', 'wrong');
  assert.equal(wrong.status, 401);
  assert.equal(wrong.page, unknown.page);
  const throttled = await attempt(email, 'a password for tests');
  assert.equal(throttled.status, 429);
  assert.equal(throttled.cookie, null);
});

test('a sign-in that comes from another site is refused, and signing out needs the session’s token', async () => {
  const { email } = await world.createCustomer('Cross');
  const fields = { email, password: 'a password for tests' };
  assert.equal((await post('/sign-in', '', fields, { 'sec-fetch-site': 'cross-site' })).status, 403);
  assert.equal((await post('/sign-in', '', fields, { origin: 'https://evil.example' })).status, 403);
  const cookie = await world.signIn(email);
  assert.equal((await post('/sign-out', cookie, {})).status, 403);
  assert.equal((await get('/client/', cookie)).status, 200);
  assert.equal((await post('/sign-out', cookie, { csrf_token: await csrfOf(cookie) })).status, 303);
  assert.equal((await get('/client/', cookie)).status, 303);
});

test('the address of a server without an id leads to the list', async () => {
  const cookie = await world.signIn((await world.createCustomer('Shortened')).email);
  for (const path of ['/client/servers', '/client/servers/']) {
    const { status, headers } = await fetch(`${world.url}${path}`, {
      headers: { cookie },
      redirect: 'manual',
    });
    assert.deepEqual([status, headers.get('location')], [302, '/client/'], path);
  }
});

test('the list shows the servers of the person’s own tenants only', async () => {
  const mine = await world.createCustomer('Mine');
  const other = await world.createCustomer('Theirs');
  await world.deploy(mine.tenant, 'my-own-server');
  await world.deploy(other.tenant, 'their-own-server');
  const page = await (await get('/client/', await world.signIn(mine.email))).text();
  assert.match(page, /my-own-server/);
  assert.doesNotMatch(page, /their-own-server/);
});

test('another customer’s server is, byte for byte, a server that does not exist: pages, files and actions', async () => {
  const mine = await world.createCustomer('Reader');
  const other = await world.createCustomer('Owner');
  const { serverId } = await world.deploy(other.tenant, 'secret-name');
  const cookie = await world.signIn(mine.email);
  const csrf_token = await csrfOf(cookie);
  for (const tail of [
    '',
    '/traffic',
    '/traffic/minutes',
    '/traffic/minutes.json',
    '/traffic/usage',
    '/traffic?format=csv&table=application',
    '/bandwidth',
    '/settings',
    '/protect',
    '/protect/minutes.json',
    '/protect/minutes.csv',
    '/protect/chart.json',
    '/traffic/minutes.csv',
  ]) {
    const theirs = await get(`/client/servers/${serverId}${tail}`, cookie);
    const missing = await get(`/client/servers/987654321${tail}`, cookie);
    assert.equal(theirs.status, 404, tail);
    assert.equal(missing.status, 404, tail);
    assert.equal(await theirs.text(), await missing.text(), tail);
  }
  for (const tail of ['/actions', '/destroy']) {
    const fields = { csrf_token, action: 'stop', confirm_name: 'secret-name' };
    const theirs = await post(`/client/servers/${serverId}${tail}`, cookie, fields);
    const missing = await post(`/client/servers/987654321${tail}`, cookie, fields);
    assert.deepEqual([theirs.status, missing.status], [404, 404]);
    assert.equal(await theirs.text(), await missing.text());
  }
  assert.equal((await world.servers.findServer(systemActor, null, serverId))?.powerState, 'running');
});

test('a server’s activity names the member who asked; of the provider’s people it says Support, and no name', async () => {
  const { email, tenant, owner } = await world.createCustomer('Asker');
  const { serverId } = await world.deploy(tenant, 'asked');
  const actor = (await world.accounts.customerActorOf(owner.id))!;
  await world.servers.changePower(actor, null, serverId, { command: 'start' });
  const person = { email: 'op@staff.test', name: 'Olga Operator', password: 'a password for tests' };
  const { id: personId } = await world.accounts.createPerson(systemActor, {
    ...person,
    staffRole: 'operator',
  });
  const operator = { kind: 'staff', personId, role: 'operator', name: person.email } as const;
  await world.servers.changePower(operator, null, serverId, { command: 'start' });
  const page = await (await get(`/client/servers/${serverId}`, await world.signIn(email))).text();
  const activity = page.slice(page.indexOf(`>Activity</h2>`));
  assert.match(activity, new RegExp(`>${owner.name}<`));
  assert.match(activity, />Support</);
});

test('every page leaves under a policy that runs no inline script, and none is ever cached', async () => {
  const { email, tenant } = await world.createCustomer('Policy');
  const { serverId } = await world.deploy(tenant, 'policed');
  const cookie = await world.signIn(email);
  for (const path of [
    '/',
    '/sign-in',
    '/client/',
    `/client/servers/${serverId}/protect`,
    '/client/developer/',
    '/client/nothing',
  ]) {
    const answer = await get(path, path === '/sign-in' ? '' : cookie);
    assert.match(answer.headers.get('content-security-policy') ?? '', /script-src 'self';/, path);
    assert.equal(answer.headers.get('cache-control'), 'no-store', path);
    assert.doesNotMatch(await answer.text(), /<script>|\sstyle=|\son[a-z]+=/, path);
  }
});

test('a form without the session’s token changes nothing', async () => {
  const { email, tenant } = await world.createCustomer('Csrf');
  const { serverId } = await world.deploy(tenant, 'kept');
  const cookie = await world.signIn(email);
  const good = await csrfOf(cookie);
  const path = `/client/servers/${serverId}/actions`;
  assert.equal((await post(path, cookie, { action: 'stop' })).status, 403);
  assert.equal(
    (await post(path, cookie, { action: 'stop', csrf_token: 'x'.repeat(good.length) })).status,
    403,
  );
  const crossSite = { 'sec-fetch-site': 'cross-site' };
  assert.equal((await post(path, cookie, { action: 'stop', csrf_token: good }, crossSite)).status, 403);
  assert.equal((await world.servers.findServer(systemActor, null, serverId))?.powerState, 'running');
  assert.equal((await post(path, cookie, { action: 'stop', csrf_token: good })).status, 303);
  await world.jobs.drain();
  assert.equal((await world.servers.findServer(systemActor, null, serverId))?.powerState, 'stopped');
});

test('a server is destroyed only after its name was typed', async () => {
  const { email, tenant } = await world.createCustomer('Destroy');
  const { serverId } = await world.deploy(tenant, 'doomed');
  const cookie = await world.signIn(email);
  const csrf_token = await csrfOf(cookie);
  const path = `/client/servers/${serverId}/destroy`;
  const refused = await post(path, cookie, { csrf_token, confirm_name: 'other' });
  assert.equal(refused.status, 422);
  assert.match(await refused.text(), /Nothing was destroyed/);
  assert.equal((await post(path, cookie, { csrf_token, confirm_name: 'doomed' })).status, 303);
  await world.jobs.drain();
  assert.equal((await get(`/client/servers/${serverId}`, cookie)).status, 404);
});

test('deploying from the portal shows the root password in that answer and on no later page', async () => {
  const { email } = await world.createCustomer('Deployer');
  const cookie = await world.signIn(email);
  const fields = {
    plan: 'small',
    image: 'debian-12',
    location: 'fra',
    name: 'fresh',
    csrf_token: await csrfOf(cookie),
  };
  const answer = await post('/client/servers/new', cookie, fields);
  assert.equal(answer.status, 200);
  const page = await answer.text();
  const password = /<pre[^>]*><code>([^<]+)<\/code>/.exec(page)![1]!;
  const path = /href="(\/client\/servers\/\d+)"/.exec(page)![1]!;
  await world.jobs.drain();
  for (const later of [path, '/client/', '/client/servers/new']) {
    const text = await (await get(later, cookie)).text();
    assert.ok(!text.includes(password), later);
  }
  assert.match(await (await get(path, cookie)).text(), /Running since/);
  const refused = await post('/client/servers/new', cookie, { ...fields, plan: 'gigantic' });
  assert.equal(refused.status, 422);
});

test('API-2.1.6, API-2.1.a: a new key is in the answer to the POST that made it, and works; no later page has it', async () => {
  const { email } = await world.createCustomer('Keys');
  const cookie = await world.signIn(email);
  const csrf_token = await csrfOf(cookie);
  const answer = await post('/client/developer/', cookie, { name: 'CI', scope: 'full', csrf_token });
  assert.equal(answer.status, 200);
  const token = /svc_[a-z0-9]{16}_[A-Za-z0-9_-]{43}/.exec(await answer.text())![0];
  assert.ok(await world.apiKeys.verifyKey(token));
  const later = await (await get('/client/developer/', cookie)).text();
  assert.ok(!later.includes(token.slice(-43)));
  assert.match(later, /CI/);

  const key_id = token.split('_')[1]!;
  assert.equal((await post('/client/developer/revoke', cookie, { key_id, csrf_token })).status, 303);
  assert.equal(await world.apiKeys.verifyKey(token), null);
});

test('API-2.1.5: a key is limited to fewer workspaces in the portal, and to none only by revoking it', async () => {
  const customer = await world.createCustomer('Limits');
  const { organizationId, id } = customer.tenant;
  const second = await world.accounts.createTenant(systemActor, { organizationId, name: 'Limits two' });
  const token = await world.createKey(customer);
  const key_id = token.split('_')[1]!;
  const cookie = await world.signIn(customer.email);
  const csrf_token = await csrfOf(cookie);
  const limit = async (fields: Record<string, string>) =>
    (await post('/client/developer/narrow', cookie, { csrf_token, key_id, ...fields })).status;
  const reached = async () => (await world.apiKeys.verifyKey(token))?.tenants.map((tenant) => tenant.id);
  assert.match(await (await get('/client/developer/', cookie)).text(), /Limit this key/);
  assert.equal(await limit({}), 422);
  assert.equal(await limit({ tenants: 'all' }), 422);
  assert.equal(await limit({ key_id: 'unknown000000000', tenants: String(id) }), 404);
  assert.deepEqual(await reached(), [id, second.id]);
  assert.equal(await limit({ tenants: String(second.id) }), 303);
  assert.deepEqual(await reached(), [second.id]);
  const page = await (await get('/client/developer/', cookie)).text();
  assert.doesNotMatch(page, /Limit this key/, 'one workspace is left, of which nothing can be taken');
});

test('API-1.S3: only the owner of the organization creates keys; a member is told so and gets none', async () => {
  const { tenant } = await world.createCustomer('Members');
  const member = await world.accounts.createPerson(systemActor, {
    email: 'member@members.test',
    name: 'Member',
    password: 'a password for tests',
  });
  await world.accounts.addMember(systemActor, tenant.organizationId, member.id);
  const cookie = await world.signIn('member@members.test');
  const keys = await (await get('/client/developer/', cookie)).text();
  assert.match(keys, /No active keys\. Ask the owner for one to call the API\./);
  assert.doesNotMatch(keys, /Create an API key|Create one to call/, 'nor does the palette offer it');
  const page = await (await get('/client/developer/', cookie)).text();
  assert.doesNotMatch(page, /Create key/);
  const fields = {
    name: 'mine',
    scope: 'full',
    csrf_token: await csrfOf(cookie),
    organization: String(tenant.organizationId),
  };
  assert.equal((await post('/client/developer/', cookie, fields)).status, 403);
  assert.doesNotMatch(await (await get('/client/developer/', cookie)).text(), /svc_[a-z0-9]{16}/);
});

test('another customer’s key can not be revoked', async () => {
  const owner = await world.createCustomer('Holder');
  const { token, keyId } = await world.apiKeys.issueKey(systemActor, {
    organizationId: owner.tenant.organizationId,
    personId: owner.owner.id,
    name: 'theirs',
    scope: 'read',
    tenantIds: null,
  });
  const cookie = await world.signIn((await world.createCustomer('Stranger')).email);
  const answer = await post('/client/developer/revoke', cookie, {
    key_id: keyId,
    csrf_token: await csrfOf(cookie),
  });
  assert.equal(answer.status, 404);
  assert.ok(await world.apiKeys.verifyKey(token));
});

test('API-1.4: a signed-in session alone is refused with 401 by every API', async () => {
  const { email } = await world.createCustomer('Session');
  const cookie = await world.signIn(email);
  assert.equal((await get('/client/', cookie)).status, 200);
  for (const path of ['/api/v1/servers', '/api/v2/servers', '/api/v2/tenants', '/api/admin/v1/discovery/']) {
    const answer = await get(path, cookie);
    assert.equal(answer.status, 401, path);
    assert.match(answer.headers.get('content-type') ?? '', /application\/json/, path);
  }
});

test('a deactivated person’s session ends at once', async () => {
  const { email, owner } = await world.createCustomer('Gone');
  const cookie = await world.signIn(email);
  assert.equal((await get('/client/', cookie)).status, 200);
  await world.accounts.setPersonActive(systemActor, owner.id, false);
  assert.equal((await get('/client/', cookie)).status, 303);
});

test('what a URL says was done is shown only where the page knows it', async () => {
  const { email, tenant } = await world.createCustomer('Toasts');
  const { serverId } = await world.deploy(tenant, 'toasted');
  const cookie = await world.signIn(email);
  const pages = [
    'billing/',
    'networks/',
    'settings/',
    'account/',
    'developer/webhooks/',
    '',
    `servers/${serverId}/networks`,
  ];
  for (const path of pages)
    for (const name of ['constructor', '__proto__', 'toString']) {
      const page = await get(`/client/${path}?done=${name}`, cookie);
      assert.equal(page.status, 200, path);
      assert.doesNotMatch(await page.text(), /data-toast=|native code|\[object/, `${path} ${name}`);
    }
});
