import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { compressUpload, encodeUpload } from '#contracts/sensor-api/telemetry-codec.ts';
import { systemActor } from '#monitor/operators/index.ts';
import { captureMinute, createSpool } from '#monitor/testing/index.ts';
import { type MonitorServer, startMonitorServer } from '#monitor/testing/server.ts';
import { stopDatabaseClock } from '#monitor/testing/still-clock.ts';
import { until } from '#service-kit/testing/until.ts';
import { createHealth } from './index.ts';

const metricsToken = 'token-of-the-scraper';
let server: MonitorServer;
before(async () => {
  server = await startMonitorServer({ SVC_MONITOR_METRICS_TOKEN: metricsToken });
  await stopDatabaseClock(server.database, Date.now());
});
after(() => server[Symbol.asyncDispose]());

async function enrol(name: string) {
  const { monitor, siteId } = server;
  const { token } = await monitor.sensors.createToken(systemActor, siteId);
  const made = await monitor.sensors.enrol({ token, host_name: name, node: name, sensor_version: '0.1.0' });
  return (await monitor.sensors.authenticate(made!.credential))!;
}

const path = '/api/integrations/operations/health';
interface Body {
  status: string;
  problems: string[];
  feeds: { feed: string; last_run_at: string | null; last_error: string | null }[];
  inbox: { pending: number; oldest_seconds: number | null };
  maintenance: { last_success_at: string | null };
  sensors: { enrolled: number; silent: number };
}

test('NET-4.j, NET-2.9: health shows stored state to signed-in people only, including viewers, and runs nothing', async () => {
  assert.equal((await fetch(`${server.url}${path}`)).status, 401);
  const viewer = await server.signIn('viewer');
  const quiet = await viewer.get(path);
  assert.equal(quiet.status, 200);
  assert.equal(quiet.headers.get('cache-control'), 'no-store');
  const before = JSON.parse(quiet.text) as Body;
  assert.equal(before.status, 'ok');
  assert.deepEqual(
    before.feeds.map(({ feed, last_run_at }) => [feed, last_run_at]),
    [
      ['inventory', null],
      ['telemetry', null],
      ['incidents', null],
      ['live', null],
      ['port-scans', null],
      ['vulnerabilities', null],
    ],
  );

  const sensor = await enrol('node-1.example');
  const body = compressUpload(encodeUpload(createSpool().upload([captureMinute()])));
  await server.monitor.inbox.receive(sensor, body, 'zstd');
  await enrol('node-2.example');
  await enrol('node-3.example');
  await server.database.pool.query(
    "update inbox_uploads set received_at = svc_now() - interval '5 minutes'; update inventory_state set last_error = 'operations refused the token';" +
      "update sensors set enrolled_at = svc_now() - interval '4 minutes' where host_name = 'node-2.example'",
  );
  await server.monitor.retention.runOnce();
  const after = JSON.parse((await viewer.get(path)).text) as Body;
  assert.equal(after.status, 'degraded');
  assert.deepEqual(after.problems, [
    'Waiting to be applied: 1 upload, the oldest for 300 seconds.',
    'Inventory: operations refused the token',
    'The sensor on node-2.example is silent.',
  ]);
  assert.deepEqual([after.inbox.pending, after.sensors], [1, { enrolled: 3, silent: 1 }]);
  assert.ok(after.maintenance.last_success_at);
  const { rows } = await server.database.pool.query('select state from inbox_uploads');
  assert.deepEqual(rows, [{ state: 'pending' }], 'nothing ran');
  const page = await viewer.get('/system');
  assert.match(page.text, /3 problems need attention/);
  assert.match(page.text, /node-2\.example/);
});

test('NET-2.9: an allocation that another source delivers is a problem of the feed, though its runs succeed', async () => {
  const { pool } = server.database;
  await pool.query(`insert into allocation_targets (allocation_id, billing_account_id, virtual_machine_id, cluster_id, address,
      assigned_at, is_supported) values (5, 5, 5, 7, '203.0.113.9', '2026-01-01T00:00:00Z', true)`);
  await pool.query(
    `insert into feed_cursors (feed, item, position, last_visit_at, last_outcome)
     values ('telemetry', '5 2026-01-01T00:00:00Z', '{}', to_timestamp($1), 'source_conflict')`,
    [Date.now() / 1000],
  );
  const viewer = await server.signIn('viewer');
  const { status, problems } = JSON.parse((await viewer.get(path)).text) as Body;
  assert.equal(status, 'degraded');
  const said = problems.find((problem) => problem.includes('203.0.113.9'));
  assert.match(said!, /not delivered in full; the page Operations says why\.$/);
});

const allWell = { database: 'ok', migrations: 'ok', inbox: 'ok', live: 'ok', limits: 'ok' };

test('readiness names the fault: the database, migrations, the inbox', async () => {
  const ask = async () =>
    (await fetch(`${server.url}/readyz`)).json() as Promise<{ status: string; checks: object }>;
  await server.database.pool.query("update inbox_uploads set received_at = svc_now() - interval '5 minutes'");
  const { status, checks } = await ask();
  assert.equal(status, 'ready');
  assert.deepEqual(checks, { ...allWell, inbox: '1 uploads wait, the oldest for 300 s' });
  const { rows } = await server.database.pool.query(
    "delete from schema_migrations where name = 'monitor/0076-keep-maintenance-state.sql' returning *",
  );
  const answer = await fetch(`${server.url}/readyz`);
  assert.equal(answer.status, 503);
  assert.match(await answer.text(), /1 not applied, the first is monitor\/0076/);
  await server.database.pool.query(
    'insert into schema_migrations (name, checksum, applied_at) values ($1, $2, $3)',
    [rows[0].name, rows[0].checksum, rows[0].applied_at],
  );
  const down = createHealth({
    ...server.monitor,
    missingMigrations: () => Promise.reject(new Error('connect ECONNREFUSED')),
  });
  assert.deepEqual((await down.check()).checks.database, 'does not answer: connect ECONNREFUSED');
});

test('a database that takes no writes makes the monitor unready, and says why', async () => {
  await using apart = await startMonitorServer({ SVC_MONITOR_METRICS_TOKEN: metricsToken });
  const { database, url } = apart;
  assert.equal((await fetch(`${url}/readyz`)).status, 200);
  const clients = await Promise.all(
    Array.from({ length: database.pool.options.max }, () => database.pool.connect()),
  );
  for (const client of clients) await client.query('set default_transaction_read_only = on');
  for (const client of clients) client.release();
  const unready = await until('the monitor is unready', 30_000, async () => {
    const answer = await fetch(`${url}/readyz`);
    return answer.status === 503 && ((await answer.json()) as { checks: { database: string } });
  });
  assert.equal(unready.checks.database, 'takes no writes: it is read-only');
  const metrics = await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${metricsToken}` } });
  assert.match(await metrics.text(), /^svc_monitor_database_writable 0$/m);
});

test('metrics need the token, and do not exist without one', async () => {
  const ask = (token?: string) =>
    fetch(`${server.url}/metrics`, token ? { headers: { authorization: `Bearer ${token}` } } : {});
  assert.equal((await ask()).status, 401);
  assert.equal((await ask(`${metricsToken}x`)).status, 401);
  const answer = await ask(metricsToken);
  assert.equal(answer.status, 200);
  const text = await answer.text();
  for (const line of [
    'svc_monitor_inbox_uploads_total{outcome="accepted"} 1',
    'svc_monitor_inbox_pending_uploads 1',
    'svc_monitor_database_up 1',
    'svc_monitor_sensors{state="silent"} 1',
    'svc_monitor_sensors{state="enrolled"} 1',
    'svc_monitor_feed_failing{feed="inventory"} 1',
  ])
    assert.ok(text.includes(`${line}\n`), line);
  assert.match(text, /svc_monitor_sensor_lag_seconds\{sensor="\d+",host="node-1\.example"\} \d+/);
  assert.match(text, /svc_monitor_maintenance_last_success_timestamp_seconds \d+/);
  await using plain = await startMonitorServer();
  assert.equal((await fetch(`${plain.url}/metrics`)).status, 404);
});
