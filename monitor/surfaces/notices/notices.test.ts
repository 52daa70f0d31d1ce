import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { after, before, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { createTestClock } from '#common/clock/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import { noticePath, signNotice, verifyNotice } from '#contracts/destroy-notice/index.ts';
import { systemActor } from '#monitor/operators/index.ts';
import { createWorld, fingerprintTables, type World } from '#monitor/testing/world.ts';
import { createHttpServer, type HttpServer, parseStrictJson } from '#service-kit/http/index.ts';
import { registerNotices } from './index.ts';

const secret = 'a-secret-that-both-sides-know-well';
const nowSeconds = 1_790_000_000;
const clock = createTestClock(nowSeconds * 1000);
let world: World;
let server: HttpServer;
let parsed = 0;

before(async () => {
  world = await createWorld();
  await world.connection.setNoticeSecret(systemActor, secret);
  server = await startServer();
});
after(async () => {
  await server.stop();
  await world[Symbol.asyncDispose]();
});

async function startServer(): Promise<HttpServer> {
  const parse = (text: string) => {
    parsed += 1;
    return parseStrictJson(text);
  };
  const started = await createHttpServer({
    host: '127.0.0.1',
    port: 0,
    portSetting: 'none',
    reporter: silentReporter,
    routes: (app) => registerNotices(app, { ...world, clock, parse }),
  });
  await started.start();
  return started;
}

interface Answer {
  status: number;
  body: string;
}

async function send(body: Buffer | string, headers: Record<string, string | string[]>): Promise<Answer> {
  const { statusCode, payload } = await server.app.inject({
    method: 'POST',
    url: noticePath,
    headers: { 'content-type': 'application/json', ...headers },
    payload: body,
  });
  return { status: statusCode, body: payload };
}

function signed(body: Buffer | string, timestamp = String(nowSeconds), key = secret) {
  const signature = signNotice(key, timestamp, Buffer.from(body));
  return { 'x-operations-timestamp': timestamp, 'x-operations-signature': signature };
}

const notice = (vms: object[], clusterId = 7) =>
  JSON.stringify({ cluster_id: clusterId, virtual_machines: vms });

test('NET-2.8: a signed notice is applied and reports its counts', async () => {
  const body = notice([{ id: 1001, mac_addresses: ['52:54:00:00:10:01'] }, { id: 1002 }]);
  const { status, body: answer } = await send(body, signed(body));
  assert.equal(status, 200);
  assert.deepEqual(JSON.parse(answer), {
    destroyed_applied: 0,
    devices_archived: 0,
    destroyed_skipped: 2,
    duplicates: 0,
  });
});

test('NET-2.8: redelivered notices report duplicates and change no row, also many at once', async () => {
  const body = notice([{ id: 2001 }, { id: 2002 }]);
  await send(body, signed(body));
  const before = await fingerprintTables(world.database);
  const later = JSON.stringify({ ...JSON.parse(body), destroyed_at: '2026-01-01T00:00:00Z' });
  const again = [...Array(20)].map((_, i) => {
    const text = i % 2 === 0 ? body : later;
    return send(text, signed(text, String(nowSeconds + i)));
  });
  for (const { status, body: answer } of await Promise.all(again)) {
    assert.equal(status, 200);
    assert.equal(JSON.parse(answer).duplicates, 2);
  }
  assert.equal(await fingerprintTables(world.database), before);
});

test('NET-5.4: no flipped bit of a body and no other digit of a signature passes, and nothing is read of it', async () => {
  const body = Buffer.from(notice([{ id: 3001, mac_addresses: ['52:54:00:00:30:01'] }]));
  const headers = signed(body);
  const answers = new Set<string>();
  const parsedBefore = parsed;
  const attempt = async (bytes: Buffer, sent: Record<string, string>) => {
    const { status, body: answer } = await send(bytes, sent);
    assert.equal(status, 401);
    answers.add(answer);
  };
  for (let bit = 0; bit < body.length * 8; bit += 1) {
    const tampered = Buffer.from(body);
    tampered[bit >> 3]! ^= 1 << (bit & 7);
    await attempt(tampered, headers);
  }
  const signature = headers['x-operations-signature'];
  for (let i = 'sha256='.length; i < signature.length; i += 1) {
    for (const digit of '0123456789abcdef') {
      if (digit === signature[i]) continue;
      const changed = signature.slice(0, i) + digit + signature.slice(i + 1);
      await attempt(body, { ...headers, 'x-operations-signature': changed });
    }
  }
  for (const form of [
    '',
    'sha256=',
    signature.toUpperCase(),
    signature.replace('sha256', 'sha1'),
    signature.slice(0, 39),
    ` ${signature}x`,
    `${signature}00`,
    signature.slice(7),
    `${signature}, ${signature}`,
  ]) {
    await attempt(body, { ...headers, 'x-operations-signature': form });
  }
  for (const bytes of [
    Buffer.concat([body, Buffer.from('\n')]),
    Buffer.concat([Buffer.from('\ufeff'), body]),
    Buffer.from(JSON.stringify(JSON.parse(body.toString()), null, 1)),
    body.subarray(0, -1),
    Buffer.alloc(0),
  ]) {
    await attempt(bytes, headers);
  }
  assert.equal(answers.size, 1, 'all refusals are byte-equal');
  assert.equal(parsed, parsedBefore, 'nothing was parsed');
});

test('NET-2.8: only plain decimal seconds are a timestamp', async () => {
  const body = notice([{ id: 4001 }]);
  const now = String(nowSeconds);
  const forms = [
    '',
    `${now}.0`,
    `+${now}`,
    `0${now}`,
    `-${now}`,
    `${now}e0`,
    '1.79e9',
    `0x${nowSeconds.toString(16)}`,
    `${now}abc`,
    `${now}000`,
    `${now} 1`,
    `${now},${now}`,
    '99999999999999999999',
    'NaN',
    'Infinity',
    'null',
    '0b1',
    '0o7',
    `${now}n`,
    `${now.slice(0, 4)}_${now.slice(4)}`,
    `${now.slice(0, 4)},${now.slice(4)}`,
    '0',
    '-0',
    '00',
    '.',
    `.${now}`,
    `${now}.`,
    `${now}%20`,
    `"${now}"`,
    new Date(nowSeconds * 1000).toISOString(),
  ];
  for (const form of forms) {
    const { status } = await send(body, signed(body, form));
    assert.equal(status, 401, form);
  }
});

test('NET-5.4: exactly five minutes either way are accepted, and each second beyond is refused', async () => {
  const body = notice([]);
  for (let offset = -305; offset <= 305; offset += 1) {
    const { 'x-operations-timestamp': stamp, 'x-operations-signature': signature } = signed(
      body,
      String(nowSeconds + offset),
    );
    const isFresh = verifyNotice(secret, stamp, signature, Buffer.from(body), nowSeconds);
    assert.equal(isFresh, Math.abs(offset) <= 300, `offset ${offset}`);
    if (Math.abs(offset) < 298) continue;
    const { status } = await send(body, signed(body, String(nowSeconds + offset)));
    assert.equal(status, Math.abs(offset) <= 300 ? 200 : 401, `offset ${offset}`);
  }
});

test('NET-5.4: a stale timestamp is refused before the body has arrived', async () => {
  const url = new URL(server.url);
  const socket = connect(Number(url.port), url.hostname);
  const head = [
    `POST ${noticePath} HTTP/1.1`,
    'host: monitor',
    'content-type: application/json',
    'content-length: 1000',
    `x-operations-timestamp: ${nowSeconds - 301}`,
    `x-operations-signature: sha256=${'0'.repeat(64)}`,
    '',
    '',
  ];
  socket.write(head.join('\r\n'));
  const [chunk] = await new Promise<Buffer[]>((done, fail) => {
    socket.once('data', (data) => done([data]));
    socket.once('error', fail);
  });
  socket.destroy();
  assert.match(chunk!.toString(), /^HTTP\/1.1 401 /);
});

test('NET-5.4: a header that stands twice is refused', async () => {
  const body = notice([{ id: 5001 }]);
  const url = new URL(server.url);
  const headers = signed(body);
  for (const name of ['x-operations-timestamp', 'x-operations-signature'] as const) {
    const lines = [
      `POST ${noticePath} HTTP/1.1`,
      'host: monitor',
      'connection: close',
      `content-length: ${Buffer.byteLength(body)}`,
      ...Object.entries(headers).map(([key, value]) => `${key}: ${value}`),
      `${name}: ${headers[name]}`,
      '',
      body,
    ];
    const socket = connect(Number(url.port), url.hostname);
    socket.write(lines.join('\r\n'));
    const chunks: Buffer[] = [];
    for await (const chunk of socket) chunks.push(chunk as Buffer);
    assert.match(Buffer.concat(chunks).toString(), /^HTTP\/1.1 401 /, name);
  }
});

test('NET-2.8: at most 100 machines, at most 64 KiB, and only what fits after verification', async () => {
  const machines = (count: number) => [...Array(count)].map((_, i) => ({ id: 6000 + i }));
  const tooMany = notice(machines(101));
  assert.equal((await send(tooMany, signed(tooMany))).status, 422);
  const full = notice(machines(100));
  assert.equal((await send(full, signed(full))).status, 200);
  const none = notice([]);
  assert.equal((await send(none, signed(none))).status, 200);

  const atLimit = Buffer.from(`${none}${' '.repeat(64 * 1024 - none.length)}`);
  assert.equal((await send(atLimit, signed(atLimit))).status, 200);
  const beyond = Buffer.concat([atLimit, Buffer.from(' ')]);
  assert.equal((await send(beyond, signed(beyond))).status, 413);

  for (const unfit of [
    'null',
    '[]',
    '{',
    '{"cluster_id":0,"virtual_machines":[]}',
    '{"cluster_id":1}',
    '{"cluster_id":1,"cluster_id":2,"virtual_machines":[]}',
    '{"cluster_id":1,"destroyed_at":"yesterday","virtual_machines":[]}',
  ]) {
    assert.equal((await send(unfit, signed(unfit))).status, 422, unfit);
  }
});

test('NET-4.7: a notice for a cluster that was never imported is acknowledged', async () => {
  const body = notice([{ id: 7001 }], 99);
  const { status, body: answer } = await send(body, signed(body));
  assert.equal(status, 200);
  assert.equal(JSON.parse(answer).destroyed_skipped, 1);
});

test('NET-4.i: a new secret refuses the old one at once, on every replica, and refusals are counted', async () => {
  await using other = await createWorld();
  const replica = await createHttpServer({
    host: '127.0.0.1',
    port: 0,
    portSetting: 'none',
    reporter: silentReporter,
    routes: (app) => registerNotices(app, { ...other, clock }),
  });
  const post = async (key: string) => {
    const body = notice([]);
    const answer = await replica.app.inject({
      method: 'POST',
      url: noticePath,
      headers: signed(body, String(nowSeconds), key),
      payload: body,
    });
    return answer.statusCode;
  };
  assert.equal(await post(secret), 401, 'without a secret nothing is accepted');
  const first = await other.connection.createNoticeSecret(systemActor);
  assert.equal(await post(first), 200);
  const second = await other.connection.createNoticeSecret(systemActor);
  assert.equal(await post(first), 401);
  assert.equal(await post(second), 200);
  await clock.advance(6_000);
  clock.stepWall(-6_000);
  assert.equal(await post(first), 401);
  // The count is written after the answer; it is there soon, or the test ends by its time limit.
  while ((await other.connection.noticeStatus())!.refusedCount === 0) await nextTurn();
  await replica.stop();
});
