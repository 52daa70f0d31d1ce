/**
 * Two customers, one of whom walks the portal: nothing of the other may be on any page. Every statement that a page runs
 * on a table with a tenant filters by it; and where the filter is taken out of a statement, the pages show it.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type Actor, systemActor } from '#operations/accounts/index.ts';
import type { Allocation } from '#operations/addresses/index.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { createScanMonitor } from '#operations/testing/deliver-scans.ts';
import { examplePublicKey } from '#operations/testing/example-public-key.ts';
import { incidentOf } from '#operations/testing/incident-of.ts';
import { plantSql, withoutOwner } from '#operations/testing/planted-sql.ts';
import { projectionOf } from '#operations/testing/projection-of.ts';
import { scanOf } from '#operations/testing/scan-of.ts';
import { visit } from '#operations/testing/visit.ts';
import { worldMinuteMs, worldStartMs } from '#operations/testing/world-time.ts';

const mark = 'zzforeigncustomer';
let world: World;
let monitor: Awaited<ReturnType<typeof createScanMonitor>> | undefined;
let visitor: Awaited<ReturnType<typeof visit>>;
/** Pages of the visitor's own, and the same pages of the other customer. */
let ownPaths: string[];
let foreignPaths: string[];
/** The first look at each of them, and one of later, when nothing is new any more. */
const looks = new Map<string, Look>();
const usual = new Map<string, Seen>();

before(async () => {
  // The pages' clock stands still, so that two looks at a page show the same.
  world = await createWorld({ clockStartMs: worldStartMs + 50_000 });
  const own = await furnish('own', 'Visitor');
  const foreign = await furnish(mark, `${mark} Company`);
  visitor = await visit(world, own.email, '/client/settings/');
  ownPaths = own.paths;
  foreignPaths = foreign.paths;
  for (const path of [...ownPaths, ...foreignPaths]) {
    const statements = new Set<string>();
    using _ = plantSql((text) => {
      statements.add(text);
      return text;
    });
    looks.set(path, { ...(await look(path)), statements });
  }
  for (const path of looks.keys()) usual.set(path, await look(path));
});
after(() => world[Symbol.asyncDispose]());

/** A customer with one of everything that the portal shows, twice as much of it for the other one. */
async function furnish(name: string, company: string) {
  const customer = await world.createCustomer(company);
  const { tenant, owner, email } = customer;
  const network = { tenantId: tenant.id, name: `${name}-network`, cidr: '10.20.0.0/24' };
  const { id: networkId } = await world.networks.createNetwork(systemActor, network);
  await world.jobs.drain();
  const serverIds: number[] = [];
  for (const each of name === mark ? ['a', 'b'] : ['a']) {
    const order = {
      tenantId: tenant.id,
      plan: 'small',
      image: 'debian-12',
      name: `${name}-${each}`,
      networkId,
    };
    serverIds.push((await world.ordering.createServer(systemActor, order)).serverId);
    await world.jobs.drain();
  }
  const [first] = await world.addresses.listAllocationsOfServers(serverIds);
  await world.backdate(serverIds[0]!, '1 day');
  await deliverLive((await world.addresses.listAllocationsOfServers(serverIds))[0]!);
  const incident = incidentOf(first!.address, { class: name === mark ? 'rst_flood' : 'syn_flood' });
  await world.deliverIncidents(incident);
  const actor = (await world.accounts.customerActorOf(owner.id))!;
  const scanId = await deliverScan(actor, serverIds[0]!);
  await deliverFindings(serverIds[0]!);
  const token = await world.createKey(customer);
  const keyId = token.split('_')[1]!;
  const { pool } = world.database;
  await pool.query('update api_keys set name = $2 where key_id = $1', [keyId, `${name}-key`]);
  const calls = name === mark ? 3 : 1;
  for (let call = 0; call < calls; call += 1) await world.metering.countRequest(tenant.id, keyId);
  await world.saveCard(tenant);
  const publicKey = examplePublicKey(name === mark ? 1 : 2);
  await world.sshKeys.addKey(actor, { tenantId: tenant.id, name: `${name}-ssh-key`, publicKey });
  await world.addresses.reserveAddress(actor, { tenantId: tenant.id, name: `${name}-address` });
  await world.billing.addDeposit(systemActor, tenant.id, {
    amountQuanta: calls * 70_000,
    reference: `${name}-deposit`,
    description: `${name} deposit`,
  });
  const { endpointId } = await world.webhooks.createEndpoint(actor, {
    organizationId: tenant.organizationId,
    tenantId: null,
    url: `https://example.com/${name}`,
    description: `${name} endpoint`,
    eventTypes: ['key.created'],
  });
  const [serverId] = serverIds;
  const paths = [
    ...[
      '',
      '/networks',
      '/firewall',
      '/traffic',
      '/traffic?range=live',
      '/traffic?by=app&q=direction:out',
      '/traffic?q=app:other port:443 -transport:udp',
      '/traffic/minutes?range=7d',
      '/traffic/usage?use=month',
      '/traffic/chart.json',
      '/traffic/chart.json?by=port',
      '/traffic/minutes.json',
      '/traffic/minutes.csv',
      '/traffic?format=json&table=application&q=app:other',
      '/traffic?format=csv&table=application',
      '/traffic/live.json',
      '/traffic/live-chart.json',
      '/settings',
      '/protect',
      '/protect?range=live',
      '/protect/live.json',
      '/protect/live-chart.json',
      '/protect/attacks',
      '/protect/chart.json',
      '/protect/minutes.json',
      '/protect/incidents',
      '/protect/incidents?severity=info',
      '/protect/incidents.json',
      '/protect/ports.json',
      `/protect/scans/${scanId}`,
      '/protect/findings',
      '/protect/findings?view=ignored',
      '/protect/findings?view=unable',
      '/protect/findings.json',
      `/protect/findings/${first!.address}/tcp-22`,
      `/protect/findings/${first!.address}/tcp-22/CVE-2024-6387`,
      `/protect/incidents/${incident.id}`,
      '/actions',
    ].map((part) => `/client/servers/${serverId}${part}`),
    `/client/networks/${networkId}`,
    `/client/developer/webhooks/${endpointId}`,
    ...[
      '',
      'servers/new',
      '?format=csv&table=servers',
      'traffic/',
      'traffic/?by=app&range=24h',
      'traffic/?by=direction&q=-server:x port:443',
      'traffic/chart.json?by=port',
      'traffic/?format=json&table=server',
      'traffic/?format=csv&table=application',
      'networks/',
      'addresses/',
      'developer/',
      'developer/usage/',
      'developer/ssh-keys/',
      'developer/webhooks/',
      'billing/',
      'settings/',
    ].flatMap((part) => [`/client/${part}`, `/client/${part}?tenant=${tenant.id}`]),
  ];
  return { ...customer, email, paths };
}

/** Requests a scan of the server, and delivers its result; returns its id. */
async function deliverScan(actor: Actor, serverId: number): Promise<string> {
  const { requests } = await world.protectScans.request(actor, serverId);
  const [allocation] = await world.addresses.listAllocationsOfServers([serverId]);
  const { id } = requests.find((each) => each.allocationId === allocation!.id)!;
  monitor ??= await createScanMonitor(world);
  await monitor.deliver(scanOf(allocation!, { request_id: id }));
  return id;
}

/** From the monitor that delivers the scans. */
async function deliverFindings(serverId: number): Promise<void> {
  const [allocation] = await world.addresses.listAllocationsOfServers([serverId]);
  const { acknowledgements } = await world.protectFindings.receive(monitor!.sender, {
    ...{ contract_version: 1, source_site_id: 1, cluster_ids: [world.clusterId] },
    projections: [projectionOf(allocation!)],
  });
  assert.equal(acknowledgements[0]!.outcome, 'accepted');
}

async function deliverLive({ id, address, assignedAt }: Allocation): Promise<void> {
  const permissions = ['protect_live_ingest'];
  const project = await world.adminProjects.create(systemActor, {
    name: `live ${address}`,
    permissions,
    clusterIds: null,
  });
  const none = { expected_bps: null, expected_pps: null, ddos_bps: null, ddos_pps: null };
  const timestamp = new Date(worldMinuteMs - 60_000).toISOString();
  const rates = { inbound_bps: 8, outbound_bps: 8, pps: 1, coverage: 1, observed_seconds: 10 };
  const { receipts } = await world.protectLive.receive(
    { projectId: project.id, clusterIds: null },
    {
      ...{ contract_version: 1, source_site_id: 1, cluster_ids: [world.clusterId] },
      targets: [{ id, address, assigned_at: assignedAt, series: [{ timestamp, ...rates, ...none }] }],
    },
  );
  assert.equal(receipts[0]!.receipt, 'accepted');
}

interface Seen {
  status: number;
  text: string;
}

interface Look extends Seen {
  /** That the page ran. */
  statements: ReadonlySet<string>;
}

/** What a page says; what differs between two looks at it, such as tokens and ages, is left out. */
async function look(path: string): Promise<Seen> {
  const answer = await visitor.get(path);
  const text = (await answer.text())
    .replaceAll(/value="[^"]{20,}"/g, '')
    .replaceAll(/(datetime|title|data-now|nonce|data-[a-z-]*at|form_id)="[^"]*"/g, '')
    .replaceAll(/req_[0-9A-Z]{26}/g, '')
    .replaceAll(/\d{2}:\d{2}(:\d{2})?( UTC)?/g, '')
    .replaceAll(/\b\d+ (s|min|seconds?|minutes?) ago|just now|now\b/g, '');
  return { status: answer.status, text };
}

test('no page of the portal shows anything of another customer, and their pages are not there', () => {
  for (const [path, { status, text }] of looks) {
    assert.ok(!text.includes(mark), path);
    if (foreignPaths.includes(path) && !path.includes('?') && /\d/.test(path))
      assert.equal(status, 404, path);
    else assert.ok(status < 500, `${path}: ${status}`);
  }
});

/** Statements that are kept to the visitor's own otherwise: by their organization, or by ids that a filtered statement gave. */
const byOwnId = [
  // Workspaces, keys and webhook endpoints of the visitor's organization.
  /^\s*select tenants\.id, tenants\.organization_id/,
  /^\s*select k\.key_id/,
  /^\s*select e\.id, e\.organization_id/,
  // Of a network, an endpoint, keys or workspaces that were found with their filter.
  /from network_attachments a join servers s on s\.id = a\.server_id\s+where a\.network_id/,
  /^\s*select d\.id, d\.endpoint_id/,
  /^\s*select key_id, sum\(count\)/,
  /^\s*select t\.id as "tenantId", t\.status/,
  // A free public address for the forecast of an order: the history of all accounts decides.
  /^\s*with pool as \(select \* from address_pools/,
];

test('every statement of a portal page on a table with tenants filters by the tenant', async () => {
  const { rows } = await world.database.pool.query<{ name: string }>(
    "select table_name as name from information_schema.columns where column_name = 'tenant_id' and table_schema = 'public'",
  );
  const tables = new Set(rows.map(({ name }) => name));
  const unfiltered = new Map<string, string>();
  for (const path of ownPaths)
    for (const text of looks.get(path)!.statements) {
      const reads = [...text.matchAll(/\b(?:from|join)\s+([a-z_]+)/g)].some(([, table]) =>
        tables.has(table!),
      );
      if (/^\s*(select|with)\b/i.test(text) && reads && withoutOwner(text) === text)
        unfiltered.set(text, path);
    }
  const unknown = [...unfiltered].filter(
    ([text]) => !byOwnId.some((known) => known.test(text.replaceAll(/\s+/g, ' '))),
  );
  assert.deepEqual(
    unknown.map(([text, path]) => `${path}: ${text.replaceAll(/\s+/g, ' ').slice(0, 300)}`),
    [],
    'filter by the tenant, or say here why its ids are the visitor’s own',
  );
});

/** Behind another filter of the same page, or such that the first row of all is the visitor's own. */
const secondLines = [
  /from protect_(live_)?series/,
  /from protect_settings/,
  // Of one server, behind its own filtered statement.
  /from audit_entries/,
  /from server_snapshots/,
  // Behind the generations of the server that a filtered statement gave, and these behind the server.
  /from (scan_requests|port_scans|allocations|finding_projections)/,
  /from protect_incidents/,
  /from bandwidth_(days|choices|months)/,
  /from credit_balances/,
  /cross join server_snapshots/,
  /from servers s join server_charges/,
  /from server_orders/,
  /from ledger_entries/,
  /from charges/,
  /from billing_profiles/,
  /left join usage_months/,
  /^\s*select (tenant_id, name, created_at|name, tenant_id)/,
  /^\s*select count\(\*\) as count from servers/,
  // The organization keeps the visitor's own; the workspaces are those of an API key.
  /^\s*select e\.id, e\.organization_id/,
];

test('a statement that loses its tenant shows on a page', async () => {
  /** Statements with a tenant's filter in them, by text, and the pages that run them. */
  const filtered = new Map<string, Set<string>>();
  for (const [path, { statements }] of looks)
    for (const text of statements)
      if (withoutOwner(text) !== text) filtered.set(text, (filtered.get(text) ?? new Set()).add(path));
  assert.ok(filtered.size >= 25, `${filtered.size} statements`);
  const unnoticed: string[] = [];
  for (const [statement, runBy] of filtered) {
    if (secondLines.some((known) => known.test(statement.replaceAll(/\s+/g, ' ')))) continue;
    using _ = plantSql((text) => (text === statement ? withoutOwner(text) : text));
    let isNoticed = false;
    for (const path of runBy) {
      const { status, text } = await look(path);
      const before = usual.get(path)!;
      isNoticed ||= text.includes(mark) || status !== before.status || text !== before.text;
      if (isNoticed) break;
    }
    if (!isNoticed) unnoticed.push(`${[...runBy][0]}: ${statement.replaceAll(/\s+/g, ' ').slice(0, 400)}`);
  }
  assert.deepEqual(unnoticed, []);
});

test('two looks at a page are the same, or the comparison above says nothing', async () => {
  for (const path of ownPaths) assert.deepEqual(await look(path), await look(path), path);
});
