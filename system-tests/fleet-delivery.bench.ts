/**
 * Measures how long the monitor takes to deliver a large fleet's minutes, with everything on one machine: `monitor
 * serve`, `operations serve` and a PostgreSQL with full durability for each. Facts and allocations are written to the
 * databases directly; then the programs run as usual. `SVC_BENCH_ALLOCATIONS` sets the size of the fleet.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { silentReporter } from '#common/reporter/index.ts';
import { compose as composeMonitor } from '#monitor/composition.ts';
import { readConfig } from '#monitor/config.ts';
import { systemActor as monitorActor } from '#monitor/operators/index.ts';
import { systemActor } from '#operations/accounts/index.ts';
import { compose as composeOperations } from '#operations/composition.ts';
import { readOperationsSettings } from '#operations/config.ts';
import { createDatabase, createEmbeddedPostgres } from '#service-kit/postgres/index.ts';

export const name = 'fleet-delivery';

const allocations = Number(process.env.SVC_BENCH_ALLOCATIONS ?? 10_000);
const serversOfNode = 50;
const applicationsOfMinute = 3;
/** Minutes of facts before now, and after now for the duration of the run. */
const minutesBefore = 75;
const minutesAhead = Number(process.env.SVC_BENCH_MINUTES_AHEAD ?? 25);
/** Timed passes over the whole fleet after the first one, which has an hour of each allocation to catch up. */
const passes = 2;
const svc = fileURLToPath(new URL('../svc.ts', import.meta.url));

export async function run(report: (line: string) => void): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-bench-fleet-'));
  await using stack = new AsyncDisposableStack();
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  const operations = await startOperations(stack, folder);
  const monitor = await startMonitor(stack, folder, operations);
  report(
    `${allocations} allocations on nodes with ${serversOfNode} each, ${minutesBefore} minutes of facts, ${applicationsOfMinute} applications a minute`,
  );
  let since = await readNow(monitor.pool);
  const pid = monitor.serve();
  const read = async () => ({
    monitor: cpuOf(pid),
    operations: cpuOf(operations.pid),
    "monitor's PostgreSQL": cpuOf(postmasterOf(monitor)),
    "operations' PostgreSQL": cpuOf(postmasterOf(operations)),
    asked: [await countStatements(monitor), await countStatements(operations)],
  });
  for (let pass = 0; pass <= passes; pass += 1) {
    const { asked: askedBefore, ...before } = await read();
    const seconds = await untilVisited(monitor.pool, since);
    const { asked, ...used } = await read();
    since = await readNow(monitor.pool);
    const parts = (Object.keys(used) as (keyof typeof used)[]).map(
      (part) => `${part} ${(used[part] - before[part]).toFixed(0)} s`,
    );
    const [ofMonitor, ofOperations] = asked.map((calls, i) =>
      ((calls - askedBefore[i]!) / allocations).toFixed(1),
    );
    report(
      `${pass === 0 ? 'first pass, catching up' : `pass ${pass}`}: ${seconds.toFixed(0)} s; processor: ${parts.join(', ')}; statements per allocation: ${ofMonitor} of the monitor, ${ofOperations} of operations`,
    );
  }
  const { rows } = await operations.pool.query<{ series: number; oldest: number }>(
    `select count(*)::int as series, max(extract(epoch from now() - newest))::float8 as oldest
    from (select max(minute) as newest from protect_minutes group by allocation_id) s`,
  );
  report(
    `operations has minutes of ${rows[0]!.series} allocations; the newest of the one that waited longest began ${rows[0]!.oldest.toFixed(0)} s ago`,
  );
  if (process.env.SVC_BENCH_STATEMENTS)
    for (const program of [monitor, operations]) await showStatements(program, report);
}

/** The statements that took the most time. */
async function showStatements({ admin }: Program, report: (line: string) => void): Promise<void> {
  const { rows } = await admin.query<{ line: string }>(
    `select round(total_exec_time + total_plan_time) || ' ms ' || calls || ' calls ' || left(regexp_replace(query, '\\s+', ' ', 'g'), 160) as line
    from pg_stat_statements order by total_exec_time + total_plan_time desc limit 18`,
  );
  for (const { line } of rows) report(line);
}

interface Program {
  pool: pg.Pool;
  /** Connected as the superuser of its PostgreSQL. */
  admin: pg.Client;
  /** Directory of its PostgreSQL. */
  folder: string;
}

async function startPostgres(stack: AsyncDisposableStack, folder: string, program: string) {
  const dir = join(folder, program);
  const postgres = createEmbeddedPostgres({
    dir,
    databaseName: program,
    urlSetting: 'SVC_DATABASE_URL',
    reporter: silentReporter,
    serverSettings: {
      shared_preload_libraries: 'pg_stat_statements',
      'pg_stat_statements.track_planning': 'on',
    },
  });
  await postgres.start();
  stack.defer(() => postgres.stop());
  const admin = new pg.Client({ connectionString: postgres.adminUrl });
  await admin.connect();
  stack.defer(() => admin.end());
  await admin.query('create extension pg_stat_statements');
  return { url: postgres.url, admin, folder: dir };
}

async function startOperations(stack: AsyncDisposableStack, folder: string) {
  const postgres = await startPostgres(stack, folder, 'operations');
  const port = await freePort();
  const environment = {
    SVC_DATA_DIR: folder,
    SVC_OPERATIONS_DATABASE_URL: postgres.url,
    SVC_OPERATIONS_PORT: String(port),
    SVC_PAYMENT_GATEWAY: 'test',
    SVC_LOG_LEVEL: 'error',
  };
  const settings = readOperationsSettings(environment);
  const features = await composeOperations(settings, { reporter: silentReporter });
  const { database } = features;
  await database.start();
  stack.defer(() => database.stop());
  const clusterId = await makeServers(database.pool);
  const permissions = ['protect_telemetry_ingest', 'vm_inventory_read'];
  const project = await features.adminProjects.create(systemActor, {
    name: 'monitor',
    permissions,
    clusterIds: null,
  });
  const { token } = await features.adminProjects.issueToken(systemActor, project.id, null);
  const child = serve('operations', environment);
  stack.defer(() => end(child));
  const baseUrl = `http://127.0.0.1:${port}`;
  await untilAnswering(`${baseUrl}/sign-in`, child);
  const { admin, folder: dir } = postgres;
  const program: Program = { pool: database.pool, admin, folder: dir };
  return { ...program, pid: child.pid!, baseUrl, token, clusterId };
}

async function startMonitor(
  stack: AsyncDisposableStack,
  folder: string,
  operations: { baseUrl: string; token: string; clusterId: number },
) {
  const postgres = await startPostgres(stack, folder, 'monitor');
  const environment = {
    SVC_DATA_DIR: folder,
    SVC_MONITOR_DATABASE_URL: postgres.url,
    SVC_MONITOR_PORT: String(await freePort()),
    SVC_LOG_LEVEL: 'error',
  };
  const database = createDatabase({
    program: 'monitor',
    urlSetting: 'SVC_MONITOR_DATABASE_URL',
    url: postgres.url,
    programDir: folder,
    migrations: fileURLToPath(new URL('../monitor/migrations', import.meta.url)),
    reporter: silentReporter,
  });
  await database.start();
  stack.defer(() => database.stop());
  const monitor = composeMonitor(readConfig(environment), { database });
  const site = await monitor.sites.create(monitorActor, 'Large');
  await monitor.sites.mapCluster(monitorActor, operations.clusterId, site.id);
  const { baseUrl, token } = operations;
  await monitor.connection.save(monitorActor, { baseUrl, token, isEnabled: true });
  await makeFacts(monitor, database.pool, site.id);
  const { admin, folder: dir } = postgres;
  const program: Program = { pool: database.pool, admin, folder: dir };
  return {
    ...program,
    serve() {
      const child = serve('monitor', environment);
      stack.defer(() => end(child));
      return child.pid!;
    },
  };
}

/** Address of the server with this number, from 0. */
const addressOf = (n: string) => `(inet '45.0.0.0' + ${n})`;

/** A cluster with as many servers as allocations, and one address for each. */
async function makeServers(pool: pg.Pool): Promise<number> {
  const one = async (text: string) => (await pool.query<{ id: number }>(`${text} returning id`)).rows[0]!.id;
  const location = await one("insert into locations (slug, name, country) values ('bench', 'Bench', 'DE')");
  const cluster = await one(
    `insert into clusters (location_id, name, driver) values (${location}, 'bench', 'simulated')`,
  );
  const image = await one("insert into images (slug, name, family) values ('bench', 'Bench', 'debian')");
  const plan =
    await one(`insert into plans (slug, name, vcpus, memory_mb, disk_gb, hourly_quanta, monthly_cap_quanta)
    values ('bench', 'Bench', 1, 1024, 10, 1, 1000)`);
  const organization = await one("insert into organizations (name) values ('Bench')");
  const tenant = await one(
    `insert into tenants (organization_id, name, slug, is_payer) values (${organization}, 'Bench', 'bench', true)`,
  );
  const pool_ =
    await one(`insert into address_pools (cluster_id, prefix, gateway, first_address, last_address)
    values (${cluster}, '45.0.0.0/8', '45.255.255.254', '45.0.0.0', '45.255.0.0')`);
  await pool.query(`
    with orders as (
      insert into server_orders (tenant_id, plan_id, state, billing_cycle, due_quanta, created_at, queued_at)
      select ${tenant}, ${plan}, 'created', 'hourly', 0, now() - interval '3 hours', now() - interval '3 hours'
      from generate_series(1, ${allocations}) returning id),
    made as (
      insert into servers (tenant_id, order_id, plan_id, image_id, cluster_id, node, name, hostname, provisioning_state,
        power_state, hourly_quanta, monthly_cap_quanta, billed_until, provisioned_at)
      select ${tenant}, id, ${plan}, ${image}, ${cluster}, 'node-' || (row_number() over (order by id) - 1) / ${serversOfNode},
        'bench-' || id, 'bench-' || id, 'ready', 'running', 1, 1000, now() + interval '1 day', now()
      from orders returning id),
    numbered as (select id, row_number() over (order by id) - 1 as n from made),
    interfaces as (
      insert into server_interfaces (server_id, mac_address, bridge)
      select id, ${macOf('n')}, 'br0' from numbered)
    insert into allocations (pool_id, cluster_id, tenant_id, server_id, address, prefix_length, gateway, is_primary, assigned_at)
    select ${pool_}, ${cluster}, ${tenant}, id, ${addressOf('n')}, 8, '45.255.255.254', true, now() - interval '3 hours'
    from numbered`);
  await pool.query('analyze');
  return cluster;
}

const macOf = (n: string) =>
  `'02:00:00:' || regexp_replace(lpad(to_hex(${n}), 6, '0'), '(..)(..)(..)', '\\1:\\2:\\3')`;

/** One sensor per node, with the uplink traffic of its servers, minute by minute. */
async function makeFacts(
  { facts }: { facts: { prepare(minutes: readonly number[]): Promise<void> } },
  pool: pg.Pool,
  siteId: number,
): Promise<void> {
  const now = Math.floor(Date.now() / 60_000) * 60;
  const [from, to] = [now - minutesBefore * 60, now + minutesAhead * 60];
  await facts.prepare(Array.from({ length: (to - from) / 60 }, (_, i) => from + i * 60));
  const nodes = Math.ceil(allocations / serversOfNode);
  await pool.query(`insert into sensors (site_id, host_name, node)
    select ${siteId}, 'node-' || n, 'node-' || n from generate_series(0, ${nodes - 1}) n`);
  await pool.query(
    "insert into captures (site_id, sensor_id, name, role) select site_id, id, 'eth0', 'uplink' from sensors order by id",
  );
  await pool.query(`insert into capture_minutes (site_id, minute, capture_id, vantage, observed_ms, packets, ip_packets,
      ip_bytes, non_ip_packets, parser_dropped, kernel_dropped, detail_truncated)
    select ${siteId}, m, c.id, 1, 60000, 100000, 100000, 90000000, 0, 0, 0, 0
    from captures c, generate_series(to_timestamp(${from}), to_timestamp(${to - 60}), interval '1 minute') m`);
  // One minute at a time, in the order of arrival.
  for (let minute = from; minute < to; minute += 60) {
    const servers = `(select row_number() over (order by id) - 1 as node, id from captures) c
      cross join lateral generate_series(c.node * ${serversOfNode}, least((c.node + 1) * ${serversOfNode}, ${allocations}) - 1) n`;
    await pool.query(`insert into host_minutes (site_id, minute, capture_id, address, rx_bytes, tx_bytes, packets, device_key)
      select ${siteId}, to_timestamp(${minute}), c.id, ${addressOf('n')}, n * 1000 + ${minute % 977}, n * 100, 2000 + n,
        'br0|' || ${macOf('n')} from ${servers}`);
    await pool.query(`insert into application_facts (site_id, minute, capture_id, vantage, direction, local_address, name, protocol,
        server_port, evidence, is_attributed, inbound_bytes, outbound_bytes, packets, last_sent_at)
      select ${siteId}, to_timestamp(${minute}), c.id, 1, 1, ${addressOf('n')}, 'service-' || (n + a) % 1500 || '.example', 6, 443, 5,
        true, n * 300 + a, n * 30 + a, 500, to_timestamp(${minute + 30}) from ${servers}, generate_series(1, ${applicationsOfMinute}) a`);
  }
  await pool.query('analyze');
}

/** Waits until every allocation was visited after this time. Returns the duration. */
async function untilVisited(pool: pg.Pool, since: Date): Promise<number> {
  for (;;) {
    const { rows } = await pool.query<{ visited: number; seconds: number }>(
      `select count(*) filter (where last_visit_at > $1)::int as visited,
        extract(epoch from max(last_visit_at) - $1)::float8 as seconds from feed_cursors`,
      [since],
    );
    if (rows[0]!.visited >= allocations) return rows[0]!.seconds;
    await new Promise((wake) => setTimeout(wake, 250));
  }
}

const readNow = async (pool: pg.Pool) =>
  (await pool.query<{ now: Date }>('select clock_timestamp() as now')).rows[0]!.now;

async function countStatements({ admin }: Program): Promise<number> {
  const { rows } = await admin.query<{ calls: string }>(
    'select coalesce(sum(calls), 0) as calls from pg_stat_statements',
  );
  return Number(rows[0]!.calls);
}

/** Processor seconds of a process and its descendants; ended ones count with their parent. */
function cpuOf(pid: number): number {
  const ticks = (text: string) => {
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    return [11, 12, 13, 14].reduce((sum, i) => sum + Number(fields[i]), 0) / 100;
  };
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean);
    return (
      ticks(readFileSync(`/proc/${pid}/stat`, 'utf8')) +
      children.reduce((sum, child) => sum + cpuOf(Number(child)), 0)
    );
  } catch {
    return 0;
  }
}

const postmasterOf = ({ folder }: Program) =>
  Number(readFileSync(join(folder, 'data/postmaster.pid'), 'utf8').split('\n')[0]);

function serve(program: string, environment: Readonly<Record<string, string>>): ChildProcess {
  const flags = process.env.SVC_BENCH_PROFILE
    ? ['--cpu-prof', `--cpu-prof-dir=${process.env.SVC_BENCH_PROFILE}`]
    : [];
  return spawn(process.execPath, [...flags, svc, program, 'serve'], {
    env: { ...process.env, ...environment },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  const gone = once(child, 'exit');
  child.kill('SIGTERM');
  await gone;
}

async function freePort(): Promise<number> {
  const probe = createServer();
  probe.listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address() as { port: number };
  probe.close();
  await once(probe, 'close');
  return port;
}

async function untilAnswering(url: string, child: ChildProcess): Promise<void> {
  for (let attempt = 0; attempt < 600; attempt += 1) {
    if (child.exitCode !== null) throw new Error('operations ended before it was ready');
    const answer = await fetch(url).catch(() => null);
    await answer?.arrayBuffer();
    if (answer) return;
    await new Promise((wake) => setTimeout(wake, 100));
  }
  throw new Error('operations did not become ready');
}
