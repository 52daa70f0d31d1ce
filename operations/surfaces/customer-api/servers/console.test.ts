import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { after, before, test } from 'node:test';
import { WebSocket } from 'ws';
import type { Capability, ConsoleKind } from '#contracts/capabilities.ts';
import { systemActor } from '#operations/accounts/index.ts';
import { createWorld, type World } from '#operations/testing/create-world.ts';
import { visit } from '#operations/testing/visit.ts';
import { until } from '#service-kit/testing/until.ts';
import { createApiClient } from '../testing/client.ts';
import { connectTo, useAtOnce } from './console-tickets.prove.ts';

let world: World;
let call: ReturnType<typeof createApiClient>;
let unable: readonly Capability[] = [];
/** What the hypervisor's consoles speak in the place of the usual. */
let kinds: readonly ConsoleKind[] | null = null;
let lastKind: ConsoleKind | null = null;
const patientMs = 30_000;

before(async () => {
  world = await createWorld({
    consoleCheckMs: 50,
    hypervisor: (usual) => ({
      ...usual,
      get capabilities() {
        return usual.capabilities.filter((one) => !unable.includes(one));
      },
      get consoleKinds() {
        return kinds ?? usual.consoleKinds;
      },
      openConsole(name, kind) {
        lastKind = kind;
        return usual.openConsole(name, kind);
      },
    }),
  });
  call = createApiClient(world.url);
});
after(() => world[Symbol.asyncDispose]());

async function running(name: string) {
  const customer = await world.createCustomer(name);
  const key = await world.createKey(customer);
  const { serverId } = await world.deploy(customer.tenant, name.toLowerCase());
  const path = `/api/v2/servers/${serverId}/console`;
  const ticket = async () => (await call('POST', path, { key })).body.url as string;
  return { customer, key, serverId, path, ticket };
}

async function opened(url: string) {
  const console = await connectTo(url);
  assert.ok(typeof console !== 'number', `refused with ${console}`);
  const closed = once(console.socket, 'close', { signal: AbortSignal.timeout(patientMs) });
  closed.catch(() => {});
  await until('the console asks to sign in', patientMs, () => console.text().includes('login: '));
  return { ...console, closed };
}

test('a ticket opens the console of its server once, and what is typed comes back', async () => {
  const server = await running('Ada');
  const { status, body } = await call('POST', server.path, { key: server.key });
  assert.deepEqual([status, body.protocol], [201, 'text']);
  assert.match(body.url, /^ws:\/\/127\.0\.0\.1:\d+\/server-console\?ticket=[\w-]{43}$/);
  const seconds = (Date.parse(body.expires_at) - Date.now()) / 1000;
  assert.ok(seconds > 30 && seconds <= 61, `${seconds}`);
  const { socket, text } = await opened(body.url);
  assert.match(text(), new RegExp(`vm-${server.serverId} login: `));
  socket.send(Buffer.from('kR7wq2Vn9tYbXc4M'));
  await until('it comes back', patientMs, () => text().includes('kR7wq2Vn9tYbXc4M'));
  assert.equal(await connectTo(body.url), 401, 'the second use');
  socket.close();
  assert.equal(await connectTo(body.url.replace(/.$/, 'x')), 401, 'an unknown one');
});

test('a ticket is for the protocol that was asked for, and one that the hypervisor does not speak is refused', async (t) => {
  const server = await running('Olga');
  const ask = async (protocol: string) =>
    (await call('POST', server.path, { key: server.key, body: { protocol } })) as {
      status: number;
      body: { url: string; protocol: string; error?: { reason: string } };
    };
  const refused = await ask('vnc');
  assert.deepEqual([refused.status, refused.body.error?.reason], [422, 'unsupported_action']);
  kinds = ['vnc', 'text'];
  t.after(() => {
    kinds = null;
  });
  assert.equal((await call('POST', server.path, { key: server.key })).body.protocol, 'vnc');
  const { status, body } = await ask('text');
  assert.deepEqual([status, body.protocol], [201, 'text']);
  await opened(body.url);
  assert.equal(lastKind, 'text');
  const path = `/client/servers/${server.serverId}/console`;
  const visitor = await visit(world, server.customer.email, path);
  for (const kind of ['text', 'vnc']) {
    const page = await (await visitor.post(path, { kind })).text();
    assert.match(page, new RegExp(`data-kind="${kind}"`));
    assert.match(page, kind === 'text' ? /Open the screen/ : /Open the terminal/);
  }
});

test('an expired ticket opens nothing', async () => {
  const server = await running('Eve');
  const url = await server.ticket();
  await world.database.pool.query("update console_tickets set expires_at = svc_now() - interval '1 second'");
  assert.equal(await connectTo(url), 401);
});

test('of several callers with one ticket at the same time, one gets the console', async () => {
  const server = await running('Rhea');
  for (let race = 0; race < 20; race += 1)
    assert.deepEqual(await useAtOnce(await server.ticket(), server.serverId, 3), []);
});

test('a read key, another tenant and a server that is stopped or has no console get no ticket', async () => {
  const server = await running('Ida');
  const reader = await world.createKey(server.customer, 'read');
  const stranger = await world.createKey(await world.createCustomer('Mallory'));
  const reasonOf = async (key: string) => {
    const { status, body } = await call('POST', server.path, { key });
    return [status, body.error?.reason ?? body.error?.code ?? body.code];
  };
  assert.deepEqual(await reasonOf(reader), [403, 'read_only_key']);
  assert.equal((await reasonOf(stranger))[0], 404);
  unable = ['console'];
  assert.deepEqual(await reasonOf(server.key), [422, 'unsupported_action']);
  unable = [];
  await call('POST', `/api/v2/servers/${server.serverId}/actions`, {
    key: server.key,
    body: { action: 'stop' },
  });
  await world.jobs.drain();
  assert.deepEqual(await reasonOf(server.key), [409, 'server_not_ready']);
});

test('a console closes when its key is revoked, the account suspended, the server stopped or destroyed', async () => {
  const endings: ((server: Awaited<ReturnType<typeof running>>) => Promise<unknown>)[] = [
    ({ customer }) => world.apiKeys.revokeKeysNamed(systemActor, customer.owner.id, 'full key'),
    ({ customer }) =>
      world.database.pool.query(
        "update tenants set status = 'SUSPENDED', suspended_for = 'debt' where id = $1",
        [customer.tenant.id],
      ),
    (server) =>
      call('POST', `/api/v2/servers/${server.serverId}/actions`, {
        key: server.key,
        body: { action: 'stop' },
      }).then(() => world.jobs.drain()),
    (server) => call('DELETE', `/api/v2/servers/${server.serverId}`, { key: server.key }),
    ({ customer }) => world.accounts.setPersonActive(systemActor, customer.owner.id, false),
  ];
  const bystander = await running('Bob');
  const other = await opened(await bystander.ticket());
  for (const [index, end] of endings.entries()) {
    const server = await running(`Ending ${index}`);
    const late = await server.ticket();
    const { closed } = await opened(await server.ticket());
    await end(server);
    await closed;
    assert.equal(await connectTo(late), 401, 'a ticket of before opens nothing');
  }
  assert.equal(other.socket.readyState, WebSocket.OPEN);
  other.socket.terminate();
});

test('a console of the portal closes with the session that opened it', async () => {
  const server = await running('Paula');
  const page = `/client/servers/${server.serverId}`;
  const [mine, elsewhere] = [
    await visit(world, server.customer.email, page),
    await visit(world, server.customer.email, page),
  ];
  const answer = await mine.post(`${page}/console`, {});
  assert.equal(answer.status, 200);
  const path = /data-console="([^"]+)" data-kind="text"/.exec(await answer.text())?.[1];
  const { socket, closed } = await opened(`${world.url.replace(/^http/, 'ws')}${path}`);
  await elsewhere.post('/sign-out', {});
  socket.send(Buffer.from('x'));
  await new Promise((done) => socket.once('message', done));
  assert.equal(socket.readyState, WebSocket.OPEN, 'another session’s end leaves it open');
  await mine.post('/sign-out', {});
  await closed;
});

test('hostile frames end their own connection and no other', async () => {
  const server = await running('Hera');
  const other = await opened(await server.ticket());
  const masked = (first: number, length: number[], body = Buffer.alloc(0)) =>
    Buffer.concat([Buffer.from([first, ...length, 0, 0, 0, 0]), body]);
  const hostile: Record<string, Buffer> = {
    'without a mask': Buffer.from([0x82, 0x01, 0x41]),
    'with reserved bits': masked(0xf2, [0x80]),
    'of an unknown kind': masked(0x83, [0x80]),
    'a continuation of nothing': masked(0x80, [0x80]),
    'larger than a message may be': masked(0x82, [0xff, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff]),
    'of a length beyond numbers': masked(0x82, [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]),
    'text that is no UTF-8': masked(0x81, [0x82], Buffer.from([0xc3, 0x28])),
    'a ping in parts': masked(0x09, [0x80]),
    'no frame at all': Buffer.from('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n'),
  };
  for (const [what, bytes] of Object.entries(hostile)) {
    const { hostname, port, pathname, search } = new URL(await server.ticket());
    const socket = connect(Number(port), hostname);
    socket.on('error', () => {});
    const key = Buffer.alloc(16, 7).toString('base64');
    socket.write(
      `GET ${pathname}${search} HTTP/1.1\r\nHost: ${hostname}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${key}\r\n\r\n`,
    );
    const [head] = (await once(socket, 'data')) as [Buffer];
    assert.match(String(head), /^HTTP\/1\.1 101 /, what);
    const closed = once(socket, 'close', { signal: AbortSignal.timeout(patientMs) });
    socket.resume();
    socket.write(bytes);
    await closed;
  }
  other.socket.send(Buffer.from('kR7wq2Vn9tYbXc4M'));
  await until('the other goes on', patientMs, () => other.text().includes('kR7wq2Vn9tYbXc4M'));
  other.socket.terminate();
});

test('a wish for another protocol, or at another path, is answered as a request without it', async () => {
  for (const [path, upgrade] of [
    ['/healthz', 'websocket'],
    ['/server-console', 'h2c'],
  ] as const) {
    const { hostname, port } = new URL(world.url);
    const socket = connect(Number(port), hostname);
    socket.write(
      `GET ${path} HTTP/1.1\r\nHost: ${hostname}\r\nConnection: Upgrade\r\nUpgrade: ${upgrade}\r\n\r\n`,
    );
    const [head] = (await once(socket, 'data')) as [Buffer];
    assert.match(String(head), path === '/healthz' ? /^HTTP\/1\.1 200 / : /^HTTP\/1\.1 404 /);
    socket.destroy();
  }
});
