/** What happened to servers, on the time axes of the operators' charts. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemActor } from '#operations/accounts/index.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { createScanMonitor } from '#operations/testing/deliver-scans.ts';
import { incidentOf } from '#operations/testing/incident-of.ts';
import { ownerOf, scanOf } from '#operations/testing/scan-of.ts';
import { switchViews } from '#operations/testing/switch-views.ts';

const password = 'a password for tests';
let world: World;
const cookies: Record<string, string> = {};
before(async () => {
  world = await createWorld();
  for (const staffRole of ['operator', 'support'] as const) {
    const email = `${staffRole}@staff.test`;
    await world.accounts.createPerson(systemActor, { email, name: staffRole, password, staffRole });
    cookies[staffRole] = await world.signIn(email);
  }
});
after(() => world[Symbol.asyncDispose]());

interface Flag {
  timeMs: number;
  text: string;
  href: string | null;
}

async function get(path: string, who = 'operator'): Promise<Response> {
  const answer = await fetch(`${world.url}/console/${path}`, {
    headers: { cookie: cookies[who]!, accept: 'text/html' },
    redirect: 'manual',
  });
  assert.equal(answer.status, 200, path);
  return answer;
}
const page = async (path: string, who?: string) => (await get(path, who)).text();
const flagsOf = async (q: string, who?: string) => {
  const path = `traffic/chart.json?range=1h&q=${encodeURIComponent(q)}`;
  return ((await (await get(path, who)).json()) as { flags: Flag[] }).flags;
};
const linked = (flags: readonly Flag[]) => flags.map(({ text, href }) => `${text} ${href}`).sort();

async function deploy(company: string, name: string) {
  const customer = await world.createCustomer(company);
  const { serverId } = await world.deploy(customer.tenant, name);
  await world.backdate(serverId, '3 hours');
  const [of] = await world.addresses.listAllocationsOfServers([serverId]);
  return { customer, serverId, of: of! };
}

test('operators’ flags are of all customers, also with views off, and lead to the console’s pages of servers, attacks and scans', async () => {
  const acorn = await deploy('Acorn', 'web');
  const birch = await deploy('Birch', 'db');
  const { requests } = await world.protectScans.request(ownerOf(acorn.customer), acorn.serverId);
  const asked = requests.find((each) => each.allocationId === acorn.of.id)!;
  const { deliver } = await createScanMonitor(world);
  await deliver(scanOf(acorn.of, { request_id: asked.id }), scanOf(acorn.of));
  await world.deliverIncidents(incidentOf(birch.of.address));
  await switchViews(world, birch.customer, birch.serverId, false);
  await world.servers.changePower(systemActor, null, birch.serverId, { command: 'reboot' });
  await world.jobs.drain();

  const [web, db] = [acorn.serverId, birch.serverId];
  const expected = [
    `web: Deployed /console/servers/${web}`,
    `web: Port scan of ${acorn.of.address} /console/port-scans/?server=${web}`,
    `web: Daily port scan of ${acorn.of.address} null`,
    `db: Deployed /console/servers/${db}`,
    `db: SYN flood /console/attacks/?server=${db}`,
    `db: Protection settings changed /console/servers/${db}`,
    `db: Rebooted /console/servers/${db}`,
  ].sort();
  assert.deepEqual(linked(await flagsOf('')), expected);
  assert.deepEqual(linked(await flagsOf('', 'support')), expected, 'support reads all of it');
  for (const { href } of await flagsOf('')) if (href !== null) await get(href.replace('/console/', ''));
  const ofBirch = expected.filter((text) => text.startsWith('db: ')).map((text) => text.replace('db: ', ''));
  assert.deepEqual(linked(await flagsOf('customer:Birch')), ofBirch, 'one server is not named');

  const list = await page('traffic/?range=1h');
  assert.match(list, /class="chart-flag-list".*web: Deployed.*<\/ul>/s);
  assert.match(await page(`servers/${db}`), /class="chart-flag-list">(?:(?!<\/ul>).)*>Rebooted</s);
  assert.match(
    await page(`servers/${db}`, 'support'),
    /class="chart-flag-list">(?:(?!<\/ul>).)*>SYN flood</s,
  );
});

test('a destroyed server has flags and no page', async () => {
  const { serverId, of } = await deploy('Gone', 'gone');
  await world.deliverIncidents(incidentOf(of.address));
  await world.servers.destroyServer(systemActor, null, serverId);
  await world.jobs.drain();
  const flags = linked(await flagsOf(`server:${serverId}`));
  assert.deepEqual(flags, [
    'Deployed null',
    'Destroyed null',
    `SYN flood /console/attacks/?server=${serverId}`,
  ]);
});

test('of more than ten servers operators see attacks alone, those of the filtered ones, with a sentence about the others', async () => {
  const { tenant } = await world.createCustomer('Crowd');
  const addresses: string[] = [];
  for (let at = 1; at <= 12; at += 1) {
    const { serverId, allocations } = await world.deploy(tenant, `crowd-${at}`);
    await world.backdate(serverId, '3 hours');
    addresses.push(allocations[0]!.address);
  }
  const stranger = await deploy('Stranger', 'stranger');
  await world.deliverIncidents(incidentOf(addresses[0]!), incidentOf(stranger.of.address));
  const texts = async (q: string) => (await flagsOf(q)).map(({ text }) => text).sort();
  assert.deepEqual(await texts('customer:Crowd'), ['crowd-1: SYN flood']);
  const all = await texts('');
  assert.ok(
    all.includes('stranger: SYN flood') && all.every((text) => text.endsWith(': SYN flood')),
    all.join(),
  );
  assert.match(await page('traffic/?range=1h'), /With more than 10 servers only attacks are marked\./);
  assert.deepEqual(await texts(`address:${addresses[0]}`), ['crowd-1: Deployed', 'crowd-1: SYN flood']);
  assert.deepEqual(await texts(`customer:Crowd -address:${addresses[0]}/32 -server:crowd-1`), []);
});
