/**
 * What the explorer of traffic costs with 10,000 servers of 500 customers (`SVC_BENCH_SERVERS`): by HTTP, as a person asks, one
 * page at a time, from the request to the last byte. Processor time is that of this process and of PostgreSQL's backends together,
 * none of them parallel; it says more than the clock on a machine that does other work. Each server has two days of sums by ten minutes and by hour, and 15
 * applications in each hour; minutes are there for the last two hours of all servers and for a day of 50 of them, which
 * is what the pages read of minutes. One customer has 500 servers, which is what a large portal page counts.
 *
 * `SVC_BENCH_VIEWS` is a part of the names of the views that are wanted. `SVC_BENCH_FOLDER` names a folder that keeps the world for the next run, in which it is then as late as when it was filled.
 */
import { readFile } from 'node:fs/promises';
import { loadavg } from 'node:os';
import { systemActor } from '#operations/accounts/index.ts';
import { createWorld, password, type World } from '#operations/testing/create-world.ts';
import { createTestDatabase, keepDatabase, moveDatabaseClock } from '#service-kit/testing/index.ts';

export const name = 'traffic-explorer';

const servers = Number(process.env.SVC_BENCH_SERVERS ?? 10_000);
const rounds = Number(process.env.SVC_BENCH_ROUNDS ?? 20);
/** Part of the names of the views that are wanted. */
const only = process.env.SVC_BENCH_VIEWS ?? '';
const tenants = 500;
const applicationsOfHour = 15;
const names = 2_000;
const settings = 'set plan_cache_mode = force_custom_plan; set max_parallel_workers_per_gather = 0';

/** Bars in milliseconds: what a page opens with, and what people ask beside that. */
const views: readonly [what: string, who: 'staff' | 'owner', path: string, barMs: number][] = [
  ['console, as it opens: 24 hours', 'staff', '/console/traffic/', 300],
  ['console, 24 hours by customer', 'staff', '/console/traffic/?by=customer', 300],
  ['console, one customer', 'staff', '/console/traffic/?q=customer:Largest', 300],
  ['console, one server', 'staff', '/console/traffic/?q=server:server-17', 300],
  ['console, one server, last hour', 'staff', '/console/traffic/?q=server:server-17&range=1h', 300],
  ['console, in and out, previous', 'staff', '/console/traffic/?by=direction&compare=previous', 2000],
  ['console, 24 hours by application', 'staff', '/console/traffic/?by=app', 2000],
  ['console, 24 hours by port', 'staff', '/console/traffic/?by=port', 2000],
  ['console, 24 hours by transport', 'staff', '/console/traffic/?by=transport', 2000],
  ['console, one application', 'staff', '/console/traffic/?q=app:service-37.example', 2000],
  ['console, not one customer', 'staff', '/console/traffic/?q=-customer:Largest', 2000],
  ['console, last hour of all', 'staff', '/console/traffic/?range=1h', 2000],
  ['console, 24 hours by address', 'staff', '/console/traffic/?by=address', 2000],
  ['console, 24 hours in packets', 'staff', '/console/traffic/?measure=packets', 300],
  ['console, last hour in packets', 'staff', '/console/traffic/?range=1h&measure=packets', 2000],
  ['console, chart alone', 'staff', '/console/traffic/chart.json', 300],
  ['portal, 500 servers, as it opens', 'owner', '/client/traffic/', 300],
  ['portal, 500 servers, 24 hours', 'owner', '/client/traffic/?range=24h', 300],
  ['portal, 500 servers by application', 'owner', '/client/traffic/?range=24h&by=app', 300],
  ['portal, flows', 'owner', '/client/traffic/?range=24h&tab=flows', 2000],
];

export async function run(report: (line: string) => void): Promise<void> {
  const folder = process.env.SVC_BENCH_FOLDER;
  if (folder !== undefined) process.env.SVC_TEST_MEMORY_DIR = folder;
  const kept = folder === undefined ? undefined : `traffic_${servers}`;
  const database = await createTestDatabase('operations', kept);
  // The pages' ranges end by the clock of the process: it stands where a kept world ends.
  const { rows: held } = await database.pool.query<{ at: Date | null }>(
    'select max(minute) as at from protect_minutes',
  );
  const clockStartMs = held[0]?.at?.getTime();
  const world = await createWorld({ database, ...(clockStartMs !== undefined && { clockStartMs }) });
  try {
    const began = performance.now();
    const isFilled = await hasServers(world);
    if (!isFilled) await fill(world);
    if (!isFilled && kept !== undefined) await keepDatabase(world.database, 'operations', kept);
    await openAsProgram(world);
    const { rows } = await world.database.pool.query(
      `select (select count(*) from protect_series) || ' series, ' || (select count(*) from protect_usage_hours) || ' hours, '
        || (select count(*) from protect_usage_tens) || ' tens, ' || (select count(*) from protect_application_hours)
        || ' applications of hours, ' || (select count(*) from protect_minutes) || ' minutes' as text`,
    );
    report(`${rows[0].text}, made in ${((performance.now() - began) / 1000).toFixed(0)} s`);
    const staff = 'support@staff.test';
    const email = 'owner-1@largest.test';
    await world.accounts.createPerson(systemActor, {
      email: staff,
      name: 's',
      password,
      staffRole: 'support',
    });
    const cookies = { staff: await world.signIn(staff), owner: await world.signIn(email) };
    for (const [what, who, path, bar] of views.filter(([what]) => what.includes(only)))
      report(await measure(world, what, world.url + path, cookies[who], bar));
    report(`load ${loadavg()[0]!.toFixed(2)}`);
  } finally {
    // Not as a test's world ends, which looks for secrets in every row.
    await world.database.drop();
  }
}

/** Milliseconds of processor time of the backends of this database so far. */
async function backendMs({ database }: World): Promise<number> {
  const { rows } = await database.pool.query<{ pid: number }>(
    'select pid from pg_stat_activity where datname = current_database()',
  );
  const stats = await Promise.all(
    rows.map(({ pid }) => readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')),
  );
  const ticks = stats.map((stat) => stat.slice(stat.lastIndexOf(')') + 2).split(' '));
  return ticks.reduce((sum, fields) => sum + 10 * (Number(fields[11] ?? 0) + Number(fields[12] ?? 0)), 0);
}

async function measure(
  world: World,
  what: string,
  url: string,
  cookie: string,
  bar: number,
): Promise<string> {
  const took: number[] = [];
  let bytes = 0;
  let [own, backends] = [process.cpuUsage(), 0];
  for (let round = -2; round < rounds; round += 1) {
    if (round === 0) [own, backends] = [process.cpuUsage(), await backendMs(world)];
    const began = performance.now();
    const answer = await fetch(url, { headers: { accept: 'text/html', cookie } });
    const text = await answer.text();
    if (answer.status !== 200) throw new Error(`${url} was a ${answer.status}: ${text.slice(0, 300)}`);
    if (round >= 0) took.push(performance.now() - began);
    bytes = Buffer.byteLength(text);
  }
  const spent = process.cpuUsage(own);
  const ofOwn = (spent.user + spent.system) / 1_000 / rounds;
  const ofBackends = ((await backendMs(world)) - backends) / rounds;
  took.sort((a, b) => a - b);
  const [best, median, p95] = [0, 0.5, 0.95].map((part) => took[Math.floor(took.length * part)]!);
  const verdict = p95! <= bar ? 'within' : 'OVER';
  return `${what.padEnd(36)} best ${best!.toFixed(0)} ms, median ${median!.toFixed(0)} ms, 95th percentile ${p95!.toFixed(0)} ms, ${verdict} ${bar} ms; processor ${ofOwn.toFixed(0)} + ${ofBackends.toFixed(0)} ms; ${Math.round(bytes / 1024)} KiB`;
}

/** Copies of a server and of its address; sums as two days of minutes would have left them. */
async function fill(world: World): Promise<void> {
  const customer = await world.createCustomer('Largest');
  const { serverId } = await world.deploy(customer.tenant, 'first');
  const [first] = await world.addresses.listAllocationsOfServers([serverId]);
  const client = await world.database.pool.connect();
  try {
    await copyServers(client, customer.tenant.id, serverId, first!.id);
    await sumTwoDays(client);
  } finally {
    // A database with a client in use is never dropped.
    client.release();
  }
  await world.database.pool.query('vacuum analyze');
}

async function hasServers({ database }: World): Promise<boolean> {
  const { rows } = await database.pool.query<{ is: boolean }>(
    'select exists (select from protect_series) as is',
  );
  return rows[0]!.is;
}

/** With the program's settings, and as late as the last minute that is filled. */
async function openAsProgram({ database }: World): Promise<void> {
  // Tests keep plans of small tables; the program plans each statement for its values.
  database.pool.on('connect', (each) => void each.query(settings));
  const { rows } = await database.pool.query<{ offset: string }>(
    `select least(interval '0', max(minute) - svc_now())::text as offset from protect_minutes`,
  );
  await moveDatabaseClock(database, rows[0]!.offset);
}

interface Client {
  query(text: string, values?: unknown[]): Promise<unknown>;
}

async function copyServers(
  client: Client,
  tenantId: number,
  serverId: number,
  allocationId: number,
): Promise<void> {
  const query = (text: string, values: unknown[] = []) => client.query(text, values);
  // Only copies of what exists: what they refer to is not looked at.
  await query('set session_replication_role = replica');
  await query(
    `insert into tenants (organization_id, name, slug) select organization_id, 'Customer ' || n, 'customer-' || n
     from tenants, generate_series(1, $2::int) n where id = $1`,
    [tenantId, tenants],
  );
  await query('update tenants set organization_id = organization_id + 100000 where id <> $1', [tenantId]);
  await query(
    `insert into servers (tenant_id, order_id, plan_id, image_id, cluster_id, node, name, hostname, provisioning_state,
       power_state, hourly_quanta, monthly_cap_quanta, provisioned_at, created_at)
     select case when n <= least(500, $2::int / 4) then $3 else (select min(id) from tenants where name = 'Customer 1') + n % $4::int end,
       1000000 + n, s.plan_id, s.image_id, s.cluster_id, 'hv-' || n % 100, 'server-' || n, 'server-' || n, s.provisioning_state,
       s.power_state, s.hourly_quanta, s.monthly_cap_quanta, s.provisioned_at, svc_now() - interval '9 days'
     from servers s, generate_series(1, $2::int - 1) n where s.id = $1`,
    [serverId, servers, tenantId, tenants],
  );
  await query(
    `insert into allocations (pool_id, cluster_id, tenant_id, server_id, address, prefix_length, gateway, is_primary, assigned_at)
     select a.pool_id, a.cluster_id, s.tenant_id, s.id, '100.64.0.0'::inet + s.id, a.prefix_length, a.gateway, true, a.assigned_at
     from allocations a, servers s where a.id = $1 and s.id <> a.server_id`,
    [allocationId],
  );
  await query(
    `insert into protect_series (allocation_id, tenant_id, server_id, address, source_site_id)
     select id, tenant_id, server_id, host(address), 1 from allocations where released_at is null and server_id is not null
     on conflict do nothing`,
  );
}

/** An hour at a time: no statement of the program may take two minutes. */
async function sumTwoDays(client: Client): Promise<void> {
  const query = (text: string, values: unknown[] = []) => client.query(text, values);
  const hour = 'date_bin($$1 hour$$, svc_now(), $$epoch$$)';
  for (let ago = 47; ago >= 0; ago -= 1) {
    const start = `${hour} - interval '${ago} hours'`;
    await query(
      `insert into protect_usage_tens
       select allocation_id, at, (allocation_id * 7919 % 9000 + 1000) * (600 + extract(epoch from at)::bigint / 600 % 40), allocation_id % 700 * 600, 1023, 1023,
         allocation_id * 7919 % 9000 * 60, 1023
       from generate_series(${start}, ${start} + interval '50 minutes', '10 minutes') at, protect_series`,
    );
    await query(
      `insert into protect_usage_hours
       select allocation_id, ${start}, sum(inbound_bytes), sum(outbound_bytes),
         bit_or(inbound_minutes << (extract(epoch from at)::bigint / 600 % 6 * 10)::int),
         bit_or(outbound_minutes << (extract(epoch from at)::bigint / 600 % 6 * 10)::int), sum(packets),
         bit_or(packet_minutes << (extract(epoch from at)::bigint / 600 % 6 * 10)::int)
       from protect_usage_tens where at >= ${start} group by 1`,
    );
    if (ago > 24) continue;
    await query(
      `insert into protect_application_hours
       select allocation_id, ${start}, 'service-' || (allocation_id * 37 + k * k * 13) % ${names} || '.example', 'tcp', 443,
         allocation_id % 90 * 1000 + k, 5000, ${start} + interval '50 minutes'
       from protect_series, generate_series(1, ${applicationsOfHour}) k on conflict do nothing`,
    );
    const few = `server_id in (select id from servers where name = 'server-17' or id % ${Math.max(1, Math.floor(servers / 50))} = 0)`;
    for (const tens of [0, 20, 40])
      await query(
        `insert into protect_minutes (allocation_id, minute, inbound_bytes, outbound_bytes, inbound_bps, outbound_bps, pps, applications)
         select allocation_id, minute, 600000, 60000, 80000, 8000, 90, (select jsonb_agg(jsonb_build_object('name',
             'service-' || (allocation_id * 37 + k * k * 13) % ${names} || '.example', 'transport', 'tcp', 'server_port', 443,
             'inbound_bytes', 1000, 'outbound_bytes', 100)) from generate_series(1, 6) k)
         from generate_series(${start} + interval '${tens} minutes', ${start} + interval '${tens + 19} minutes', '1 minute') minute,
           protect_series where ${ago < 2 ? 'true' : few} on conflict do nothing`,
      );
  }
  await query('set session_replication_role = origin');
}
