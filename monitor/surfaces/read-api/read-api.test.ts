import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { createTestClock } from '#common/clock/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import { compressUpload, encodeUpload } from '#contracts/sensor-api/telemetry-codec.ts';
import { parseQueryUrl } from '#monitor/explorer/index.ts';
import { systemActor } from '#monitor/operators/index.ts';
import { createReadTokens, requestsPerMinute, underWayMax } from '#monitor/read-tokens/index.ts';
import { captureMinute, createSpool, host, testMinute, usageRow } from '#monitor/testing/index.ts';
import { type MonitorServer, startMonitorServer } from '#monitor/testing/server.ts';
import { createLimits } from '#service-kit/limits/index.ts';

const address = '192.0.2.10';

async function addTraffic(
  { monitor, siteId: firstSite }: MonitorServer,
  siteId = firstSite,
  times = 1,
): Promise<void> {
  const { token } = await monitor.sensors.createToken(systemActor, siteId);
  const made = await monitor.sensors.enrol({
    token,
    host_name: `node-${siteId}`,
    node: `node-${siteId}`,
    sensor_version: '0.1.0',
  });
  const sensor = await monitor.sensors.authenticate(made!.credential);
  const minute = captureMinute({
    hosts: [host(address, 6000 * times, 600 * times)],
    usage: [usageRow({ name: '=cmd.example', clientBytes: 600 * times, serverBytes: 6000 * times })],
  });
  await monitor.inbox.receive(sensor!, compressUpload(encodeUpload(createSpool().upload([minute]))), 'zstd');
  await monitor.inbox.drain();
}

const tokenOf = async ({ monitor, siteId }: MonitorServer, days = '30', site = siteId) =>
  (await monitor.readTokens.create(systemActor, site, { name: 'Grafana', days })).token;

const range = `from=${new Date(testMinute * 1000).toISOString()}&to=${new Date((testMinute + 60) * 1000).toISOString()}&step=60`;

const get = (
  server: MonitorServer,
  path: string,
  token: string | null,
  headers: Record<string, string> = {},
) =>
  fetch(`${server.url}/api/v1${path}`, {
    headers: { ...(token === null ? {} : { authorization: `Bearer ${token}` }), ...headers },
  });

interface Body {
  rows: { key: { value: string }[]; in_bytes: number }[];
  total: { in_bytes: number; out_bytes: number };
  series: { in_bps: (number | null)[] };
  error: { code: string; message: string };
}

test('a token reads what the explorer answers, by URL and by body', async () => {
  await using server = await startMonitorServer();
  await addTraffic(server);
  const token = await tokenOf(server);
  const answer = (await (await get(server, `/query?${range}&by=address`, token)).json()) as Body;
  const values = Object.fromEntries(new URLSearchParams(`${range}&by=address`));
  const own = await server.monitor.explorer.explore(parseQueryUrl(server.siteId, values).query);
  assert.deepEqual(answer.total, {
    in_bytes: own.total.inBytes,
    out_bytes: own.total.outBytes,
    packets: null,
  });
  assert.deepEqual(answer.series.in_bps, own.series.inBps);
  assert.equal(answer.rows[0]!.key[0]!.value, address);
  assert.equal(answer.total.in_bytes, 6000);
  const posted = await fetch(`${server.url}/api/v1/query`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ ...values, by: ['address'] }),
  });
  assert.deepEqual(await posted.json(), answer);
});

test('CSV comes by Accept or by name, one point a row by format=series, and formulas are quoted', async () => {
  await using server = await startMonitorServer();
  await addTraffic(server);
  const token = await tokenOf(server);
  const csv = await get(server, `/query?${range}&by=application`, token, { accept: 'text/csv' });
  assert.match(csv.headers.get('content-type')!, /^text\/csv/);
  const text = await csv.text();
  assert.match(
    text,
    /^application,in_bytes,out_bytes,packets,share,previous_in_bytes,previous_out_bytes\r\n/,
  );
  assert.doesNotMatch(text, /^=/m);
  assert.equal(await (await get(server, `/query?${range}&by=application&format=csv`, token)).text(), text);
  const points = await (await get(server, `/query?${range}&format=series`, token)).json();
  const time = new Date(testMinute * 1000).toISOString();
  assert.deepEqual(points, [
    { time, series: 'In', value: 800 },
    { time, series: 'Out', value: 80 },
  ]);
});

test('without a token that may be used there is one answer, and nothing is read', async () => {
  await using server = await startMonitorServer();
  const good = await tokenOf(server);
  const revoked = await tokenOf(server);
  const expired = await tokenOf(server);
  const idOf = (token: string) => token.split('_')[1]!;
  assert.ok(await server.monitor.readTokens.revoke(systemActor, server.siteId, idOf(revoked)));
  assert.ok(!(await server.monitor.readTokens.revoke(systemActor, server.siteId + 1, idOf(good))));
  await server.database.pool.query(
    `update read_tokens set expires_at = now() - interval '1 second' where id = $1`,
    [idOf(expired)],
  );
  const wrong = `${good.slice(0, -1)}${good.endsWith('A') ? 'B' : 'A'}`;
  for (const token of [null, 'x', wrong, revoked, expired, good.replace('svcread', 'svcsen')]) {
    for (const path of ['/query', '/dimensions', `/sites/${server.siteId}/metrics`]) {
      const answer = await get(server, path, token);
      assert.equal(answer.status, 401, `${path} ${token}`);
      assert.equal(((await answer.json()) as Body).error.code, 'unauthenticated');
    }
  }
  assert.equal((await get(server, '/dimensions', good)).status, 200);
  const { rows } = await server.database.pool.query(
    'select last_used_at, digest from read_tokens where id = $1',
    [idOf(good)],
  );
  assert.ok(rows[0].last_used_at !== null);
  assert.ok(
    !rows[0].digest.toString('latin1').includes(good.split('_').slice(2).join('_')),
    'no secret is stored',
  );
});

test("what a token reads of its site by any dimension stays the same while another site's traffic grows", async () => {
  await using server = await startMonitorServer();
  const other = (await server.monitor.sites.create(systemActor, 'Other')).id;
  await addTraffic(server, other);
  const token = await tokenOf(server, '30', other);
  const read = async (path: string) => (await get(server, path, token)).json();
  const { dimensions } = (await read('/dimensions')) as { dimensions: { name: string }[] };
  const readAll = async () => {
    const answers: unknown[] = [];
    for (const { name } of dimensions)
      answers.push(await read(`/query?${range}&by=${name}`), await read(`/dimensions?dimension=${name}`));
    return answers;
  };
  const before = await readAll();
  // The same addresses and names, of which another sensor saw more: it would count.
  await addTraffic(server, server.siteId, 3);
  assert.deepEqual(await readAll(), before);
});

test('a token of one site reads no other site', async () => {
  await using server = await startMonitorServer();
  await addTraffic(server);
  const other = await server.monitor.sites.create(systemActor, 'Other');
  const token = await tokenOf(server, '30', other.id);
  const answer = (await (await get(server, `/query?${range}&by=address`, token)).json()) as Body;
  assert.deepEqual(answer.rows, []);
  assert.deepEqual(answer.series.in_bps, [null]);
  assert.equal(
    (await get(server, `/query?site=${server.siteId}&${range}`, token)).status,
    422,
    'no request names a site',
  );
  const metrics = await get(server, `/sites/${server.siteId}/metrics`, token);
  assert.equal(metrics.status, 404);
  assert.doesNotMatch(await metrics.text(), /192\.0\.2|svc_/);
  const completed = (await (await get(server, '/dimensions?dimension=sensor', token)).json()) as {
    values: unknown[];
  };
  assert.deepEqual(completed.values, []);
});

test('what can not be read is refused with what to write', async () => {
  await using server = await startMonitorServer();
  const token = await tokenOf(server);
  for (const query of [
    'q=colour:red',
    'by=colour',
    'range=90y',
    'range=30d&step=60',
    'format=xml',
    'top=0',
    'nonsense=1',
  ]) {
    const answer = await get(server, `/query?${query}`, token);
    assert.equal(answer.status, 422, query);
    assert.match(((await answer.json()) as Body).error.message, /\w/);
  }
});

test('a token that asks too often or too much at a time is told when to go on, and others are not held up', async () => {
  const clock = createTestClock(0);
  const reporter = silentReporter;
  const limits = createLimits({ url: null, program: 'monitor', clock, reporter });
  const tokens = createReadTokens({ db: () => assert.fail('nothing is read'), clock, limits });
  const admit = () => tokens.admit('a');
  const open = await Promise.all(Array.from({ length: underWayMax }, admit));
  assert.ok(open.every((one) => one.isAdmitted));
  assert.ok(!(await admit()).isAdmitted);
  assert.ok((await tokens.admit('b')).isAdmitted);
  for (const one of open) if (one.isAdmitted) await one.end();
  for (let i = underWayMax; i < requestsPerMinute; i += 1) {
    const one = await admit();
    assert.ok(one.isAdmitted);
    await one.end();
    await one.end();
  }
  const refused = await admit();
  assert.ok(!refused.isAdmitted && refused.retryAfterSeconds > 0 && refused.retryAfterSeconds <= 60);
  await clock.advance(60_000);
  assert.ok((await admit()).isAdmitted);
});

test('the metrics of a site are in the Prometheus format', async () => {
  await using server = await startMonitorServer();
  await addTraffic(server);
  const { siteId } = server;
  const answer = await get(server, `/sites/${siteId}/metrics`, await tokenOf(server));
  assert.match(answer.headers.get('content-type')!, /version=0\.0\.4/);
  const text = await answer.text();
  assert.match(text, /^svc_site_in_bits_per_second 800$/m);
  assert.match(text, /^svc_server_out_bits_per_second\{server=""\} 80$/m);
  assert.match(
    text,
    /^svc_capture_packets_last_hour\{sensor="node-\d+",capture="eth0",role="uplink"\} 100$/m,
  );
  assert.match(text, /^svc_site_open_incidents 0$/m);
});

test('the dashboard of Grafana asks what the API answers, in the fields that it reads', async () => {
  await using server = await startMonitorServer();
  await addTraffic(server);
  const token = await tokenOf(server);
  const dashboard = JSON.parse(await readFile('docs/grafana/site-traffic.json', 'utf8')) as {
    panels: { targets: { url: string; root_selector: string; columns: { selector: string }[] }[] }[];
  };
  const targets = dashboard.panels.flatMap((panel) => panel.targets);
  assert.equal(targets.length, 5);
  for (const { url, root_selector, columns } of targets) {
    const asked = url
      .replace(/\$\{__from\}/, String(testMinute * 1000))
      .replace(/\$\{__to\}/, String((testMinute + 60) * 1000))
      .replace(/\$\{filter:percentencode\}/, encodeURIComponent(`address:${address}`));
    const answer = await get(server, asked.replace('/api/v1', ''), token);
    assert.equal(answer.status, 200, asked);
    const body = (await answer.json()) as { rows: unknown[] } | unknown[];
    const rows = root_selector === 'rows' ? (body as { rows: unknown[] }).rows : (body as unknown[]);
    assert.ok(rows.length > 0, asked);
    for (const { selector } of columns) {
      const value = selector
        .split('.')
        .reduce<unknown>((at, name) => (at as Record<string, unknown>)[name], rows[0]);
      assert.notEqual(value, undefined, `${asked}: ${selector}`);
    }
  }
});

test('the description names every path and needs no token', async () => {
  await using server = await startMonitorServer();
  const described = (await (await get(server, '/openapi.json', null)).json()) as { paths: object };
  assert.deepEqual(Object.keys(described.paths), [
    '/api/v1/query',
    '/api/v1/dimensions',
    '/api/v1/sites/{siteId}/metrics',
  ]);
});

test('an operator makes a token in the console, sees it once, and revokes it', async () => {
  await using server = await startMonitorServer();
  const operator = await server.signIn('operator');
  const path = `/sites/${server.siteId}/read-tokens`;
  const made = await operator.post(path, { name: 'Prometheus <b>', days: '' });
  const token = /svcread_[a-z0-9]{16}_[A-Za-z0-9_-]{43}/.exec(made.text)![0];
  assert.equal((await get(server, '/dimensions', token)).status, 200);
  const listed = await operator.get(path);
  assert.ok(!listed.text.includes(token) && listed.text.includes('Prometheus &lt;b&gt;'));
  assert.equal((await operator.post(path, { name: ' ', days: '' })).status, 422);
  assert.equal((await operator.post(`${path}/${token.split('_')[1]}/revoke`)).status, 303);
  assert.equal((await get(server, '/dimensions', token)).status, 401);
  const viewer = await server.signIn('viewer');
  assert.equal((await viewer.post(path, { name: 'x', days: '' })).status, 403);
});
