/** What a browser can be made to do to us (I1, I2, I4 of the reliability plan), on every route that the router knows. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { endpoints } from '#contracts/customer-api/index.ts';
import { systemActor } from '#operations/accounts/index.ts';
import { createWorld, password, type World } from '#operations/testing/dated-world.ts';

let world: World;
/** Values of path variables by the words before them, so that a request that slips through would change something. */
let ids: Record<string, string>;

interface Session {
  cookie: string;
  token: string;
}
const sessions: Record<'owner' | 'other' | 'operator', Session> = {} as never;

before(async () => {
  world = await createWorld();
  const owner = await world.createCustomer('Victim');
  const other = await world.createCustomer('Attacker');
  await world.accounts.createPerson(systemActor, {
    email: 'operator@staff.test',
    name: 'Operator',
    password,
    staffRole: 'operator',
  });
  sessions.owner = await startSession(owner.email, '/client/');
  sessions.other = await startSession(other.email, '/client/');
  sessions.operator = await startSession('operator@staff.test', '/console/');
  const { serverId } = await world.deploy(owner.tenant, 'victim');
  const actor = (await world.accounts.customerActorOf(owner.owner.id))!;
  const { endpointId } = await world.webhooks.createEndpoint(actor, {
    organizationId: owner.tenant.organizationId,
    tenantId: null,
    url: 'https://example.com/',
    description: '',
    eventTypes: ['key.created'],
  });
  await world.createKey(owner);
  const project = await world.adminProjects.create(systemActor, {
    name: 'Project',
    permissions: ['vm_inventory_read'],
    clusterIds: null,
  });
  ids = { servers: String(serverId), webhooks: String(endpointId), projects: String(project.id) };
});
after(() => world[Symbol.asyncDispose]());

async function startSession(email: string, path: string): Promise<Session> {
  const cookie = await world.signIn(email);
  const page = await (
    await fetch(`${world.url}${path}`, { headers: { cookie, accept: 'text/html' } })
  ).text();
  return { cookie, token: /name="csrf_token" value="([^"]+)"/.exec(page)![1]! };
}

/** One figure over every row of every table, without those that reading alone may touch. */
async function checksum(): Promise<string> {
  const { pool } = world.database;
  const { rows } = await pool.query<{ name: string }>(
    `select table_name as name from information_schema.tables where table_schema = 'public'
     and table_type = 'BASE TABLE' and table_name not in ('sessions', 'sign_in_failures', 'leases') order by 1`,
  );
  const sums = await Promise.all(
    rows.map(async ({ name }) => {
      const text = `select md5(coalesce(string_agg(t::text, '' order by t::text), '')) as sum from "${name}" t`;
      return `${name} ${(await pool.query<{ sum: string }>(text)).rows[0]!.sum}`;
    }),
  );
  return sums.join('\n');
}

const pathOf = (url: string) =>
  url
    .replace(/\/([a-z-]+)\/:\w+/g, (_, word: string) => `/${word}/${ids[word] ?? '1'}`)
    .replace(/:\w+/g, '1');

/** Everything behind a session that is not a mere reading. */
const unsafeRoutes = () =>
  world.routes.filter(
    ({ method, url }) =>
      /^\/(client|console)(\/|$)|^\/sign-out/.test(url) && !['GET', 'HEAD'].includes(method),
  );

interface Forgery {
  token?: string;
  headers?: Record<string, string>;
  type?: 'text/plain' | 'multipart/form-data; boundary=x' | 'application/json';
  inQuery?: boolean;
}

async function forge(method: string, path: string, session: Session, forgery: Forgery): Promise<number> {
  // Fields that many forms have, so that a form that got through would find what it needs.
  const fields: Record<string, string> = {
    ...(forgery.token !== undefined && !forgery.inQuery ? { csrf_token: forgery.token } : {}),
    name: 'forged',
    action: 'stop',
    confirm_name: 'victim',
    scope: 'full',
  };
  const type = forgery.type ?? 'application/x-www-form-urlencoded';
  const body =
    type === 'application/json'
      ? JSON.stringify(fields)
      : type.startsWith('multipart')
        ? `--x\r\ncontent-disposition: form-data; name="csrf_token"\r\n\r\n${forgery.token}\r\n--x--\r\n`
        : String(new URLSearchParams(fields));
  const query = forgery.inQuery ? `?csrf_token=${encodeURIComponent(forgery.token ?? '')}` : '';
  const answer = await fetch(`${world.url}${path}${query}`, {
    method,
    redirect: 'manual',
    headers: { accept: 'text/html', cookie: session.cookie, 'content-type': type, ...forgery.headers },
    body,
  });
  await answer.arrayBuffer();
  return answer.status;
}

test('I1: no unsafe route of portal and console does anything for a request that another site could have made', async () => {
  const routes = unsafeRoutes();
  assert.ok(routes.length >= 15, `only ${routes.length} routes`);
  const before = await checksum();
  let tried = 0;
  for (const { method, url } of routes) {
    const session = url.startsWith('/console') ? sessions.operator : sessions.owner;
    const { token } = session;
    const forgeries: Forgery[] = [
      {},
      { token: '' },
      { token: sessions.other.token },
      { token: `${token}x` },
      { token, inQuery: true },
      { headers: { cookie: `${session.cookie}; csrf_token=${token}` } },
      { token: sessions.other.token, type: 'application/json' },
      { token, type: 'text/plain' },
      { token, type: 'multipart/form-data; boundary=x' },
      { token, headers: { 'sec-fetch-site': 'cross-site' } },
      { token, headers: { 'sec-fetch-site': 'same-site' } },
      { token, headers: { 'sec-fetch-site': 'none' } },
      { token, headers: { origin: 'null' } },
      { token, headers: { origin: 'https://evil.example' } },
    ];
    for (const forgery of forgeries) {
      const status = await forge(method, pathOf(url), session, forgery);
      const isRefused = status === 403 || (status === 415 && forgery.type !== undefined);
      assert.ok(isRefused, `${method} ${url} answered ${status} to ${JSON.stringify(forgery)}`);
      tried += 1;
    }
    const read = await fetch(`${world.url}${pathOf(url)}?csrf_token=${token}&name=forged`, {
      headers: { cookie: session.cookie, accept: 'text/html' },
      redirect: 'manual',
    });
    await read.arrayBuffer();
  }
  assert.equal(await checksum(), before, 'something was changed');
  assert.ok(tried >= 14 * 15);
});

test('the same request from our own page, with its token, does what it is for', async () => {
  const before = await checksum();
  const own = { token: sessions.owner.token, headers: { 'sec-fetch-site': 'same-origin' } };
  const path = `/client/developer/webhooks/${ids.webhooks}/disable`;
  assert.equal(await forge('POST', path, sessions.owner, own), 303);
  assert.notEqual(await checksum(), before);
});

test('I2, API-5.6: cookies have no influence on any call of the API', async () => {
  const customer = await world.createCustomer('Cookies');
  const key = await world.createKey(customer, 'read');
  const foreign = sessions.owner.cookie;
  const ask = async (method: string, path: string, headers: Record<string, string>) => {
    const answer = await fetch(`${world.url}${path}`, { method, headers });
    const text = (await answer.text()).replaceAll(/req_[0-9A-Z]{26}/g, 'ID');
    return { status: answer.status, text, tenant: answer.headers.get('x-tenant-id') };
  };
  for (const endpoint of endpoints) {
    for (const version of endpoint.versions) {
      const path = `/api/${version}${endpoint.path.replace(/\{\w+\}/g, ids.servers!)}`;
      const session = await ask(endpoint.method, path, { cookie: foreign });
      assert.equal(session.status, 401, `${endpoint.id} with a session alone`);
      const badKey = { cookie: foreign, authorization: `Bearer ${key.slice(0, -1)}~` };
      assert.deepEqual(await ask(endpoint.method, path, badKey), session, `${endpoint.id} with a bad key`);
      if (endpoint.method !== 'GET') continue;
      const authorization = `Bearer ${key}`;
      const alone = await ask('GET', path, { authorization });
      const beside = await ask('GET', path, { authorization, cookie: foreign });
      // How much of the minute is left is the one thing that the second call of a key tells differently.
      const steady = (one: typeof alone) => ({ ...one, text: one.text.replace(/"remaining":\d+/, '') });
      const isMoving = ['readKey', 'readUsage', 'readAccount'].includes(endpoint.id);
      assert.equal(beside.status, alone.status, endpoint.id);
      assert.equal(beside.tenant, alone.tenant, endpoint.id);
      if (!isMoving) assert.deepEqual(steady(beside), steady(alone), endpoint.id);
    }
  }
});

test('API-2.1.4: the workspace that the browser of a key’s owner shows is not that of the key’s calls', async () => {
  const customer = await world.createCustomer('Of two workspaces');
  const { organizationId } = customer.tenant;
  const second = await world.accounts.createTenant(systemActor, { organizationId, name: 'Second workspace' });
  const authorization = `Bearer ${await world.createKey(customer, 'read')}`;
  const cookie = await world.signIn(customer.email);
  const chosen = `/client/billing/?tenant=${second.id}`;
  const page = await fetch(`${world.url}${chosen}`, { headers: { cookie, accept: 'text/html' } });
  assert.match(await page.text(), /Second workspace/);
  for (const headers of [{ authorization }, { authorization, cookie, referer: `${world.url}${chosen}` }]) {
    const answer = await fetch(`${world.url}/api/v2/account`, { headers });
    assert.equal(answer.headers.get('x-tenant-id'), String(customer.tenant.id));
  }
});

test('I4, API-2.1.a: a new key is in one response only, after any action of the browser', async () => {
  const { cookie, token } = sessions.other;
  const create = async () => {
    const answer = await fetch(`${world.url}/client/developer/`, {
      method: 'POST',
      headers: { cookie, accept: 'text/html' },
      body: new URLSearchParams({ csrf_token: token, name: 'once', scope: 'read' }),
      redirect: 'manual',
    });
    assert.match(answer.headers.get('cache-control')!, /no-store/);
    assert.equal(answer.status, 200);
    return /svc_[a-z0-9]{16}_[A-Za-z0-9_-]{43}/.exec(await answer.text())![0];
  };
  // A double submit makes two keys, each shown once; a reload or the way back asks with GET and shows none.
  const made = [await create(), await create()];
  assert.notEqual(made[0], made[1]);
  for (const path of ['/client/developer/', '/client/', '/client/developer/usage/']) {
    const answer = await fetch(`${world.url}${path}`, { headers: { cookie, accept: 'text/html' } });
    const page = await answer.text();
    assert.match(answer.headers.get('cache-control')!, /no-store/);
    for (const key of made) assert.ok(!page.includes(key.slice(-43)), path);
  }
});
