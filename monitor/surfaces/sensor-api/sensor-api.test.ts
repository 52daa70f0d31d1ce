import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { request } from 'node:http';
import { test } from 'node:test';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { retentionRefusalMessage, type SensorPlan, uploadBytesMax } from '#contracts/sensor-api/http.ts';
import { liveBytesMax } from '#contracts/sensor-api/live.ts';
import { encodeLive } from '#contracts/sensor-api/live-codec.ts';
import { encodeUpload, type TelemetryUpload } from '#contracts/sensor-api/telemetry-codec.ts';
import { systemActor } from '#monitor/operators/index.ts';
import { captureMinute, createSpool, host, testMinute } from '#monitor/testing/index.ts';
import { type MonitorServer, startMonitorServer } from '#monitor/testing/server.ts';

async function enrol(server: MonitorServer, token?: string, node = 'node-1') {
  const made = token ?? (await server.monitor.sensors.createToken(systemActor, server.siteId)).token;
  return fetch(`${server.url}/agent/v1/enrol`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ token: made, host_name: node, node, sensor_version: '0.1.0' }),
  });
}

async function enrolled(server: MonitorServer, node?: string): Promise<string> {
  return ((await (await enrol(server, undefined, node)).json()) as { credential: string }).credential;
}

async function post(server: MonitorServer, credential: string, body: Uint8Array, headers: object = {}) {
  const answer = await fetch(`${server.url}/agent/v1/telemetry`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${credential}`,
      'content-type': 'application/x-protobuf',
      'content-encoding': 'zstd',
      ...headers,
    },
    body: Buffer.from(body),
  });
  const json = (await answer.json()) as { receipt?: string; error?: { code: string; message: string } };
  return { status: answer.status, json };
}

const zstd = (upload: TelemetryUpload) => zstdCompressSync(encodeUpload(upload));

test('a host enrols with a one-time token and sends with its credential', async () => {
  await using server = await startMonitorServer();
  const { token } = await server.monitor.sensors.createToken(systemActor, server.siteId);
  const first = await enrol(server, token);
  assert.equal(first.status, 201);
  const made = (await first.json()) as { credential: string; site_id: number; site_name: string };
  assert.equal(made.site_name, 'Test site');
  assert.match(made.credential, /^svcsen_[a-z0-9]{16}_[A-Za-z0-9_-]{43}$/);
  for (const refused of [await enrol(server, token), await enrol(server, 'svcenr_nothing')]) {
    assert.equal(refused.status, 401);
    const { error } = (await refused.json()) as { error: { code: string } };
    assert.equal(error.code, 'enrolment_token_refused');
  }
  const spool = createSpool();
  const upload = spool.upload([captureMinute({ hosts: [host('192.0.2.10', 5, 6)] })]);
  const answer = await post(server, made.credential, zstd(upload));
  assert.deepEqual(answer, {
    status: 200,
    json: { spool_id: spool.id, sequence: 1, receipt: 'accepted' },
  });
  const again = await post(server, made.credential, gzipSync(encodeUpload(upload)), {
    'content-encoding': 'gzip',
  });
  assert.deepEqual(again.json.receipt, 'duplicate');
  await server.monitor.inbox.drain();
  const [read] = await server.monitor.traffic.readAddressMinutes(
    server.siteId,
    '192.0.2.10',
    testMinute,
    testMinute + 60,
  );
  assert.equal(read?.isGap === false && read.rxBytes, 5);
});

test('NET-1.1: an upload is durable when its receipt is sent, before it is processed', async () => {
  await using server = await startMonitorServer();
  const credential = await enrolled(server);
  const answer = await post(server, credential, zstd(createSpool().upload([captureMinute()])));
  assert.equal(answer.json.receipt, 'accepted');
  const { rows } = await server.database.pool.query(
    'select state, body is not null as stored from inbox_uploads',
  );
  assert.deepEqual(rows, [{ state: 'pending', stored: true }]);
  const facts = await server.database.pool.query('select 1 from capture_minutes');
  assert.equal(facts.rowCount, 0);
});

test('an upload that must never be sent again is answered with 400, 413 or 422 and the reason', async () => {
  await using server = await startMonitorServer();
  const credential = await enrolled(server);
  const spool = createSpool();
  const good = zstd(spool.upload([captureMinute()]));
  const old = spool.upload([captureMinute({ minute: testMinute - 100 * 86_400 })]);
  const cases: [string, Promise<Awaited<ReturnType<typeof post>>>, number, string, RegExp][] = [
    [
      'cut',
      post(server, credential, good.subarray(0, -4)),
      400,
      'telemetry_malformed',
      /Malformed telemetry/,
    ],
    ['empty', post(server, credential, new Uint8Array()), 400, 'telemetry_malformed', /Malformed telemetry/],
    [
      'encoding',
      post(server, credential, good, { 'content-encoding': 'br' }),
      400,
      'telemetry_encoding_unsupported',
      /zstd, gzip/,
    ],
    [
      'type',
      post(server, credential, good, { 'content-type': 'application/json' }),
      400,
      'telemetry_malformed',
      /application\/x-protobuf/,
    ],
    [
      'bomb',
      post(server, credential, zstdCompressSync(Buffer.alloc(uploadBytesMax + 1))),
      413,
      'telemetry_too_large',
      /16777216 bytes/,
    ],
    [
      'large',
      post(server, credential, Buffer.alloc(uploadBytesMax + 1, 1)),
      413,
      'telemetry_too_large',
      /16777216 bytes/,
    ],
    [
      'NET-7.1',
      post(server, credential, zstd(old)),
      422,
      'telemetry_refused',
      new RegExp(`^${retentionRefusalMessage}$`),
    ],
  ];
  for (const [name, answer, status, code, message] of cases) {
    const { status: given, json } = await answer;
    assert.equal(given, status, name);
    assert.equal(json.error?.code, code, name);
    assert.match(json.error?.message ?? '', message, name);
  }
  const { rowCount } = await server.database.pool.query('select 1 from inbox_uploads');
  assert.equal(rowCount, 0);
});

test('a sensor with unreadable uploads is told to retry later, and another one is served', async () => {
  await using server = await startMonitorServer();
  const [hostile, honest] = [await enrolled(server), await enrolled(server, 'node-2')];
  const bomb = zstdCompressSync(Buffer.alloc(1024 * 1024, Uint8Array.of(0x2a, 0)));
  for (let i = 0; i < 30; i += 1) {
    const { status, json } = await post(server, hostile, bomb);
    assert.equal(status, 400);
    assert.match(json.error?.message ?? '', /minutes holds more than 64 entries/);
  }
  const answer = await fetch(`${server.url}/agent/v1/telemetry`, {
    method: 'POST',
    headers: { authorization: `Bearer ${hostile}`, 'content-type': 'application/x-protobuf' },
    body: bomb,
  });
  assert.equal(answer.status, 429);
  assert.match(answer.headers.get('retry-after')!, /^\d+$/);
  assert.equal(((await answer.json()) as { error: { code: string } }).error.code, 'intake_throttled');
  const { json } = await post(server, honest, zstd(createSpool().upload([captureMinute()])));
  assert.equal(json.receipt, 'accepted');
});

test('an upload more than 5 min ahead is answered with 503 clock_ahead, after which the sensor keeps it', async () => {
  await using server = await startMonitorServer();
  const credential = await enrolled(server);
  const spool = createSpool();
  const minute = Math.ceil(Date.now() / 60_000) * 60 + 360;
  const gap = { fromMinute: testMinute, toMinute: Date.UTC(9999, 11, 31) / 1000, capture: '' };
  const uploads = [
    spool.upload([captureMinute({ minute })]),
    spool.upload([], [{ ...gap, reason: 'clock_step' }]),
  ];
  for (const upload of uploads) {
    const { status, json } = await post(server, credential, zstd(upload));
    assert.deepEqual([status, json.error?.code], [503, 'clock_ahead']);
  }
  const { totals } = captureMinute();
  const seen = { capture: 'eth0', role: 'uplink', observedMs: 10_000, hostsLeftOut: 0 } as const;
  const windows = [{ ...seen, hosts: [], totals, startedAtMs: minute * 1000 }];
  const answer = await fetch(`${server.url}/agent/v1/live`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-protobuf', authorization: `Bearer ${credential}` },
    body: Buffer.from(encodeLive({ runId: randomUUID(), sensorVersion: '0.1.0', windows })),
  });
  assert.equal(answer.status, 503);
  assert.equal(((await answer.json()) as { error: { code: string } }).error.code, 'clock_ahead');
});

test('only enrolled sensors are served: missing, wrong, foreign and repeated credentials are 401', async () => {
  await using server = await startMonitorServer();
  const credential = await enrolled(server);
  const ask = (headers: string[]) =>
    new Promise<number>((resolve, reject) => {
      const withHost = ['Host', new URL(server.url).host, ...headers];
      const asked = request(`${server.url}/agent/v1/plan`, { headers: withHost }, (answer) => {
        answer.resume();
        resolve(answer.statusCode!);
      });
      asked.on('error', reject);
      asked.end();
    });
  assert.equal(await ask(['Authorization', `bEARER ${credential}`]), 200);
  assert.equal(await ask([]), 401);
  assert.equal(await ask(['Authorization', `Bearer ${credential}x`]), 401);
  assert.equal(await ask(['Authorization', `Basic ${credential}`]), 401);
  const twice = ['Authorization', `Bearer ${credential}`, 'Authorization', `Bearer ${credential}`];
  assert.equal(await ask(twice), 401);
  const refused = await post(server, `${credential.slice(0, -2)}zz`, Buffer.alloc(1));
  assert.equal(refused.status, 401);
});

test('NET-5.3: the plan has an ETag, and an unchanged plan is a 304', async () => {
  await using server = await startMonitorServer();
  const credential = await enrolled(server);
  const ask = (etag?: string) =>
    fetch(`${server.url}/agent/v1/plan`, {
      headers: { authorization: `Bearer ${credential}`, ...(etag ? { 'if-none-match': etag } : {}) },
    });
  const first = await ask();
  const plan = (await first.json()) as SensorPlan;
  assert.equal(plan.application_usage_version, 1);
  const etag = first.headers.get('etag')!;
  assert.equal((await ask(etag)).status, 304);
  await server.monitor.sites.setLocalCidrs(systemActor, server.siteId, ['192.0.2.0/24']);
  const changed = await ask(etag);
  assert.equal(changed.status, 200);
  assert.deepEqual(((await changed.json()) as SensorPlan).local_cidrs, ['192.0.2.0/24']);
});

test('NET-2.5, NET-5.3: live windows are accepted from enrolled sensors only, as the plan announces', async () => {
  await using server = await startMonitorServer();
  const credential = await enrolled(server);
  const headers = { authorization: `Bearer ${credential}` };
  const plan = (await (await fetch(`${server.url}/agent/v1/plan`, { headers })).json()) as SensorPlan;
  assert.equal(plan.live_version, 1);
  const { totals } = captureMinute();
  const startedAtMs = Math.floor(Date.now() / 10_000) * 10_000 - 10_000;
  const hosts = [{ address: '192.0.2.10', rxBytes: 7, txBytes: 8, packets: 2 }];
  const seen = { capture: 'eth0', role: 'uplink', startedAtMs, observedMs: 10_000, hostsLeftOut: 0 } as const;
  const upload = { runId: randomUUID(), sensorVersion: '0.1.0', windows: [{ ...seen, totals, hosts }] };
  const send = async (body: Uint8Array, more: object = {}) => {
    const answer = await fetch(`${server.url}/agent/v1/live`, {
      method: 'POST',
      headers: { 'content-type': 'application/x-protobuf', 'content-encoding': 'zstd', ...headers, ...more },
      body: Buffer.from(body),
    });
    return { status: answer.status, json: (await answer.json()) as { error?: { code: string } } };
  };
  const body = zstdCompressSync(encodeLive(upload));
  assert.deepEqual(await send(body), { status: 200, json: { stored: 1, duplicates: 0, too_old: 0 } });
  assert.deepEqual((await send(body)).json, { stored: 0, duplicates: 1, too_old: 0 });
  assert.equal((await send(body, { authorization: 'Bearer svcsen_no_body' })).status, 401);
  assert.deepEqual((await send(Buffer.from('nonsense'))).json.error?.code, 'telemetry_malformed');
  assert.equal((await send(zstdCompressSync(Buffer.alloc(liveBytesMax + 1)))).status, 413);
  const { windows } = await server.monitor.live.listWindows(server.siteId, startedAtMs, 10);
  assert.deepEqual(windows[0]?.hosts, hosts);
});

test('the interfaces and neighbours of an upload are kept, and neighbours are devices', async () => {
  await using server = await startMonitorServer();
  const credential = await enrolled(server);
  const inventory = {
    observedAtMs: testMinute * 1000 + 59_000,
    interfaces: [
      {
        name: 'br0',
        index: 3,
        mac: '02:00:00:00:00:03',
        kind: 'bridge',
        isUp: true,
        mtu: 1500,
        master: '',
        parent: '',
        vlan: 0,
        addresses: ['192.0.2.1/24'],
      },
    ],
    neighbours: [
      { segment: 'br0', mac: '52:54:00:00:00:02', address: '192.0.2.7', isRouter: false },
      { segment: 'br0.77', mac: '52:54:00:00:00:09', address: '', isRouter: false },
    ],
    interfacesLeftOut: 0,
    neighboursLeftOut: 0,
  };
  const spool = createSpool();
  await post(server, credential, zstd({ ...spool.upload([captureMinute()]), inventory }));
  const older = { ...inventory, observedAtMs: inventory.observedAtMs - 1, interfaces: [] };
  const minute = captureMinute({ minute: testMinute - 60 });
  await post(server, credential, zstd({ ...spool.upload([minute]), inventory: older }));
  await server.monitor.inbox.drain();
  const [kept] = await server.monitor.sensors.listInterfaces(server.siteId);
  assert.deepEqual(kept?.interfaces, inventory.interfaces, 'an older inventory does not replace a newer one');
  const devices = await server.monitor.devices.list(server.siteId, 10);
  assert.deepEqual(devices.map((device) => `${device.segment} ${device.mac}`).sort(), [
    'br0 52:54:00:00:00:02',
    'br0.77 52:54:00:00:00:09',
  ]);
  const claims = await server.monitor.devices.listClaims(devices.map((device) => device.id));
  assert.deepEqual(
    claims.map((claim) => claim.address),
    ['192.0.2.7'],
  );
});
