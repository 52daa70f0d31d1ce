/** What callers send by mistake or malice: each is told what is wrong, in the API's own words, and nothing breaks. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { connect } from 'node:net';
import { after, before, test } from 'node:test';
import { seededRandom } from '#common/random/index.ts';
import { endpoints } from '#contracts/customer-api/endpoints.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { examplePublicKey } from '#operations/testing/example-public-key.ts';
import { hostileBodies } from '#service-kit/testing/hostile-bodies.ts';
import { type Call, type CallOptions, createApiClient } from './testing/client.ts';

let world: World;
let call: Call;
let key: string;
before(async () => {
  world = await createWorld({ requestsPerMinute: 100_000 });
  call = createApiClient(world.url);
  key = await world.createKey(await world.createCustomer('Strange'));
});
after(() => world[Symbol.asyncDispose]());

/** 20,000 take some minutes. */
const hostileRequests = Number(process.env.SVC_TEST_HOSTILE_REQUESTS ?? 130);
const headers = { 'content-type': 'application/json' };
const order = { plan: 'small', image: 'debian-12', dry_run: true };

/** The faults of a 422, as `path:code`. */
async function faultsOf(method: string, path: string, options: CallOptions = {}): Promise<string[]> {
  const answer = await call(method, path, { key, ...options });
  assert.equal(answer.status, 422, `${method} ${path} ${JSON.stringify(options.body)}: ${answer.text}`);
  return answer.body.error.fields.map(
    (fault: { path: string; code: string }) => `${fault.path}:${fault.code}`,
  );
}

/** Sends these bytes and reads until the server hangs up. */
async function sendBytes(text: string): Promise<{ status: number; head: string; body: string }> {
  const { hostname, port } = new URL(world.url);
  const socket = connect(Number(port), hostname);
  socket.end(text);
  const pieces: Buffer[] = [];
  for await (const piece of socket) pieces.push(piece as Buffer);
  const [head = '', body = ''] = Buffer.concat(pieces).toString('utf8').split('\r\n\r\n', 2);
  return { status: Number(head.split(' ')[1]), head: head.toLowerCase(), body };
}

test('API-7: a text that the database can not keep is a fault of its field, wherever it stands', async () => {
  const network = (await call('POST', '/api/v2/networks', { key, body: { name: 'n' } })).body.id;
  const bodies: [string, string, object, string][] = [
    ['POST', '/api/v2/servers', { ...order, name: 'a\0b' }, 'name'],
    ['POST', '/api/v2/servers', { ...order, user_data: '\0' }, 'user_data'],
    ['POST', '/api/v2/servers', { ...order, labels: { a: '\0' } }, 'labels.a'],
    ['POST', '/api/v2/servers', { ...order, ssh_keys: ['ssh-ed25519 AAAAAAAA\0AAAA'] }, 'ssh_keys.0'],
    ['POST', '/api/v2/networks', { name: 'n', description: '\0' }, 'description'],
    ['PATCH', `/api/v2/networks/${network}`, { labels: { a: 'x\0' } }, 'labels.a'],
  ];
  for (const [method, path, body, field] of bodies) {
    const [fault] = await faultsOf(method, path, { body });
    assert.ok(fault!.startsWith(`${field}:`), `${fault} for ${field}`);
  }
  const half = `{"plan":"small","image":"debian-12","dry_run":true,"user_data":"\\ud800"}`;
  const headers = { 'content-type': 'application/json' };
  assert.deepEqual(await faultsOf('POST', '/api/v2/servers', { raw: half, headers }), [
    'user_data:characters',
  ]);
  for (const query of ['servers?name=%00', 'servers?plan=%00', 'servers?location=a%00', 'networks?name=%00'])
    assert.match((await faultsOf('GET', `/api/v2/${query}`))[0]!, /:characters$/, query);
});

test('API-7: a number beyond 2^53 is refused and never taken for its neighbour', async () => {
  const created = await call('POST', '/api/v2/servers', { key, body: { ...order, dry_run: false } });
  const path = `/api/v2/servers/${created.body.id}/networks`;
  const headers = { 'content-type': 'application/json' };
  for (const number of ['9007199254740993', '1e300', '1e400'])
    assert.equal(
      (await call('POST', path, { key, headers, raw: `{"network_id":${number}}` })).status,
      422,
      number,
    );
  // The largest that is exact names a network that does not exist.
  assert.equal(
    (await call('POST', path, { key, headers, raw: '{"network_id":9007199254740991}' })).status,
    404,
  );
  assert.equal((await call('GET', '/api/v2/networks?server_id=9007199254740991', { key })).status, 200);
  assert.deepEqual(await faultsOf('GET', '/api/v2/networks?server_id=9007199254740993'), ['server_id:type']);
});

test('API-4.9: names are one line of visible text, keys are keys, user data is counted in bytes', async () => {
  for (const name of ['a\tb', 'a\u0007b', '\u202egnp.exe', ' a', 'a ', 'a\u2028b', ''])
    assert.ok((await faultsOf('POST', '/api/v2/servers', { body: { ...order, name } })).length > 0, name);
  assert.deepEqual(await faultsOf('POST', '/api/v2/networks', { body: { name: 'a\u0000' } }), [
    'name:pattern',
  ]);
  for (const name of ['日本語 🎉', "O'Hara; drop table servers--", 'a'.repeat(64), '🎉'.repeat(32)])
    assert.equal(
      (await call('POST', '/api/v2/servers', { key, body: { ...order, name } })).status,
      200,
      name,
    );
  const body = 'AAAAC3NzaC1lZDI1NTE5AAAAIIcvEZ6PfU56tmbpZIWoyu5t5wHpTWVHJabI5CqJAZxo';
  const good = `ssh-ed25519 ${body} Jürgen at home`;
  const keys = [
    'not a key at all, friends',
    'ssh-ed25519 AAAAAAAAAAAAAAAA\nssh-rsa BBBB',
    '-----BEGIN OPENSSH PRIVATE KEY-----',
    // Cut by a terminal or a form, within a string and where one ends.
    good.slice(0, 60),
    `ssh-ed25519 ${body.slice(0, 20)}`,
    good.replace('ed25519', 'rsa'),
  ];
  for (const text of keys)
    assert.deepEqual(await faultsOf('POST', '/api/v2/servers', { body: { ...order, ssh_keys: [text] } }), [
      'ssh_keys.0:pattern',
    ]);
  const others = [
    'ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQC59tjmeni1kzFyBa3L85mAIB3B8gEsyk9Nd2fnbVTpuYvBfGSb+x7EZysiwNxFaRnvmO6KOLllR82hp0vDTteSlVObjP7wiPvRJHkrhWHaoU73wKQ1UD0d/sy3D7HquRB53imE87URideEPzXmD0GkUbmJXs0VvIYZww6LDNgN2jspb8zmPr1IFPYOGautt6lO8gKyQsSVqLwuVCb59KlyogQ4o16fOnhilzf137/xBDIzdrubyPtB6bQ8/K8EcjipKdKICHOkPAEZmoc+UleJ/jzE5uN25GFFv8qw5vysKbI4jSw/0Du8+RGUBaka9I6kFp1A6GkaPIqSpIWQt0SgUrsjJ8Bl5FSTsdTRatpjy40DxwUn1LV72cOIw6RE3DnTNeKwjeJpmiCXtl3YZzsHnVVGIeWap4L4nrCSOcGJaW1salFHQHuOtD9lUSE7WkCmmL+2PiLimnavVkeuhLtU18VefBuYrzbQVl/zVJIXR3Epo6Mi3hCFjj2NSjAVPXc= me@home',
    'ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBDjBw6hlC39lZOJyVyFHRz04JALLno+f1WRiHzEujkzFQbrhAHPVJ7eiQ42nKgQZnXU0k7vz/Iv/YgDNc1r+zno= me@home',
  ];
  const fits = { ...order, ssh_keys: [`${good}\n`, ...others], user_data: 'é'.repeat(32_768) };
  assert.equal((await call('POST', '/api/v2/servers', { key, body: fits })).status, 200);
  const userData = { ...order, user_data: 'é'.repeat(32_769) };
  assert.deepEqual(await faultsOf('POST', '/api/v2/servers', { body: userData }), ['user_data:maxLength']);
});

test('API-7: a fault says what would be right, also where a field has a choice of types', async () => {
  const messageOf = async (body: object) =>
    (await call('POST', '/api/v2/networks', { key, body })).body.error.fields[0].message;
  assert.equal(await messageOf({ name: 'n', description: 5 }), 'must be text or null');
  assert.equal(
    await messageOf({ name: 'n', description: 'a'.repeat(256) }),
    'must not have more than 255 characters',
  );
  assert.equal(await messageOf({ name: 'n', location: true }), 'must be text or a whole number');
  assert.match(await messageOf({ name: ' n' }), /must not begin or end with a space/);
});

test('API-4.9: a query parameter that does nothing is refused, so that ?dry_run=true never deploys', async () => {
  const { dry_run: _, ...body } = order;
  assert.deepEqual(await faultsOf('POST', '/api/v2/servers?dry_run=true', { body }), [
    'dry_run:unknown_field',
  ]);
  for (const path of ['account', 'key', 'tenants', 'networks/1', 'servers/1/firewall', 'servers/1/networks'])
    assert.deepEqual(await faultsOf('GET', `/api/v2/${path}?verbose=1`), ['verbose:unknown_field'], path);
  assert.equal((await call('GET', '/api/v1/account?tenant=nonsense', { key })).status, 200, 'API-9.1');
});

test('API-9.2: an empty tenant is a variable that was not set: it reaches nothing, not the default workspace', async () => {
  for (const [path, headers] of [
    ['/api/v2/servers?tenant=', {}],
    ['/api/v2/servers', { 'x-tenant-id': '' }],
  ] as const)
    assert.equal((await call('GET', path, { key, headers })).status, 404, path);
  assert.equal((await call('POST', '/api/v2/servers?tenant=', { key, body: order })).status, 404);
});

test('API-4.9: created_after needs its offset, because a time without an offset is ambiguous', async () => {
  for (const text of ['2026-01-01T00:00:00', '2026-01-01T00:00', '2026', 'yesterday', '2026-13-01'])
    assert.deepEqual(
      await faultsOf('GET', `/api/v2/servers?created_after=${text}`),
      ['created_after:format'],
      text,
    );
  for (const text of ['2026-01-01', '2026-01-01T00:00:00Z', '2026-01-01T00:00:00.5%2B02:00'])
    assert.equal((await call('GET', `/api/v2/servers?created_after=${text}`, { key })).status, 200, text);
});

test('a compressed body is refused with a 415, because the server does not decompress', async () => {
  for (const encoding of ['gzip', 'br', 'x'])
    assert.equal(
      (await call('POST', '/api/v2/servers', { key, body: order, headers: { 'content-encoding': encoding } }))
        .status,
      415,
    );
  const identity = { 'content-encoding': 'identity' };
  assert.equal((await call('POST', '/api/v2/servers', { key, body: order, headers: identity })).status, 200);
});

test('every refusal below /api/ has the API’s body, its id and CORS, for every method and path', async () => {
  const long = `/api/v2/servers/${'9'.repeat(5_000)}`;
  assert.equal((await call('GET', long, { key })).status, 404);
  assert.equal((await call('GET', long)).status, 401, 'API-8.2: who it is comes first');
  const head = 'Host: x\r\nX-Client-Request-Id: mine\r\nConnection: close\r\n';
  for (const [first, status] of [
    ['GET /api/v2/nothing', 404],
    ['POST /api/v1/tenants', 404],
    ['PROPFIND /api/v2/servers', 405],
    ['QUERY /api/v2/servers', 405],
    ['PUT /api/v1/servers/1/', 405],
    ['TRACE /api/v2/key', 405],
  ] as const) {
    const answer = await sendBytes(`${first} HTTP/1.1\r\n${head}\r\n`);
    assert.equal(answer.status, status, first);
    assert.match(answer.head, /\r\naccess-control-allow-origin: \*/, first);
    assert.match(answer.head, /\r\nx-client-request-id: mine/, first);
    assert.match(answer.head, /\r\ncache-control: no-store/, first);
    if (status === 405) assert.match(answer.head, /\r\nallow: options, /, first);
    const { error } = JSON.parse(answer.body);
    assert.equal(error.code, status === 404 ? 'not_found' : 'method_not_allowed', first);
  }
});

test('what can’t be read as HTTP is told so in the body of every error', async () => {
  for (const [text, status] of [
    ['hello\r\n\r\n', 400],
    ['GET /api/v2/servers/%zz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n', 400],
    ['POST /api/v2/servers HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n', 400],
    [
      'POST /api/v2/servers HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n',
      400,
    ],
    [`GET /api/v2/key HTTP/1.1\r\nHost: x\r\nX-A: ${'a'.repeat(20_000)}\r\n\r\n`, 431],
    ['GET /api/v2/key HTTP/1.1\r\nHost: x\r\nExpect: 200-maybe\r\nConnection: close\r\n\r\n', 401],
  ] as const) {
    const answer = await sendBytes(text);
    assert.equal(answer.status, status, text.slice(0, 90));
    const { error } = JSON.parse(answer.body);
    assert.equal(error.code, status === 401 ? 'unauthorized' : 'bad_request');
    assert.match(answer.head, new RegExp(`x-request-id: ${error.request_id.toLowerCase()}`));
  }
});

test('two requests sent at once over one connection are both answered, in their order', async () => {
  const one = (path: string, more = '') =>
    `GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n${more}\r\n`;
  const { hostname, port } = new URL(world.url);
  const socket = connect(Number(port), hostname);
  socket.write(one('/api/v2/tenants') + one('/api/v2/key', 'Connection: close\r\n'));
  const pieces: Buffer[] = [];
  for await (const piece of socket) pieces.push(piece as Buffer);
  const text = Buffer.concat(pieces).toString('utf8');
  assert.equal(text.split('HTTP/1.1 200 OK').length, 3);
  assert.ok(text.indexOf('"tenants":[{') < text.indexOf('"key_id"'));
});

test('a cursor that was made up tells nothing about another account’s servers', async () => {
  const other = await world.createCustomer('Other');
  const { dry_run: _, ...body } = order;
  const otherKey = await world.createKey(other);
  const theirs = (await call('POST', '/api/v2/servers', { key: otherKey, body })).body.id;
  const cursor = Buffer.from(JSON.stringify(['newest', theirs, 'x'])).toString('base64url');
  assert.deepEqual((await call('GET', `/api/v2/servers?cursor=${cursor}`, { key })).body.servers, []);
  const nul = Buffer.from(JSON.stringify(['name', 1, '\0'])).toString('base64url');
  assert.equal((await call('GET', `/api/v2/servers?sort=name&cursor=${nul}`, { key })).status, 400);
});

test('application/problem+json says the same in the members of RFC 9457, only on request', async () => {
  const accept = 'application/problem+json';
  const problem = await call('GET', '/api/v2/servers/424242', { key, headers: { accept } });
  assert.equal(problem.headers.get('content-type'), accept);
  const { request_id, ...rest } = problem.body;
  assert.deepEqual(rest, {
    type: '/docs/api/#error-not_found',
    title: 'Not Found',
    status: 404,
    detail: 'There is nothing here by that name or id.',
    instance: problem.headers.get('x-request-id'),
    code: 'not_found',
    retryable: false,
  });
  assert.equal(request_id, problem.headers.get('x-request-id'));
  const faults = await call('POST', '/api/v2/servers', { key, body: {}, headers: { accept } });
  assert.deepEqual([faults.body.reason, faults.body.fields.length], ['invalid_fields', 1]);
  for (const usual of [
    '*/*',
    'application/json, application/problem+json',
    'text/html',
    'application/problem+json;q=0',
  ])
    assert.ok(
      (await call('GET', '/api/v2/servers/424242', { key, headers: { accept: usual } })).body.error,
      usual,
    );
});

test('API-4: the actions of a server come in pages that hold all of them', async () => {
  const { dry_run: _, ...body } = order;
  const { id } = (await call('POST', '/api/v2/servers', { key, body })).body;
  await world.jobs.drain();
  for (let i = 0; i < 4; i += 1)
    assert.equal(
      (await call('POST', `/api/v2/servers/${id}/actions`, { key, body: { action: 'start' } })).body.changed,
      false,
    );
  const seen: number[] = [];
  let path: string | null = `/api/v2/servers/${id}/actions?limit=2`;
  while (path !== null) {
    const page = await call('GET', path, { key });
    assert.equal(page.body.pagination.total, 5);
    seen.push(...page.body.actions.map((action: { id: number }) => action.id));
    const link: string | null = page.headers.get('link');
    assert.equal(link !== null, page.body.pagination.has_more);
    path = link === null ? null : /<(.*?)>; rel="next"/.exec(link)![1]!;
  }
  assert.equal(seen.length, 5);
  assert.deepEqual(
    seen,
    seen.toSorted((a, b) => b - a),
  );
  const foreign = Buffer.from('networks:1').toString('base64url');
  assert.equal((await call('GET', `/api/v2/servers/${id}/actions?cursor=${foreign}`, { key })).status, 400);
});

test(`API-7: no value of JSON is a fault of the server, as a body or in any place of one, in ${hostileRequests} requests`, async () => {
  const customer = await world.createCustomer('Hostile');
  const hostile = await world.createKey(customer);
  const { serverId } = await world.deploy(customer.tenant, 'hostile-1');
  const make = async (path: string, body: object) => {
    const made = await call('POST', `/api/v2${path}`, { key: hostile, body });
    assert.ok(made.status < 300, made.text);
    return made;
  };
  const network = await make('/networks', { name: 'hostile' });
  const rule = {
    direction: 'inbound',
    action: 'accept',
    protocol: 'tcp',
    ports: '22',
    sources: ['192.0.2.1'],
  };
  const webhook = { url: 'https://hooks.example.com/', events: ['key.created'], description: 'a' };
  const sshKey = { name: 'a', public_key: examplePublicKey(1) };
  const others = {
    'ssh-key': (await make('/ssh-keys', sshKey)).body.id,
    'firewall-rule': (await make(`/servers/${serverId}/firewall/rules`, rule)).body.id,
    webhook: (await make('/webhooks', webhook)).body.id,
    key: (await make('/keys', { name: 'a', scope: 'read' })).body.key_id,
  };
  await make(`/webhooks/${others.webhook}/test`, {});
  const { deliveries } = (
    await call('GET', `/api/v2/webhooks/${others.webhook}/deliveries`, { key: hostile })
  ).body;
  await world.jobs.drain();
  const finding = { address: '203.0.113.10', transport: 'tcp', port: 443, fingerprint: 'a' };
  const valid: Record<string, object> = {
    createServer: {
      ...{
        ...order,
        hostname: 'a.example',
        labels: { a: 'b' },
        ssh_keys: [],
        user_data: '',
        public_ip: true,
      },
      ...{ network_id: network.body.id, network_ip: '10.0.0.9', name: 'a', location: 'fra' },
    },
    updateServer: { name: 'a', hostname: 'a.example', labels: { a: 'b' } },
    actOnServer: { action: 'shutdown', timeout_s: 5, on_timeout: 'stop' },
    createNetwork: { name: 'a', cidr: '10.9.0.0/24', location: 'fra', description: 'a', labels: { a: 'b' } },
    changeNetwork: { name: 'a', description: 'a', labels: { a: 'b' } },
    attachServer: { network_id: network.body.id, ip: '10.0.0.9' },
    createSshKey: sshKey,
    updateSshKey: { name: 'b' },
    replaceServerFirewall: {
      ...{ enabled: true, policies: { inbound: 'drop', outbound: 'accept' }, rules: [rule, rule] },
    },
    addFirewallRule: { ...rule, position: 1, description: 'a' },
    replaceFirewallRule: rule,
    createWebhook: webhook,
    updateWebhook: { ...webhook, enabled: true },
    createApiKey: {
      ...{ name: 'a', scope: 'read', tenant_ids: [customer.tenant.id], expires_at: '2028-01-01T00:00:00Z' },
    },
    ignoreServerFinding: { ...finding, reason: 'a', until: '2027-01-01T00:00:00Z' },
  };
  const taking = endpoints.filter((one) => 'body' in one);
  // What removes things comes last.
  const inOrder = taking.toSorted((a, b) => Number(a.method === 'DELETE') - Number(b.method === 'DELETE'));
  const of: Record<string, number | string> = {
    ...{ server: serverId, network: network.body.id, action: 1, delivery: deliveries[0].id },
    ...others,
  };
  for (const { id, method, path, params } of inOrder) {
    const kinds: Record<string, string> = params;
    const url = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => String(of[kinds[name]!]));
    const count = Math.ceil(hostileRequests / taking.length);
    for (const body of [
      ...[null, true, 1e308, 'a', [], [null]],
      ...hostileBodies(valid[id] ?? { tenant: 'a' }, count, 12),
    ]) {
      const answer = await call(method, `/api/v2${url}`, {
        key: hostile,
        raw: JSON.stringify(body),
        headers,
      });
      const sent = JSON.stringify(body).slice(0, 2000);
      assert.ok(answer.status < 500, `${answer.status} ${id} ${sent}: ${answer.text}`);
      if (typeof body !== 'object' || body === null || Array.isArray(body))
        assert.ok([404, 422].includes(answer.status), `${answer.status} ${id} ${sent}: ${answer.text}`);
    }
  }
});

test(`API-4.2, API-7: no path, query or header is a fault of the server or shows another’s thing, in ${hostileRequests} requests`, async () => {
  const [mine, other] = [await world.createCustomer('Texts'), await world.createCustomer('Texts of another')];
  const reader = await world.createKey(mine, 'read');
  const needle = randomBytes(8).toString('hex');
  const foreign = (await world.deploy(other.tenant, needle)).serverId;
  const own = (await world.deploy(mine.tenant, 'texts')).serverId;
  const texts = [
    ...[
      '',
      '%20',
      '0',
      '-1',
      '+1',
      '1.5',
      '1e400',
      '0x10',
      '9007199254740993',
      '%00',
      'a%00',
      '%ED%A0%80',
      '%FF',
      '%',
    ],
    ...[
      'x'.repeat(5_000),
      '%E2%80%AEa',
      '2026-13',
      '2027-06',
      '2027-02-30',
      '2026-06-16T10:00:00Z',
      '0000-01',
      'null',
    ],
    ...[
      '[]',
      '1,2,,3',
      ',',
      'a=b&a=c',
      '*',
      '..%2F..',
      '%27--',
      'eyJ4IjoxfQ',
      'name',
      '-created_at',
      'day',
      'all',
      '200',
    ],
    ...[String(foreign), String(own), String(other.tenant.id), other.tenant.slug, '203.0.113.300', '%3A%3A1'],
  ];
  // What is empty or can't be decoded is no path of the document.
  const inPaths = texts.filter((text) => text !== '' && !/%(FF|ED|$)/.test(text));
  const headerTexts = [
    ...[
      '',
      '*',
      '"a"',
      'W/"a"',
      '"a',
      ',',
      'a b',
      'x'.repeat(5_000),
      '0',
      '-1',
      'wait=0',
      'wait=1e9',
      'wait=, wait=x',
    ],
    ...[
      'text/csv',
      'text/csv;q=2',
      '*/*;q=0',
      'application/json',
      'gzip;q=x',
      '\u00ff',
      String(other.tenant.id),
    ],
  ];
  const headerNames = [
    'if-none-match',
    'if-match',
    'prefer',
    'accept',
    'accept-encoding',
    'x-tenant-id',
    'idempotency-key',
  ];
  const uniform = seededRandom(13);
  const pick = <T>(of: readonly T[]): T => of[Math.floor(uniform() * of.length)]!;
  const reads = endpoints.filter(({ method }) => method === 'GET');
  for (let turn = 0; turn < hostileRequests; turn += 1) {
    const { path, query, versions } = reads[turn % reads.length]!;
    const known = Object.keys((query as { properties?: object } | undefined)?.properties ?? {});
    const pairs = Array.from(
      { length: Math.floor(uniform() * 3) },
      () => `${pick([...known, 'tenant', 'x'])}=${pick(texts)}`,
    );
    const place = path.replaceAll(/\{\w+\}/g, () => (uniform() < 0.4 ? String(own) : pick(inPaths)));
    const url = `/api/${pick(versions)}${place}${pairs.length === 0 ? '' : `?${pairs.join('&')}`}`;
    const headers = uniform() < 0.5 ? {} : { [pick(headerNames)]: pick(headerTexts) };
    const answer = await call('GET', url, { key: reader, headers });
    const sent = `${answer.status} ${url.slice(0, 300)} ${JSON.stringify(headers).slice(0, 200)}`;
    assert.ok(answer.status < 500, `${sent}: ${answer.text}`);
    assert.ok(!answer.text.includes(needle), `${sent} shows the other’s server`);
  }
});
