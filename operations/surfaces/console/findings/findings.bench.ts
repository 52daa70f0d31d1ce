/**
 * What the pages of potential vulnerabilities cost with 500,000 findings of 10,000 servers of 500 customers: by HTTP, as a person
 * asks, one page at a time, from the request to the last byte. Every count that a page shows is compared with a recount of
 * the findings. Processor time is that of server and caller together, without PostgreSQL.
 */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { loadavg } from 'node:os';
import { systemActor } from '#operations/accounts/index.ts';
import { createWorld, password, type World } from '#operations/testing/create-world.ts';
import { createFindingMonitor, projectionOf } from '#operations/testing/projection-of.ts';
import type { FindingListQuery } from '#operations/views/finding-store.ts';
import { moveDatabaseClock } from '#service-kit/testing/index.ts';

export const name = 'finding-pages';

const servers = 10_000;
const tenants = 500;
const rounds = 60;

type Filter = Omit<FindingListQuery, 'after' | 'limit'>;

export async function run(report: (line: string) => void): Promise<void> {
  const world = await createWorld();
  try {
    await measurePages(world, report);
  } finally {
    // Not as a test's world ends, which looks for secrets in every row.
    await world.database.drop();
  }
}

async function measurePages(world: World, report: (line: string) => void): Promise<void> {
  const { customer, serverId } = await fill(world);
  const email = 'support@staff.test';
  await world.accounts.createPerson(systemActor, { email, name: 'support', password, staffRole: 'support' });
  const [staff, owner] = [await world.signIn(email), await world.signIn(customer.email)];
  const { rows } = await world.database.pool.query<{ id: number }>(
    "select id from tenants where name = 'Customer 250'",
  );
  const few = rows[0]!.id;
  const lists: readonly [what: string, filter: Filter, isDeep?: boolean][] = [
    ['all', {}],
    ['all, page 40', {}, true],
    ['active', { state: 'active' }],
    ['ignored', { state: 'ignored' }],
    ['ignored, page 10', { state: 'ignored' }, true],
    ['critical', { severities: ['critical'] }],
    ['low', { severities: ['low'] }],
    ['one CVE', { cveId: 'CVE-2024-9999' }],
    ['a CVE of few servers', { cveId: 'CVE-2024-10030' }],
    ['one CVE, page 20', { cveId: 'CVE-2024-9999' }, true],
    ['customers of a name', { customer: 'customer 25' }],
    ['all customers by a name', { customer: 'customer' }],
    ['no customer of a name', { customer: 'nothing' }],
    ['the largest customer', { customer: 'largest' }],
    ['a customer with low ones only', { customer: 'late' }],
    ['a customer, high', { customer: 'customer 25', severities: ['high'] }],
    ['a customer', { tenantId: few }],
    ['a server', { serverId }],
  ];
  const shown = await readShown(world);
  report(
    `${shown.length} findings are shown, ${shown.filter(({ isIgnored }) => isIgnored).length} of them ignored`,
  );
  const urls: [what: string, url: string, cookie: string][] = [];
  for (const [what, filter] of lists) await recount(world, what, filter, shown);
  for (const [what, filter, isDeep = false] of lists) {
    let url = urlOf(filter);
    for (let page = 1; isDeep && page < pageOf(what); page += 1)
      url = nextOf(await get(world.url + url, staff));
    urls.push([`console: ${what}`, url, staff]);
  }
  const protect = `/client/servers/${serverId}/protect`;
  urls.push(
    ...[
      ['a server', protect] as const,
      ['its findings', `${protect}/findings`] as const,
      ['its ignored ones', `${protect}/findings?view=ignored`] as const,
      ['for programs', `${protect}/findings.json`] as const,
      ['list of servers', '/client/'] as const,
    ].map(([what, url]): [string, string, string] => [`customer: ${what}`, url, owner]),
  );
  for (const [what, url, cookie] of urls) await measure(report, what, world.url + url, cookie);
  report(`load ${loadavg()[0]!.toFixed(2)}`);
}

const pageOf = (what: string) => Number(/page (\d+)/.exec(what)![1]);

function urlOf({ state, severities, cveId, customer, tenantId, serverId }: Filter): string {
  const given = {
    state,
    severity: severities?.[0],
    cve: cveId,
    customer,
    tenant: tenantId,
    server: serverId,
  };
  const query = Object.entries(given).flatMap(([key, value]): [string, string][] =>
    value === undefined ? [] : [[key, String(value)]],
  );
  return `/console/findings/?${new URLSearchParams(query)}`;
}

async function get(url: string, cookie: string): Promise<string> {
  const answer = await fetch(url, { headers: { accept: 'text/html', cookie } });
  const text = await answer.text();
  if (answer.status !== 200) throw new Error(`${url} was a ${answer.status}`);
  return text;
}

function nextOf(page: string): string {
  const found = /href="(\/console\/findings\/\?[^"]*after=[^"]*)"/.exec(page)?.[1];
  if (found === undefined) throw new Error('there is no next page');
  return found.replaceAll('&amp;', '&');
}

async function measure(
  report: (line: string) => void,
  what: string,
  url: string,
  cookie: string,
): Promise<void> {
  const took: number[] = [];
  let bytes = 0;
  let cpu = process.cpuUsage();
  for (let round = -5; round < rounds; round += 1) {
    if (round === 0) cpu = process.cpuUsage();
    const began = performance.now();
    const page = await get(url, cookie);
    if (round >= 0) took.push(performance.now() - began);
    bytes = Buffer.byteLength(page);
  }
  const { user, system } = process.cpuUsage(cpu);
  took.sort((a, b) => a - b);
  const [best, median, p95] = [0, 0.5, 0.95].map((part) => took[Math.floor(took.length * part)]!.toFixed(1));
  const cost = ((user + system) / 1_000 / rounds).toFixed(1);
  report(
    `${what.padEnd(40)} best ${best} ms, median ${median} ms, 95th percentile ${p95} ms, ${cost} ms of processor time, ${Math.round(bytes / 1024)} KiB`,
  );
}

interface Shown {
  severity: string | null;
  isKnownExploited: boolean;
  serverId: number;
  tenantId: number;
  customer: string;
  cveId: string;
  isIgnored: boolean;
}

/** Every finding that is shown. */
async function readShown(world: World): Promise<Shown[]> {
  const { rows } = await world.database.pool.query<Shown>(
    `select f.severity, f.is_known_exploited as "isKnownExploited", p.server_id as "serverId", p.tenant_id as "tenantId",
       lower(t.name) as customer, f.cve_id as "cveId", i.id is not null as "isIgnored"
     from findings f join finding_services s on (s.allocation_id, s.transport, s.port) = (f.allocation_id, f.transport, f.port)
     join finding_projections p on p.allocation_id = f.allocation_id join allocations a on a.id = f.allocation_id
     join tenants t on t.id = p.tenant_id
     left join finding_ignores i on (i.allocation_id, i.transport, i.port, i.fingerprint, i.cve_id)
       = (f.allocation_id, f.transport, f.port, f.fingerprint, f.cve_id) and i.ended_at is null and coalesce(i.until > svc_now(), true)
     where not f.is_upstream and a.released_at is null and s.observed_at > svc_now() - interval '7 days'`,
  );
  return rows;
}

/** The counts of a filter are those of the findings, one by one. */
async function recount(world: World, what: string, filter: Filter, shown: readonly Shown[]): Promise<void> {
  const { state: _, ...of } = filter;
  const totals = await world.protectFindings.totalAll(systemActor, of);
  const listed = shown.filter(
    (row) =>
      (of.severities?.includes((row.severity ?? 'unrated') as 'high') ?? true) &&
      (of.cveId === undefined || row.cveId === of.cveId) &&
      (of.tenantId === undefined || row.tenantId === of.tenantId) &&
      (of.serverId === undefined || row.serverId === of.serverId) &&
      (of.customer === undefined || row.customer.includes(of.customer)),
  );
  const active = listed.filter(({ isIgnored }) => !isIgnored);
  const ofSeverity = (name: string | null) => active.filter(({ severity }) => severity === name).length;
  const { unable: __, checkedAt: ___, databaseAt: ____, ...counts } = totals;
  assert.deepEqual(
    counts,
    {
      ...{ active: active.length, ignored: listed.length - active.length },
      ...{ critical: ofSeverity('critical'), high: ofSeverity('high'), medium: ofSeverity('medium') },
      ...{ low: ofSeverity('low'), none: ofSeverity('none'), unrated: ofSeverity(null) },
      knownExploited: active.filter(({ isKnownExploited }) => isKnownExploited).length,
      servers: new Set(active.map(({ serverId }) => serverId)).size,
    },
    `counts of: ${what}`,
  );
}

/**
 * The largest customer has every fifth server. Every hundredth server belongs to one whose findings are all of low severity, at
 * the end of every list. One finding in fifty is ignored; evidence of every 500th server has expired.
 */
async function fill(world: World) {
  const customer = await world.createCustomer('Largest');
  const late = await world.createCustomer('Late');
  const { serverId } = await world.deploy(customer.tenant, 'first');
  await world.backdate(serverId, '2 days');
  const [first] = await world.addresses.listAllocationsOfServers([serverId]);
  await (await createFindingMonitor(world)).deliver(projectionOf(first!, { services: [] }));
  const client = await world.database.pool.connect();
  const query = (text: string, values: unknown[] = []) => client.query(text, values);
  // Only copies of what exists: what they refer to is not looked at.
  await query('set session_replication_role = replica');
  await query(
    `insert into tenants (organization_id, name, slug) select organization_id, 'Customer ' || n, 'customer-' || n
     from tenants, generate_series(1, $2::int) n where id = $1`,
    [customer.tenant.id, tenants],
  );
  await query(
    `insert into servers (tenant_id, order_id, plan_id, image_id, cluster_id, node, name, hostname, provisioning_state,
       power_state, hourly_quanta, monthly_cap_quanta, provisioned_at)
     select case when n % 100 = 0 then $2 when n % 5 = 0 then s.tenant_id
         else (select min(id) from tenants where name = 'Customer 1') + n % $4::int end,
       1000000 + n, s.plan_id, s.image_id, s.cluster_id, s.node, 'server-' || n, 'server-' || n, s.provisioning_state,
       s.power_state, s.hourly_quanta, s.monthly_cap_quanta, s.provisioned_at
     from servers s, generate_series(1, $3::int) n where s.id = $1`,
    [serverId, late.tenant.id, servers - 1, tenants],
  );
  await query(
    `insert into allocations (pool_id, cluster_id, tenant_id, server_id, address, prefix_length, gateway, is_primary, assigned_at)
     select a.pool_id, a.cluster_id, s.tenant_id, s.id, '100.64.0.0'::inet + s.id, a.prefix_length, a.gateway, true, a.assigned_at
     from allocations a, servers s where a.id = $1 and s.id <> a.server_id`,
    [first!.id],
  );
  await query(
    `insert into finding_projections (allocation_id, tenant_id, server_id, address, project_id, source_site_id, scan_id,
       checked_at, database_at)
     select a.id, a.tenant_id, a.server_id, host(a.address), p.project_id, p.source_site_id, p.scan_id, p.checked_at, p.database_at
     from allocations a, finding_projections p where p.allocation_id = $1 and a.server_id <> $2 and a.released_at is null`,
    [first!.id, serverId],
  );
  await query(
    `insert into finding_services (allocation_id, transport, port, scan_id, observed_at, fingerprint, product, version, reason)
     select p.allocation_id, 'tcp', 1000 + n, p.scan_id, svc_now() - interval '1 hour', md5(n::text) || md5(n::text), 'Product ' || n, '1.' || n % 7,
       case when n > 8 then 'unknown_product' end
     from finding_projections p, generate_series(1, 10) n`,
  );
  // Servers run the same versions, so they have the same records, one of them all; the scores of the records spread.
  await query(
    `insert into findings (allocation_id, transport, port, cve_id, fingerprint, is_upstream, severity, score, summary,
       published_at, modified_at, is_disputed, is_known_exploited)
     select s.allocation_id, s.transport, s.port, x.cve, s.fingerprint, false, x.severity, x.score,
       repeat('A crafted request does what it should not. ', 6), svc_now(), svc_now(), false,
       p.tenant_id <> $1 and x.n % 97 = 0
     from finding_services s join finding_projections p using (allocation_id), generate_series(0, 6) k, lateral (
       select (p.server_id % 40 * 56 + (s.port - 1001) * 7 + k) as n) y, lateral (
       select y.n, case when s.port = 1008 then 'CVE-2024-9999' else 'CVE-2024-' || (10000 + y.n) end as cve,
         case when p.tenant_id = $1 or y.n % 10 > 7 then 'low' when y.n % 10 = 0 then 'critical' when y.n % 10 < 4 then 'high'
           else 'medium' end as severity,
         case when p.tenant_id = $1 then 2 when y.n % 10 > 7 then 3 when y.n % 10 = 0 then 9 + y.n % 10 / 10.0
           when y.n % 10 < 4 then 7 + y.n % 20 / 10.0 else 4 + y.n % 30 / 10.0 end as score) x
     where s.reason is null and (s.port < 1008 or k < 1)`,
    [late.tenant.id],
  );
  await query(
    `insert into known_findings (server_id, tenant_id, transport, port, fingerprint, cve_id, severity_rank)
     select p.server_id, p.tenant_id, f.transport, f.port, f.fingerprint, f.cve_id, 1
     from findings f join finding_projections p using (allocation_id)`,
  );
  await query(
    `insert into finding_ignores (tenant_id, server_id, allocation_id, transport, port, fingerprint, cve_id, reason, until)
     select p.tenant_id, p.server_id, f.allocation_id, f.transport, f.port, f.fingerprint, f.cve_id, 'not loaded',
       case when p.server_id % 3 = 0 then svc_now() + interval '90 days' end
     from findings f join finding_projections p using (allocation_id)
     where (p.server_id * 7 + f.port + right(f.cve_id, 4)::int) % 50 = 0`,
  );
  await query('set session_replication_role = origin');
  client.release();
  await world.database.pool.query('vacuum analyze');
  await world.database.pool.query('delete from finding_counts');
  await world.database.pool.query(await statementOfMigration());
  await expire(world);
  await world.database.pool.query('vacuum analyze');
  // Tests keep plans of small tables; the program plans each statement for its values.
  world.database.pool.on('connect', (client) => void client.query('set plan_cache_mode = force_custom_plan'));
  await moveDatabaseClock(world.database, '0');
  return { customer, serverId };
}

/** As time does it: evidence of every 500th server is a week old, and the counts with it hold no more. */
async function expire({ database }: World): Promise<void> {
  const of = 'from finding_projections p where p.server_id % 500 = 1 and p.allocation_id';
  await database.pool.query(`
    update finding_services s set observed_at = s.observed_at - interval '8 days' ${of} = s.allocation_id;
    update finding_counts c set valid_until = c.valid_until - interval '8 days' ${of} = c.allocation_id`);
}

/** How the migration counts what was there before it. */
async function statementOfMigration(): Promise<string> {
  const file = new URL('../../../migrations/0226-count-findings.sql', import.meta.url);
  const [statement] = /insert into finding_counts[^;]*;/.exec(await readFile(file, 'utf8'))!;
  return statement;
}
