import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { after, before, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import fc from 'fast-check';
import { createTestClock } from '#common/clock/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import { noticePath, signNotice } from '#contracts/destroy-notice/index.ts';
import { systemActor } from '#monitor/operators/index.ts';
import { createWorld, fingerprintTables, type World } from '#monitor/testing/world.ts';
import { createHttpServer, type HttpServer } from '#service-kit/http/index.ts';
import { hostileBodies } from '#service-kit/testing/hostile-bodies.ts';
import { registerNotices } from './index.ts';

/** A proof sends 20,000. */
const hostileNotices = Number(process.env.SVC_TEST_HOSTILE_REQUESTS ?? 120);

const secret = 'a-secret-that-both-sides-know-well';
const nowSeconds = 1_790_000_000;
const clock = createTestClock(nowSeconds * 1000);
let world: World;
let server: HttpServer;

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
  const started = await createHttpServer({
    host: '127.0.0.1',
    port: 0,
    portSetting: 'none',
    reporter: silentReporter,
    routes: (app) => registerNotices(app, { ...world, clock }),
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
  return headersOf(timestamp, signNotice(key, timestamp, Buffer.from(body)));
}

const headersOf = (timestamp: string, signature: string) => ({
  'x-operations-timestamp': timestamp,
  'x-operations-signature': signature,
});
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

test('NET-2.8: redelivered notices report duplicates and change no row, also concurrently', async () => {
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

test('NET-2.8, NET-5.4: a signature is the HMAC of timestamp and raw body, and no other form of one is accepted', async () => {
  // By openssl dgst -sha256 -hmac.
  const hex = '51b2b3796c2e02841c53f74f971f6903605f5e211abec03abdf42bc210018190';
  const signature = signNotice(secret, String(nowSeconds), Buffer.from('{}'));
  assert.equal(signature, `sha256=${hex}`);
  const { status } = await send('{}', headersOf(String(nowSeconds), signature));
  assert.equal(status, 422, 'a verified body is read');
  const base64 = Buffer.from(hex, 'hex').toString('base64');
  for (const other of [
    ...['', hex, `sha256=${hex.toUpperCase()}`, `SHA256=${hex}`, `sha512=${hex}${hex}`, `sha256=${base64}`],
    ...[`v1,${base64}`, `t=${nowSeconds},v1=${hex}`, `${signature},${signature}`, `${signature}00`],
    ...[`sha256=${'0'.repeat(64)},${signature}`, signature.slice(0, 39), signature.slice(0, -1)],
  ])
    assert.equal((await send('{}', headersOf(String(nowSeconds), other))).status, 401, other);
});

test('NET-2.8, NET-5.4: a notice with any changed character is refused in one way, and not read', async () => {
  const stamp = String(nowSeconds);
  const body = notice([{ id: 4001, mac_addresses: ['52:54:00:00:40:01'] }]);
  const given = [body, stamp, signed(body)['x-operations-signature']] as const;
  const answers = new Set<string>();
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(0, 1, 2),
      fc.nat(),
      fc.constantFrom(...'0189aAfFxX {'),
      async (part, at, by) => {
        const texts = [...given];
        const place = at % given[part]!.length;
        if (given[part]![place] === by) return;
        texts[part] = given[part]!.slice(0, place) + by + given[part]!.slice(place + 1);
        // Many of these bodies are no JSON: one that was read would answer 422.
        const answer = await send(texts[0]!, headersOf(texts[1]!, texts[2]!));
        answers.add(answer.body);
        assert.equal(answer.status, 401, texts.join('\n'));
      },
    ),
    { numRuns: 150 },
  );
  assert.equal(answers.size, 1);
});

test('NET-5.4: no other spelling of the time is taken, although it is signed as it is written', async () => {
  const now = String(nowSeconds);
  for (const stamp of [
    ...[
      '',
      '.',
      '-',
      '0',
      'NaN',
      'now',
      '1.79e9',
      `${now}.0`,
      `${now}.`,
      `+${now}`,
      `-${now}`,
      `0${now}`,
      `${now}e0`,
    ],
    ...[`${now}n`, `${now}000`, `${now} 1`, `${now},${now}`, `"${now}"`, `0x${nowSeconds.toString(16)}`],
    ...['99999999999999999999', new Date(nowSeconds * 1000).toISOString()],
  ])
    assert.equal((await send('{}', signed('{}', stamp))).status, 401, stamp);
});

test('NET-5.4: a repeated header is refused', async () => {
  const body = notice([{ id: 5001 }]);
  const url = new URL(server.url);
  const headers = signed(body);
  for (const name of ['x-operations-timestamp', 'x-operations-signature'] as const) {
    const lines = [
      `POST ${noticePath} HTTP/1.1`,
      'host: localhost',
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

test('NET-2.8: at most 100 machines, at most 64 KiB, and only a valid body after verification', async () => {
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
    '\ufeff{"cluster_id":1,"virtual_machines":[]}',
    // 0xff is no UTF-8.
    Buffer.from('{"cluster_id":1,"virtual_machines":[{"id":6000,"name":"\xff"}]}', 'latin1'),
  ]) {
    assert.equal((await send(unfit, signed(unfit))).status, 422, String(unfit));
  }
});

test('NET-5.4, NET-8: a notice is taken within five minutes of the monitor’s clock, and not a second further away', async () => {
  const body = notice([{ id: 6900 }]);
  const statusAt = async (seconds: number) =>
    (await send(body, signed(body, String(nowSeconds + seconds)))).status;
  const statuses = await Promise.all([-301, -300, 300, 301].map(statusAt));
  assert.deepEqual(statuses, [401, 200, 200, 401]);
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
  // The count is written after the answer; without it the test ends by its time limit.
  while ((await other.connection.noticeStatus())!.refusedCount === 0) await nextTurn();
  await replica.stop();
});

test('NET-2.8: no value of JSON in any place of a signed notice is a fault of the server', async () => {
  const valid = {
    cluster_id: 7,
    destroyed_at: '2026-01-01T00:00:00Z',
    virtual_machines: [{ id: 9001, mac_addresses: ['52:54:00:00:90:01'] }, { id: 9002 }],
  };
  for (const hostile of hostileBodies(valid, hostileNotices, 12)) {
    const body = JSON.stringify(hostile);
    const { status, body: answer } = await send(body, signed(body));
    assert.ok(status < 500, `${status} ${body.slice(0, 500)}: ${answer}`);
  }
});
