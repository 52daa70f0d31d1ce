import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import { sql } from 'kysely';
import { Type } from 'typebox';
import { createReporter, silentReporter } from '#common/reporter/index.ts';
import { createTestDatabase } from '#service-kit/testing/index.ts';
import {
  createHttpServer,
  HttpError,
  newRequestId,
  parseStrictJson,
  sourceBucket,
  waitingAnswers,
} from './index.ts';

const options = { host: '127.0.0.1', port: 0, portSetting: 'SVC_X_PORT', reporter: silentReporter };

async function makeServer() {
  return createHttpServer({
    ...options,
    routes(app) {
      app.post(
        '/things',
        {
          schema: {
            body: Type.Object({ name: Type.String() }),
            response: { 201: Type.Object({ name: Type.String() }) },
          },
        },
        async (request, reply) => {
          reply.code(201);
          return { name: request.body.name, secret: 'not in the schema' };
        },
      );
      app.get('/conflict', async () => {
        throw new HttpError(
          409,
          { code: 'conflict', reason: 'server_busy', message: 'Busy.' },
          { 'retry-after': '3' },
        );
      });
      app.get('/broken', async () => {
        throw new Error('select password from people');
      });
      app.get('/library', async () => {
        throw Object.assign(new Error('Invalid API Key provided'), { statusCode: 401 });
      });
      app.get('/database', async () => {
        throw Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
      });
    },
  });
}

test('a field that no schema names does not leave', async () => {
  const { app } = await makeServer();
  const answer = await app.inject({ method: 'POST', url: '/things', payload: { name: 'a' } });
  assert.equal(answer.statusCode, 201);
  assert.deepEqual(answer.json(), { name: 'a' });
});

test('errors have one body: code, message and request id, and never the inside of a defect', async () => {
  const { app } = await makeServer();
  const conflict = await app.inject('/conflict');
  assert.equal(conflict.statusCode, 409);
  assert.equal(conflict.headers['retry-after'], '3');
  assert.equal(conflict.json().error.reason, 'server_busy');
  assert.equal(conflict.json().error.request_id, conflict.headers['x-request-id']);
  const broken = await app.inject('/broken');
  assert.equal(broken.statusCode, 500);
  assert.equal(broken.json().error.code, 'internal_error');
  assert.ok(!broken.body.includes('password'));
  const library = await app.inject('/library');
  assert.equal(library.statusCode, 500, 'what another service answered is not the caller’s fault');
  const database = await app.inject('/database');
  assert.equal(database.statusCode, 503);
  assert.equal(database.headers['retry-after'], '2');
  const nothing = await app.inject('/nothing');
  assert.equal(nothing.statusCode, 404);
  assert.equal(nothing.json().error.code, 'not_found');
});

test('no answer is kept by a cache or read as another type, unless its route says so', async () => {
  const { app } = await makeServer();
  const ask = async (url: string, payload?: object) =>
    (await app.inject({ url, ...(payload && { method: 'POST', payload }) })).headers;
  for (const headers of [
    ...[await ask('/things', { name: 'a' }), await ask('/things', {}), await ask('/broken')],
    ...[await ask('/nothing'), await ask('/%'), await ask('/conflict')],
  ])
    assert.deepEqual(
      [headers['cache-control'], headers['x-content-type-options']],
      ['no-store', 'nosniff'],
      String(headers['x-request-id']),
    );
});

test('bodies that are ambiguous, of another type or too large are refused with what to do', async () => {
  const { app } = await makeServer();
  const post = (payload: string, type = 'application/json') =>
    app.inject({ method: 'POST', url: '/things', payload, headers: { 'content-type': type } });
  assert.equal((await post('{"name":"a","name":"b"}')).statusCode, 400);
  assert.equal((await post('{"name":')).json().error.reason, 'invalid_json');
  assert.equal((await post('<a/>', 'text/xml')).statusCode, 415);
  assert.equal((await post(`{"name":"${'a'.repeat(300_000)}"}`)).statusCode, 413);
  const wrong = await post('{"name":5}');
  assert.equal(wrong.statusCode, 422);
  assert.equal(wrong.json().error.fields[0].path, 'name');
});

test('a body is UTF-8, with or without a byte order mark', async () => {
  const { app } = await makeServer();
  const send = (payload: Buffer) =>
    app.inject({ method: 'POST', url: '/things', payload, headers: { 'content-type': 'application/json' } });
  const marked = await send(Buffer.from('\ufeff{"name":"a"}'));
  assert.deepEqual([marked.statusCode, marked.json()], [201, { name: 'a' }]);
  const broken = await send(Buffer.from('{"name":"\xff"}', 'latin1'));
  assert.deepEqual(
    [broken.statusCode, broken.json().error.reason, broken.json().error.message],
    [400, 'invalid_json', 'The body is not valid UTF-8.'],
  );
});

test('a taken port is said in one sentence that names the setting', async () => {
  const taken = createServer();
  await new Promise<void>((done) => taken.listen(0, '127.0.0.1', done));
  const { port } = taken.address() as { port: number };
  const server = await createHttpServer({ ...options, port, routes: () => {} });
  await assert.rejects(server.start(), new RegExp(`Port ${port} .* SVC_X_PORT`));
  taken.close();
});

test('strict JSON refuses more values than any body of ours holds, before they are made', () => {
  for (const many of ['{},', '[],', '0,', '"",', '{"a":[{}]},']) {
    const text = `[${many.repeat(600_000)}0]`;
    assert.throws(() => parseStrictJson(text), { name: 'SyntaxError', message: /more than 500000 values/ });
  }
  const most = `[${'0,'.repeat(499_000)}0]`;
  assert.deepEqual(parseStrictJson(most), JSON.parse(most));
});

test('strict JSON refuses more names in one object than any body of ours has', () => {
  const named = (count: number) =>
    JSON.stringify(Object.fromEntries(Array.from({ length: count }, (_, i) => [`f${i}`, 0])));
  assert.deepEqual(parseStrictJson(named(1000)), JSON.parse(named(1000)));
  const message = 'An object of the body has more than 1000 names.';
  for (const text of [named(1001), `[{"a":${named(1001)}}]`])
    assert.throws(() => parseStrictJson(text), { name: 'SyntaxError', message });
});

test('strict JSON refuses duplicate names anywhere, __proto__ and deep nesting, and takes the rest', () => {
  for (const bad of [
    '{"a":1,"a":2}',
    '{"a":1,"\\u0061":2}',
    '[{"x":{"y":1,"y":1}}]',
    '{"__proto__":1}',
    '['.repeat(40) + ']'.repeat(40),
    '{"a"',
    '',
  ]) {
    assert.throws(() => parseStrictJson(bad), SyntaxError, bad);
  }
  for (const good of ['{"a":{"a":1},"b":["a","a"]}', '"a"', '[]', '{"a":"x\\"y: {","b":1}']) {
    assert.deepEqual(parseStrictJson(good), JSON.parse(good));
  }
});

test('a request id is req_ and a ULID, whose first ten characters are the time', () => {
  assert.match(newRequestId(), /^req_[0-9A-HJKMNP-TV-Z]{26}$/);
  const digits = [...newRequestId(1_764_000_000_123).slice(4, 14)];
  const crockford = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
  const timeMs = digits.reduce((sum, digit) => sum * 32 + crockford.indexOf(digit), 0);
  assert.equal(timeMs, 1_764_000_000_123);
});

test('IPv6 sources are throttled by their /64, IPv4 ones by themselves', () => {
  assert.equal(sourceBucket('2001:db8:1:2:3:4:5:6'), '2001:db8:1:2::/64');
  assert.equal(sourceBucket('192.0.2.1'), '192.0.2.1');
  assert.equal(sourceBucket('::ffff:192.0.2.1'), '192.0.2.1');
});

test('API-8.c: X-Forwarded-For is believed of our own proxies alone, and only what they wrote into it', async () => {
  const sourceOf = async (trustedProxies: readonly string[], remoteAddress: string, forwarded: string) => {
    const { app } = await createHttpServer({
      ...options,
      trustedProxies,
      routes: (it) => void it.get('/who', async (request) => sourceBucket(request.ip)),
    });
    const headers = { 'x-forwarded-for': forwarded };
    return (await app.inject({ url: '/who', remoteAddress, headers })).body;
  };
  const [proxy, client] = ['10.1.2.3', '198.51.100.7'];
  assert.equal(await sourceOf([], proxy, client), proxy, 'no proxy is trusted by default');
  assert.equal(await sourceOf(['10.0.0.0/8'], proxy, client), client);
  assert.equal(await sourceOf(['10.0.0.0/8'], '203.0.113.9', client), '203.0.113.9', 'a stranger’s word');
  assert.equal(
    await sourceOf(['10.0.0.0/8'], proxy, `192.0.2.1, ${client}`),
    client,
    'what the client made up',
  );
  assert.equal(await sourceOf(['10.0.0.0/8'], proxy, `${client}, 10.9.9.9`), client, 'two proxies of ours');
  assert.equal(await sourceOf(['10.0.0.0/8'], '::ffff:10.1.2.3', '2001:db8:0:1::7'), '2001:db8:0:1::/64');
  assert.equal(await sourceOf(['10.0.0.0/8'], proxy, 'nonsense'), 'nonsense', 'one bucket for all nonsense');
});

test('a request with two Host headers, or without one, is refused with a reason, and nothing but https is offered where https is served', async () => {
  const server = await createHttpServer({
    host: '127.0.0.1',
    port: 0,
    portSetting: 'none',
    reporter: silentReporter,
    isHttps: true,
    routes: (app) => void app.get('/', async () => 'here'),
  });
  await server.start();
  try {
    const { port } = new URL(server.url);
    const ask = (hosts: string) =>
      new Promise<string>((done, fail) => {
        const socket = connect(Number(port), '127.0.0.1', () =>
          socket.write(`GET / HTTP/1.1\r\n${hosts}Connection: close\r\n\r\n`),
        );
        let text = '';
        socket.on('data', (piece) => {
          text += piece;
        });
        socket.on('end', () => done(text)).on('error', fail);
      });
    for (const hosts of ['Host: a.test\r\nHost: b.test\r\n', '']) {
      const answer = await ask(hosts);
      assert.match(answer, /^HTTP\/1\.1 400 /);
      assert.match(
        answer,
        /"code":"bad_request","message":"The request has (more than one|no) Host header\."/,
      );
    }
    const whole = await fetch(server.url);
    assert.equal(whole.headers.get('strict-transport-security'), 'max-age=31536000');
  } finally {
    await server.stop();
  }
});

test('an address holds so many connections and no more, and refusals are logged without what was sent', async () => {
  const lines: string[] = [];
  const server = await createHttpServer({
    host: '127.0.0.1',
    port: 0,
    portSetting: 'none',
    reporter: createReporter({ program: 'test', write: (line) => lines.push(line) }),
    connectionsPerAddressMax: 3,
    routes(app) {
      app.get('/locked', async () => {
        throw new HttpError(403, { code: 'forbidden', reason: 'read_only_key', message: 'No.' });
      });
    },
  });
  await server.start();
  try {
    const { port } = new URL(server.url);
    const open = () =>
      new Promise<{ socket: Socket; isClosed: Promise<boolean> }>((done) => {
        const socket = connect(Number(port), '127.0.0.1', () => {
          const isClosed = new Promise<boolean>((told) => socket.once('close', () => told(true)));
          done({ socket, isClosed });
        });
        socket.on('error', () => {});
      });
    const held = [await open(), await open(), await open()];
    const fourth = await open();
    assert.equal(await fourth.isClosed, true);
    for (const { socket } of held) socket.destroy();
    await Promise.all(held.map(({ isClosed }) => isClosed));
    for (let n = 0; n < 30; n += 1) {
      const answer = await fetch(`${server.url}/locked?token=hidden`, {
        headers: { cookie: 'a=hidden' },
      }).catch(() => null);
      await answer?.arrayBuffer();
    }
    const told = lines.filter((line) => line.includes('refused by permission'));
    assert.ok(told.length > 0 && told.length <= 20, `${told.length} lines`);
    assert.match(told[0]!, /route=\/locked {2}code=read_only_key {2}address=127\.0\.0\.1 {2}request_id=req_/);
    assert.ok(lines.every((line) => !line.includes('hidden')));
  } finally {
    await server.stop();
  }
});

test('the connections of a /64 count together, those of each IPv4 address by themselves', async () => {
  const { app } = await createHttpServer({ ...options, connectionsPerAddressMax: 2, routes() {} });
  const open = (remoteAddress: string) => {
    const socket = Object.assign(new PassThrough(), { remoteAddress });
    app.server.emit('connection', socket);
    return socket;
  };
  const first = open('2001:db8::1');
  assert.equal(open('2001:db8::2').destroyed, false);
  assert.equal(open('2001:db8::ffff:3').destroyed, true, 'the third of one /64');
  assert.equal(open('2001:db8:0:1::1').destroyed, false);
  for (const each of ['192.0.2.1', '192.0.2.2', '::ffff:192.0.2.1'])
    assert.equal(open(each).destroyed, false);
  assert.equal(open('192.0.2.1').destroyed, true, 'the mapped address is the same');
  const closed = once(first, 'close');
  first.destroy();
  await closed;
  assert.equal(open('2001:db8::4').destroyed, false, 'one was closed');
  await app.close();
});

test('a request has 15 seconds for its headers, and then its connection', async () => {
  const settled = await createHttpServer({ ...options, routes: () => {} });
  assert.equal(settled.app.server.headersTimeout, 15_000);
  await settled.app.close();
  const server = await createHttpServer({ ...options, headersMs: 100, routes: () => {} });
  await server.start();
  try {
    const socket = connect(Number(new URL(server.url).port), '127.0.0.1');
    let answer = '';
    socket.setEncoding('utf8').on('data', (piece) => {
      answer += piece;
    });
    await once(socket, 'connect');
    socket.write('GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ');
    await once(socket, 'close');
    assert.match(answer, /^HTTP\/1\.1 408 /);
  } finally {
    await server.stop();
  }
});

test('all clients together hold so many connections and no more', async () => {
  const settled = await createHttpServer({ ...options, routes: () => {} });
  assert.equal(settled.app.server.maxConnections, 8_192);
  await settled.app.close();
  const server = await createHttpServer({
    ...options,
    connectionsMax: 2,
    routes: (app) => void app.get('/here', async () => 'here'),
  });
  await server.start();
  const { port } = new URL(server.url);
  const open = async () => {
    const socket = connect(Number(port), '127.0.0.1');
    socket.on('error', () => {});
    await once(socket, 'connect');
    return socket;
  };
  try {
    const held = [await open(), await open()];
    const ask = (socket: Socket) =>
      new Promise<string>((resolve) => {
        let answer = '';
        socket.setEncoding('utf8').on('data', (piece) => {
          answer += piece;
          if (answer.endsWith('here')) resolve(answer);
        });
        socket.on('close', () => resolve(answer));
        socket.write('GET /here HTTP/1.1\r\nHost: localhost\r\n\r\n');
      });
    for (const socket of held) assert.match(await ask(socket), /^HTTP\/1\.1 200 /);
    assert.equal(await ask(await open()), '', 'the third is closed without an answer');
    held[0]!.destroy();
    let answer = '';
    while (answer === '') answer = await ask(await open());
    assert.match(answer, /^HTTP\/1\.1 200 /, 'one that goes makes room');
    held[1]!.destroy();
  } finally {
    await server.stop();
  }
});

test('a number that no column holds (SQLSTATE 22003) is a 422 and no fault of ours', async () => {
  await using database = await createTestDatabase('monitor');
  const { app } = await createHttpServer({
    ...options,
    routes(scope) {
      scope.get('/big', async () => {
        await sql`select 9223372036854775808::bigint + ${1}::bigint`.execute(database.db);
        return {};
      });
    },
  });
  const answer = await app.inject('/big');
  assert.equal(answer.statusCode, 422);
  assert.equal(answer.json().error.code, 'validation_failed');
  assert.match(answer.json().error.message, /larger than any id or amount/);
  await app.close();
});

test('a slow answer is logged, unless it waits because its caller wants it', async () => {
  const lines: string[] = [];
  const server = await createHttpServer({
    ...options,
    reporter: createReporter({ program: 'test', write: (line) => lines.push(line) }),
    routes(app) {
      app.get('/:kind', async (request, reply) => {
        if ((request.params as { kind: string }).kind === 'waiting') waitingAnswers.add(reply);
        Object.defineProperty(reply, 'elapsedTime', { value: 1_001 });
        return 'done';
      });
    },
  });
  for (const kind of ['waiting', 'slow']) await server.app.inject(`/${kind}`);
  assert.equal(lines.length, 1);
  assert.match(lines[0]!, /slow request/);
});
