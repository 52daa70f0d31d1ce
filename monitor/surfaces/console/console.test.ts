import assert from 'node:assert/strict';
import { test } from 'node:test';
import fastify from 'fastify';
import { systemClock } from '#common/clock/index.ts';
import { compressUpload, encodeUpload } from '#contracts/sensor-api/telemetry-codec.ts';
import { readConfig } from '#monitor/config.ts';
import { systemActor } from '#monitor/operators/index.ts';
import { captureMinute, createSpool, host, testMinute, usageRow } from '#monitor/testing/index.ts';
import { type MonitorServer, startMonitorServer, testPassword } from '#monitor/testing/server.ts';
import type { App } from '#service-kit/http/index.ts';
import { registerConsole } from './index.ts';

const pages = (siteId: number) =>
  ['traffic', 'applications', 'sensors', 'events', 'settings'].map((page) => `/sites/${siteId}/${page}`);

/** A sensor with one minute of traffic, one gap, and a name with markup from a guest. */
async function seed(server: MonitorServer, name = 'example.net'): Promise<void> {
  const { monitor, siteId } = server;
  const { token } = await monitor.sensors.createToken(systemActor, siteId);
  const enrolment = { token, host_name: name, node: 'node-1', sensor_version: '0.1.0' };
  const made = await monitor.sensors.enrol(enrolment);
  const sensor = await monitor.sensors.authenticate(made!.credential);
  const gap = {
    fromMinute: testMinute - 300,
    toMinute: testMinute - 60,
    capture: '',
    reason: 'sensor_down' as const,
  };
  const minute = captureMinute({
    hosts: [host('192.0.2.10', 7_500_000, 750_000)],
    usage: [usageRow({ name })],
    totals: { parserDropped: 3 },
  });
  const upload = createSpool().upload([minute], [gap]);
  await monitor.inbox.receive(sensor!, compressUpload(encodeUpload(upload)), 'zstd');
  await monitor.inbox.drain();
  await monitor.events.record(server.database.db, {
    kind: 'telemetry_rejected',
    siteId,
    details: { error: name },
  });
}

test('a person who is not signed in is redirected to sign in, and then to the requested page', async () => {
  await using server = await startMonitorServer();
  for (const path of ['/', ...pages(server.siteId), '/sites/1/traffic.json', '/sites/1/traffic?format=csv']) {
    const answer = await fetch(`${server.url}${path}`, { redirect: 'manual' });
    assert.equal(answer.status, 303, path);
    assert.equal(answer.headers.get('location'), `/sign-in?next=${encodeURIComponent(path)}`);
  }
  const { text } = await (await server.signIn('operator')).get('/sign-in?next=/sites/1/events');
  assert.equal(text, '');
  const signIn = (fields: Record<string, string>, headers: Record<string, string> = {}) =>
    fetch(`${server.url}/sign-in`, {
      method: 'POST',
      redirect: 'manual',
      headers: { 'sec-fetch-site': 'same-origin', ...headers },
      body: new URLSearchParams(fields),
    });
  const right = { email: 'OPERATOR@monitor.example', password: testPassword };
  const led = await signIn({ ...right, next: '/sites/1/events' });
  assert.equal(led.headers.get('location'), '/sites/1/events');
  const astray = await signIn({ ...right, next: '//elsewhere.example' });
  assert.equal(astray.headers.get('location'), '/');
  assert.equal((await signIn({ ...right, password: 'wrong' })).status, 401);
  assert.equal((await signIn(right, { 'sec-fetch-site': 'cross-site' })).status, 403);
});

test('after twenty failures a source is refused, also with the right password', async () => {
  await using server = await startMonitorServer();
  await server.signIn('operator');
  const attempt = async (password: string) => {
    const body = new URLSearchParams({ email: 'operator@monitor.example', password });
    return (await fetch(`${server.url}/sign-in`, { method: 'POST', redirect: 'manual', body })).status;
  };
  for (let i = 0; i < 20; i += 1) assert.equal(await attempt('wrong'), 401);
  assert.equal(await attempt(testPassword), 429);
});

test('every page shows its data to operators and viewers', async () => {
  await using server = await startMonitorServer();
  await seed(server);
  for (const role of ['operator', 'viewer'] as const) {
    const visitor = await server.signIn(role);
    const read = async (path: string) => {
      const { status, text } = await visitor.get(path);
      assert.equal(status, 200, path);
      return text;
    };
    assert.match(await read('/'), /Test site/);
    const traffic = await read(`/sites/${server.siteId}/traffic?range=1h`);
    assert.match(traffic, /1\.00 Mbit\/s/);
    assert.match(traffic, /192\.0\.2\.10/);
    assert.match(traffic, /the sensor did not run/);
    const applications = await read(`/sites/${server.siteId}/applications`);
    assert.match(applications, /example\.net/);
    assert.match(applications, /198\.51\.100\.7/);
    assert.doesNotMatch(await read(`/sites/${server.siteId}/applications?view=inbound`), /198\.51\.100\.7/);
    assert.match(await read(`/sites/${server.siteId}/sensors`), /reporting/);
    assert.match(await read(`/sites/${server.siteId}/events`), /telemetry_rejected/);
  }
});

test('NET-2.2.6: any parser loss makes the range partial, and nothing is estimated', async () => {
  await using server = await startMonitorServer();
  await seed(server);
  const { text } = await (await server.signIn('viewer')).get(`/sites/${server.siteId}/applications`);
  assert.match(text, /Partial: packets were lost/);
  assert.match(text, /3 packets could not be parsed/);
});

test("a gap is null in the chart's data and empty in its CSV, never 0", async () => {
  await using server = await startMonitorServer();
  await seed(server);
  const visitor = await server.signIn('viewer');
  const from = new Date(testMinute * 1000).toISOString().slice(0, 16);
  const to = new Date((testMinute + 180) * 1000).toISOString().slice(0, 16);
  const query = `range=custom&from=${from}&to=${to}`;
  const { text } = await visitor.get(`/sites/${server.siteId}/traffic.json?${query}`);
  const json = JSON.parse(text) as { unit: string; series: { label: string; values: (number | null)[] }[] };
  assert.equal(json.unit, 'bit/s');
  assert.deepEqual(json.series[0]!.values, [1_000_000, null, null]);
  const used = await visitor.get(`/sites/${server.siteId}/applications.json?${query}`);
  assert.deepEqual((JSON.parse(used.text) as typeof json).series, [
    { label: 'example.net', role: 'line', isExpected: false, values: [146.667, null, null] },
  ]);
  const points = `/sites/${server.siteId}/traffic?${query}&table=points&format=`;
  const csv = (await visitor.get(`${points}csv`)).text.split('\r\n');
  assert.match(csv[1]!, /^[^,]+,1000000,100000,[\d.]+,1,1$/);
  assert.match(csv[3]!, /^[^,]+,,,,,0$/);
  const file = JSON.parse((await visitor.get(`${points}json`)).text) as { rows: { in_bps: number | null }[] };
  assert.deepEqual(
    file.rows.map((row) => row.in_bps),
    [1_000_000, null, null],
  );
});

test('every table of a page is a file with the same rows, and not of another page', async () => {
  await using server = await startMonitorServer();
  await seed(server, '=1+1');
  const visitor = await server.signIn('viewer');
  const paths = (await listRoutes(server)).filter(({ method }) => method === 'GET').map(({ path }) => path);
  assert.ok(paths.length > 15, `${paths.length} pages`);
  for (const path of paths) {
    // One's own sessions are not data of the monitor.
    if (path === '/account/') continue;
    const { text } = await visitor.get(path);
    const tables = text.split('<table data-rows').length - 1;
    const files = [...text.matchAll(/href="([^"]*format=(csv|json)[^"]*)" class="link" aria-label/g)];
    assert.equal(files.length, tables * 2, path);
    for (const [, href, format] of files) {
      const file = await visitor.get(href!.replaceAll('&amp;', '&'));
      assert.equal(file.status, 200, href);
      assert.match(file.headers.get('content-type')!, format === 'csv' ? /^text\/csv/ : /json/);
      assert.equal(file.headers.get('cache-control'), 'no-store');
      if (format === 'json') assert.ok(JSON.parse(file.text).rows.length > 0, href);
      else assert.doesNotMatch(file.text, /(^|[,\n])"?=/, 'names are not formulas');
    }
  }
  const nothing = await visitor.get(`/sites/${server.siteId}/events?format=csv&table=addresses`);
  assert.equal(nothing.status, 404);
  assert.match(nothing.text, /Its tables are: events/);
});

test('names from guests and hosts are escaped on every page', async () => {
  await using server = await startMonitorServer();
  await seed(server, '<script>alert(1)</script>"\'<img src=x onerror=alert(2)>');
  const visitor = await server.signIn('operator');
  for (const path of ['/', ...pages(server.siteId)]) {
    const { text, headers } = await visitor.get(path);
    assert.doesNotMatch(text, /<script>alert|<img src=x/, path);
    assert.match(headers.get('content-security-policy')!, /script-src 'self'/);
  }
});

/** Every route of the console, so that future ones are included. */
async function listRoutes(
  server: MonitorServer,
): Promise<{ method: string; path: string; isOwn: boolean }[]> {
  const found: { method: string; path: string; isOwn: boolean }[] = [];
  const app = fastify();
  app.addHook('onRoute', ({ method, url, config }) => {
    const path = url.replace(':siteId', String(server.siteId)).replace(/:[A-Za-z]+/g, '1');
    for (const one of [method].flat()) found.push({ method: one, path, isOwn: config?.isOwn ?? false });
  });
  await registerConsole(app as unknown as App, {
    ...server.monitor,
    processing: { ...readConfig({}), roles: server.monitor.roles },
    clock: systemClock,
    publicUrl: null,
    requireSecondFactor: false,
    monitorUrl: () => null,
  });
  // Routes that need no sign-in change no data of the monitor.
  return found.filter(
    ({ path }) => !/^\/(sign-in|sign-out|reset-password|set-password|sign-on\/answer)\b/.test(path),
  );
}

test('NET-5.5: a viewer sees no forms that change data', async () => {
  await using server = await startMonitorServer();
  await seed(server);
  const viewer = await server.signIn('viewer');
  const routes = await listRoutes(server);
  const ofOwn = routes.filter((route) => route.isOwn).map((route) => route.path);
  for (const { method, path } of routes) {
    if (method !== 'GET') continue;
    const actions = [...(await viewer.get(path)).text.matchAll(/method="post" action="([^"]+)"/g)];
    const offered = actions.map(([, action]) => action!).filter((action) => !ofOwn.includes(action));
    assert.deepEqual(
      offered.filter((action) => action !== '/sign-out'),
      [],
      path,
    );
  }
});

test('an operator sets prefixes, sees their errors, and creates a token that is shown once', async () => {
  await using server = await startMonitorServer();
  const operator = await server.signIn('operator');
  const settings = `/sites/${server.siteId}/settings`;
  const bad = await operator.post(`${settings}/local-cidrs`, { local_cidrs: '192.0.2.0/24\nlan' });
  assert.equal(bad.status, 422);
  assert.match(bad.text, /Not a prefix: lan/);
  assert.match(bad.text, /192\.0\.2\.0\/24\nlan<\/textarea>/, 'the input is kept');
  const good = await operator.post(`${settings}/local-cidrs`, { local_cidrs: '192.0.2.0/24, 2001:db8::/48' });
  assert.equal(good.status, 303);
  assert.match((await operator.get(settings)).text, /192\.0\.2\.0\/24\n2001:db8::\/48/);
  const made = await operator.post(`${settings}/enrolment-tokens`);
  const token = /SVC_SENSOR_ENROLMENT_TOKEN=(svcenr_[\w-]{43}) /.exec(made.text)?.[1];
  assert.ok(token);
  assert.equal(made.headers.get('cache-control'), 'no-store');
  assert.doesNotMatch((await operator.get(settings)).text, /svcenr_/);
});

test('an operator creates a site, and removes a sensor only after typing its name', async () => {
  await using server = await startMonitorServer();
  await seed(server, 'node-1.example');
  const operator = await server.signIn('operator');
  assert.equal((await operator.post('/sites', { name: 'Test site' })).status, 422);
  assert.equal((await operator.post('/sites', { name: 'Second site' })).status, 303);
  assert.match((await operator.get('/')).text, /Second site/);
  const path = `/sites/${server.siteId}/sensors/1/revoke`;
  assert.equal((await operator.post(path, { confirm_name: 'node-1' })).status, 422);
  assert.equal((await server.monitor.sensors.list(server.siteId)).length, 1);
  assert.equal((await operator.post(path, { confirm_name: 'node-1.example' })).status, 303);
  assert.deepEqual(await server.monitor.sensors.list(server.siteId), []);
});

test('an operator renames a site; a taken or empty name is refused and kept in the form', async () => {
  await using server = await startMonitorServer();
  const operator = await server.signIn('operator');
  await server.monitor.sites.create(systemActor, 'Second');
  const rename = (name: string) => operator.post(`/sites/${server.siteId}/settings/name`, { name });
  const taken = await rename('second');
  assert.equal(taken.status, 422);
  assert.match(taken.text, /site named &quot;second&quot; already/);
  assert.match(taken.text, /name="name" [^>]*value="second"/);
  assert.equal((await rename(' ')).status, 422);
  assert.equal((await rename('Frankfurt 1')).status, 303);
  const { text } = await operator.get(`/sites/${server.siteId}/events`);
  assert.match(text, /Frankfurt 1/);
  assert.match(text, /switch site[\s\S]*\/sites\/2\/events/, 'the switch keeps the page');
});

test('a missing page is an HTML page for people and JSON for programs', async () => {
  await using server = await startMonitorServer();
  const operator = await server.signIn('operator');
  for (const path of ['/sites/999/traffic', '/nowhere']) {
    const { status, text, headers } = await operator.get(path);
    assert.equal(status, 404);
    assert.match(headers.get('content-type')!, /text\/html/);
    assert.match(text, /<h1>/);
  }
  const answer = await fetch(`${server.url}/agent/v1/nothing`, { headers: { accept: 'text/html' } });
  assert.equal(answer.status, 404);
  assert.match(answer.headers.get('content-type')!, /json/);
});

test('NET-2.2.8, NET-4.h: programs read and set a site’s local prefixes under a session, at most 128 of them', async () => {
  await using server = await startMonitorServer();
  const path = `${server.url}/api/v1/sites/${server.siteId}/application-settings`;
  assert.equal((await fetch(path)).status, 401);
  const put = async (role: 'operator' | 'viewer', body: unknown, token?: string) => {
    const { cookie, csrfToken } = await server.signIn(role);
    const headers = { cookie, 'content-type': 'application/json', 'x-csrf-token': token ?? csrfToken };
    return fetch(path, { method: 'PUT', headers, body: JSON.stringify(body) });
  };
  const many = Array.from({ length: 129 }, (_, i) => `10.${i}.0.0/16`);
  assert.equal((await put('operator', { local_cidrs: many.slice(1) })).status, 200);
  const saved = await put('operator', { local_cidrs: ['192.0.2.0/24', '2001:DB8::/48'] });
  const expected = { site_id: server.siteId, local_cidrs: ['192.0.2.0/24', '2001:db8::/48'] };
  assert.deepEqual(await saved.json(), expected);
  assert.equal((await put('operator', { local_cidrs: many })).status, 422);
  assert.equal((await put('operator', { local_cidrs: ['lan'] })).status, 422);
  assert.equal((await put('operator', { local_cidrs: [], more: 1 })).status, 422);
  assert.equal((await put('operator', { local_cidrs: [] }, 'forged')).status, 403);
  assert.equal((await put('viewer', { local_cidrs: [] })).status, 403);
  const { cookie } = await server.signIn('viewer');
  assert.deepEqual(await (await fetch(path, { headers: { cookie } })).json(), expected);
});

test('health reports to every caller only that the process runs and its database answers', async () => {
  await using server = await startMonitorServer();
  const read = async (path: string) => (await fetch(`${server.url}${path}`)).json();
  assert.deepEqual(await read('/healthz'), { status: 'alive' });
  assert.equal(((await read('/readyz')) as { status: string }).status, 'ready');
});
