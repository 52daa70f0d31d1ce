import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { noticePath, signNotice } from '#contracts/destroy-notice/index.ts';
import { startOperationsStub } from '#monitor/operations-client/testing/operations-stub.ts';
import { type MonitorServer, startMonitorServer, type Visitor } from '#monitor/testing/server.ts';

const mac = '52:54:00:00:00:0a';
let server: MonitorServer;
let operator: Visitor;
let viewer: Visitor;

before(async () => {
  server = await startMonitorServer();
  operator = await server.signIn('operator');
  viewer = await server.signIn('viewer');
});
after(() => server[Symbol.asyncDispose]());

test('NET-5.5: a viewer sees the connection and the devices, and changes nothing', async () => {
  await server.database.db.transaction().execute((trx) =>
    server.monitor.devices.recordSightings(trx, [
      {
        siteId: server.siteId,
        minutes: [{ minute: 1_790_000_040, hosts: [{ deviceKey: `br0|${mac}`, address: '203.0.113.10' }] }],
      },
    ]),
  );
  assert.equal((await viewer.get('/operations')).status, 200);
  assert.equal((await viewer.get(`/sites/${server.siteId}/devices`)).status, 200);
  const [device] = await server.monitor.devices.list(server.siteId, 10);
  const attempts: [string, Record<string, string>][] = [
    ['/operations/connection', { base_url: 'http://127.0.0.1:1', token: '', is_enabled: 'on' }],
    ['/operations/test', {}],
    ['/operations/import', {}],
    ['/operations/clusters', { cluster_id: '7', site_id: String(server.siteId) }],
    ['/operations/notice-secret', {}],
    [`/sites/${server.siteId}/devices/${device!.id}/name`, { name: 'mine' }],
  ];
  for (const [path, fields] of attempts) {
    assert.equal((await viewer.post(path, fields)).status, 403, path);
    assert.equal(
      (await operator.post(path, { ...fields, csrf_token: 'wrong' })).status,
      403,
      `${path} forged`,
    );
  }
  assert.deepEqual(await server.monitor.sites.listClusters(), []);
  assert.equal(await server.monitor.connection.view(), null);
  assert.equal(await server.monitor.connection.noticeStatus(), null);
  assert.equal((await server.monitor.devices.list(server.siteId, 10))[0]!.operatorName, null);
});

test('NET-4.9: connect, test, import, map: the complete setup in the console, and the token is never shown', async () => {
  await using operations = await startOperationsStub();
  operations.vms = [
    {
      id: 1,
      cluster_id: 7,
      node: 'node-1',
      name: '<b>web</b>',
      state: 'running',
      updated_at: new Date().toISOString(),
      interfaces: [{ id: 1, mac_address: mac, bridge: 'br0', vlan: null, addresses: ['203.0.113.10'] }],
    },
  ];
  assert.match((await operator.get('/operations')).text, /Not connected yet/);
  assert.match(
    (await operator.get(`/sites/${server.siteId}/devices`)).text,
    /The inventory has never been imported/,
  );

  const typed = { base_url: `${operations.url}/`, is_enabled: 'on' };
  const bad = await operator.post('/operations/connection', { ...typed, token: 'svc_not_a_token' });
  assert.equal(bad.status, 422);
  assert.match(bad.text, /not an admin API token/);
  const saved = await operator.post('/operations/connection', { ...typed, token: ` ${operations.token} ` });
  assert.equal(saved.status, 303);
  assert.equal((await operator.post('/operations/test')).status, 303);
  assert.equal((await operator.post('/operations/import')).status, 303);
  const mapping = { cluster_id: '7', site_id: String(server.siteId) };
  assert.equal((await operator.post('/operations/clusters', mapping)).status, 303);
  assert.deepEqual(await server.monitor.sites.listClusters(), [{ clusterId: 7, siteId: server.siteId }]);

  // Saved without a token: the stored one stays.
  assert.equal((await operator.post('/operations/connection', { ...typed, token: '' })).status, 303);
  assert.equal((await operator.post('/operations/test')).status, 303);
  const page = await operator.get('/operations');
  assert.match(page.text, /Connected\. No minute has been delivered yet/);
  assert.ok(!page.text.includes(operations.token));

  operations.intercept = (_request, response) => {
    response.writeHead(500).end('<script>their stack</script>');
    return true;
  };
  const untested = { ...typed, base_url: `${operations.url}/elsewhere`, token: '' };
  assert.equal((await operator.post('/operations/connection', untested)).status, 422);
  assert.equal(
    (await server.monitor.connection.view())!.baseUrl,
    operations.url,
    'a failed connection is not saved',
  );
  const failed = await operator.post('/operations/test');
  assert.equal(failed.status, 422);
  assert.match(failed.text, /Operations reported an internal error/);
  assert.ok(!failed.text.includes('their stack'));

  // With a disabled connection an import fails with a message, and old data is marked as old.
  const disabled = { base_url: operations.url, token: '' };
  assert.equal((await operator.post('/operations/connection/untested', disabled)).status, 303);
  const refused = await operator.post('/operations/import');
  assert.equal(refused.status, 422);
  assert.match(refused.text, /Nothing was imported: no connection is enabled/);
  for (const path of ['/operations', `/sites/${server.siteId}/devices`])
    assert.match((await operator.get(path)).text, /The inventory is old: imported/, path);
});

test('NET-2.1.2: an import older than 15 minutes, or a failed one, is marked as old on the pages that use it', async () => {
  await using operations = await startOperationsStub();
  const paths = ['/operations', `/sites/${server.siteId}/devices`];
  const say = async () => Promise.all(paths.map(async (path) => (await operator.get(path)).text));
  const typed = { base_url: operations.url, token: operations.token, is_enabled: 'on' };
  assert.equal((await operator.post('/operations/connection', typed)).status, 303);
  assert.equal((await operator.post('/operations/import')).status, 303);
  for (const text of await say()) assert.doesNotMatch(text, /The inventory (is old|has never)/);
  const age = (minutes: number) =>
    server.database.pool.query(
      `update inventory_state set last_success_at = svc_now() - interval '${minutes} minutes'`,
    );
  await age(14);
  for (const text of await say()) assert.doesNotMatch(text, /The inventory is old/);
  await age(16);
  for (const text of await say()) assert.match(text, /The inventory is old: imported/);
});

test('addresses that a feed can not deliver are named where its last error is, though its run succeeds', async () => {
  const row = async () => {
    const { text } = await viewer.get('/operations');
    return /<tr[^>]*>(?:(?!<\/tr>)[\s\S])*Minute traffic[\s\S]*?<\/tr>/
      .exec(text)![0]
      .replaceAll(/<[^>]+>/g, ' ');
  };
  const counted = (counts: object) =>
    server.database.pool.query(
      `insert into feed_states (feed, last_run_at, last_success_at, last_counts) values ('telemetry', svc_now(), svc_now(), $1)
       on conflict (feed) do update set last_counts = excluded.last_counts, last_error = null`,
      [JSON.stringify(counts)],
    );
  await counted({ targets: 5, unsupported: 0, unmapped: 0 });
  assert.match(await row(), /targets 5\s*(none\s*)?$/);
  await counted({ targets: 5, unsupported: 3, unmapped: 1 });
  assert.match(
    await row(),
    /addresses not delivered\s+3 not globally routable, 1 in a cluster without a site/,
  );
});

test('NET-4.8: a notice secret is shown once, works at once, and replacing it needs a confirmation', async () => {
  const secretIn = (text: string) => /<code>([A-Za-z0-9_-]{43})<\/code>/.exec(text)?.[1];
  const notify = async (secret: string) => {
    const body = JSON.stringify({ cluster_id: 7, virtual_machines: [] });
    const timestamp = String(Math.floor(Date.now() / 1000));
    const answer = await fetch(`${server.url}${noticePath}`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'x-operations-timestamp': timestamp,
        'x-operations-signature': signNotice(secret, timestamp, Buffer.from(body)),
      },
      body,
    });
    return answer.status;
  };
  const first = secretIn((await operator.post('/operations/notice-secret')).text);
  assert.ok(first);
  assert.equal(await notify(first), 200);
  assert.equal(secretIn((await operator.get('/operations')).text), undefined, 'never again');
  assert.equal((await operator.post('/operations/notice-secret')).status, 422);
  assert.equal(await notify(first), 200, 'nothing changed without the confirmation');
  const confirmed = await operator.post('/operations/notice-secret', { confirm_name: 'new secret' });
  const second = secretIn(confirmed.text);
  assert.ok(second && second !== first);
  assert.equal(confirmed.headers.get('cache-control'), 'no-store');
  assert.equal(await notify(first), 401);
  assert.equal(await notify(second), 200);
});

test('NET-2.1.3: a device is named on its page, and names are escaped', async () => {
  const { monitor, siteId, database } = server;
  await database.db.transaction().execute((trx) =>
    monitor.devices.recordSightings(trx, [
      {
        siteId,
        minutes: [
          { minute: 1_790_000_040, hosts: [{ deviceKey: `<i>br0</i>|${mac}`, address: '203.0.113.10' }] },
        ],
      },
    ]),
  );
  const [device] = await monitor.devices.list(siteId, 10);
  const path = `/sites/${siteId}/devices/${device!.id}`;
  assert.equal((await operator.post(`${path}/name`, { name: '<script>alert(1)</script>' })).status, 303);
  for (const page of [path, `/sites/${siteId}/devices`]) {
    const { status, text } = await operator.get(page);
    assert.equal(status, 200);
    assert.ok(text.includes('&lt;script&gt;alert(1)'));
    assert.ok(!text.includes('<script>alert') && !text.includes('<i>br0'));
  }
  const long = await operator.post(`${path}/name`, { name: 'x'.repeat(81) });
  assert.equal(long.status, 422);
  assert.equal((await operator.get(`/sites/${siteId}/devices/999999`)).status, 404);
});
