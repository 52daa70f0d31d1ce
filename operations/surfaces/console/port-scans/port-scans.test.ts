import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemActor } from '#operations/accounts/index.ts';
import { createWorld, password, type World } from '#operations/testing/dated-world.ts';
import { createScanMonitor, type ScanMonitor } from '#operations/testing/deliver-scans.ts';
import { secondsAgo } from '#operations/testing/incident-of.ts';
import { ownerOf, scanOf } from '#operations/testing/scan-of.ts';
import { moveWorldClock } from '#operations/testing/world-time.ts';

let world: World;
let monitor: ScanMonitor;
let support: string;

before(async () => {
  world = await createWorld();
  monitor = await createScanMonitor(world);
  const email = 'support@staff.test';
  await world.accounts.createPerson(systemActor, { email, name: 'support', password, staffRole: 'support' });
  support = await world.signIn(email);
});
after(() => world[Symbol.asyncDispose]());

async function get(query = '', cookie = support): Promise<string> {
  const answer = await fetch(`${world.url}/console/port-scans/${query}`, {
    headers: { accept: 'text/html', cookie },
  });
  return (await answer.text()).replaceAll(/\s+/g, ' ');
}

const textOf = (page: string) => page.replace(/<[^>]+>/g, ' ').replaceAll(/\s+/g, ' ');
/** The rows of the table, as text. */
const rowsOf = (page: string) =>
  [...page.matchAll(/<tr[^>]*> ?<t[dh].*?<\/tr>/g)].map(([row]) => textOf(row).trim()).slice(1);

async function createScanned(name: string) {
  const customer = await world.createCustomer(name);
  const { serverId } = await world.deploy(customer.tenant, `${name.toLowerCase()}-1`);
  await world.backdate(serverId, '1 day');
  const allocations = await world.addresses.listAllocationsOfServers([serverId]);
  const actor = ownerOf(customer);
  const request = async () => (await world.protectScans.request(actor, serverId)).requests;
  return { ...customer, serverId, allocations, first: allocations[0]!, actor, request };
}

test('staff see the scans of all customers: state, who requested, pool, and why a result is partial', async () => {
  assert.match(await get(), /No port scans/);
  const [one, two] = [await createScanned('Alpha'), await createScanned('Beta')];
  const [running, queued] = await one.request();
  await monitor.say(running!.id, 'running', {
    ...{ started_at: secondsAgo(60), heartbeat_at: secondsAgo(5), progress: 40 },
  });
  const key = await world.createKey(two);
  const answer = await fetch(`${world.url}/api/v2/servers/${two.serverId}/port-scans`, {
    ...{ method: 'POST', headers: { authorization: `Bearer ${key}` } },
  });
  const { scans } = (await answer.json()) as { scans: { id: string; address: string }[] };
  const { id } = scans.find(({ address }) => address === two.first.address)!;
  await monitor.deliver(
    scanOf(two.first, { request_id: id, state: 'partial', ports: [22, 80], notes: ['host_pressure'] }),
    scanOf(two.first, { profile: 'common', state: 'partial', ports: [], notes: ['withdrawn'] }),
    scanOf(two.first, { profile: 'common' }),
  );
  const page = await get();
  assert.match(textOf(page), /1 running, 2 queued\./);
  for (const href of [
    `/console/servers/${one.serverId}`,
    `/console/customers/${one.tenant.id}`,
    '/console/port-scans/',
  ])
    assert.ok(page.includes(`href="${href}"`), href);
  const rows = rowsOf(page);
  assert.equal(rows.length, 5, rows.join('\n'));
  const find = (pattern: RegExp) =>
    assert.ok(
      rows.some((row) => pattern.test(row)),
      `${pattern}\n${rows.join('\n')}`,
    );
  find(/alpha-1 .*Alpha .*Requested, all ports customer pool Alpha Owner .*running 40 %/);
  find(new RegExp(`alpha-1 ${queued!.address.replaceAll('.', '\\.')} .*queued`));
  find(/beta-1 .*Beta Owner API key .*partial .*2 open ports; the hypervisor was busy\./);
  find(/beta-1 .*Hourly, 100 ports hourly pool schedule .*partial .*the server stopped or moved\./);
});

test('the list is filtered by state, customer, node and server, and words that say nothing are left out', async () => {
  const [mine, other] = [await createScanned('Gamma'), await createScanned('Delta')];
  const [first] = await mine.request();
  await other.request();
  await monitor.deliver(scanOf(mine.first, { request_id: first!.id, endedSecondsAgo: 1 }));
  const shows = async (query: string, gamma: number, delta: number) => {
    const rows = rowsOf(await get(query));
    const count = (name: string) => rows.filter((row) => row.startsWith(name)).length;
    assert.deepEqual([count('gamma-1'), count('delta-1')], [gamma, delta], query);
  };
  const all = other.allocations.length;
  await shows('?state=complete', 1, 0);
  await shows('?state=queued', all - 1, all);
  await shows('?state=nonsense&customer=', all, all);
  await shows('?customer=gAMM', all, 0);
  await shows(`?tenant=${other.tenant.id}`, 0, all);
  await shows(`?server=${mine.serverId}&state=queued`, all - 1, 0);
  await shows('?customer=%25', 0, 0);
  const { rows } = await world.database.pool.query<{ id: number }>(
    'select n.id from nodes n join servers s on s.cluster_id = n.cluster_id and s.node = n.name where s.id = $1',
    [mine.serverId],
  );
  await shows(`?node=${rows[0]!.id}`, all, all);
  await shows(`?node=${rows[0]!.id + 1000}`, 0, 0);
});

test('NET-2.7.2: a running scan without contact is overdue, not failed; an unstarted one fails after 24 hours', async () => {
  const silent = await createScanned('Silent');
  const [first, ...others] = await silent.request();
  await monitor.say(first!.id, 'running', {
    started_at: secondsAgo(5),
    heartbeat_at: secondsAgo(5),
    progress: 1,
  });
  const states = async (state: string) =>
    rowsOf(await get(`?server=${silent.serverId}&state=${state}`)).length;
  const later = async (interval: string, happens: () => Promise<unknown>) => {
    await moveWorldClock(world.database, interval);
    await happens().finally(() => moveWorldClock(world.database, '0'));
  };
  assert.deepEqual([await states('overdue'), await states('running')], [0, 1]);
  await later('6 minutes', async () => {
    assert.deepEqual([await states('overdue'), await states('running'), await states('failed')], [1, 1, 0]);
    assert.match(textOf(await get(`?server=${silent.serverId}`)), /overdue.*No contact with the sensor/);
    assert.match(await get(), /No monitor fetches/);
  });
  await world.database.pool.query(
    "update scan_requests set expires_at = svc_now() where server_id = $1 and state = 'queued'",
    [silent.serverId],
  );
  assert.deepEqual([await states('queued'), await states('failed')], [0, others.length]);
});

test('more than a page is paged without a gap, also where requests are of the same moment', async () => {
  const many = await createScanned('Many');
  await world.database.pool.query(
    `insert into scan_requests (kind, allocation_id, cluster_id, tenant_id, server_id, address, state, requested_at, finished_at)
     select 'manual', $1, $2, $3, $4, 'n' || n, 'complete',
       svc_now() - interval '1 hour' - (n / 50) * interval '1 microsecond', svc_now() from generate_series(1, 230) n`,
    [many.first.id, many.first.clusterId, many.tenant.id, many.serverId],
  );
  const seen: string[] = [];
  for (let query: string | undefined = `?server=${many.serverId}`; query !== undefined; ) {
    const page = await get(query);
    seen.push(...rowsOf(page).map((row) => /\b(n\d+)\b/.exec(row)![1]!));
    query = /href="\/console\/port-scans\/(\?[^"]*after=[^"]*)"/.exec(page)?.[1]?.replaceAll('&amp;', '&');
    assert.ok(seen.length <= 230, 'a page comes again');
  }
  assert.equal(new Set(seen).size, 230);
});

test('the server of a destroyed address has no link, and a customer has no such page', async () => {
  const gone = await createScanned('Gone');
  await gone.request();
  await world.servers.destroyServer(systemActor, null, gone.serverId);
  await world.jobs.drain();
  const page = await get('?customer=gone');
  assert.ok(rowsOf(page).length > 0 && !page.includes(`href="/console/servers/${gone.serverId}"`));
  const answer = await fetch(`${world.url}/console/port-scans/`, {
    headers: { accept: 'text/html', cookie: await world.signIn(gone.email) },
  });
  assert.equal(answer.status, 404);
});
