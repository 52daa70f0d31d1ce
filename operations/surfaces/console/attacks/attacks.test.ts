import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemActor } from '#operations/accounts/index.ts';
import { createWorld, password, type World } from '#operations/testing/dated-world.ts';
import { incidentOf, recovered, secondsAgo } from '#operations/testing/incident-of.ts';

let world: World;
let support: string;

before(async () => {
  world = await createWorld();
  const email = 'support@staff.test';
  await world.accounts.createPerson(systemActor, { email, name: 'support', password, staffRole: 'support' });
  support = await world.signIn(email);
});
after(() => world[Symbol.asyncDispose]());

async function get(path: string, cookie = support): Promise<string> {
  const answer = await fetch(`${world.url}${path}`, { headers: { accept: 'text/html', cookie } });
  return (await answer.text()).replaceAll(/\s+/g, ' ').replaceAll(/name="csrf_token" value="[^"]*"/g, '');
}

async function createServer(name: string) {
  const customer = await world.createCustomer(name);
  const { serverId } = await world.deploy(customer.tenant, `${name.toLowerCase()}-1`);
  await world.backdate(serverId, '1 day');
  const [first] = await world.addresses.listAllocationsOfServers([serverId]);
  return { ...customer, serverId, address: first!.address };
}

test('staff see the attacks of all customers with state, class and peak, filter them, and reach customer and server', async () => {
  assert.match(await get('/console/attacks/'), /No attacks/);
  assert.doesNotMatch(await get('/console/'), /attacks? (is|are) active/);
  const [one, two] = [await createServer('Alpha'), await createServer('Beta')];
  const flood = incidentOf(one.address);
  const ended = incidentOf(two.address, { class: 'udp_flood' });
  await world.deliverIncidents(flood, ended, recovered(ended), incidentOf(two.address, { drill: true }));
  const all = await get('/console/attacks/');
  assert.match(all, /1 attack on 1 server now/);
  for (const part of [
    `href="/console/servers/${one.serverId}"`,
    `href="/console/customers/${one.tenant.id}"`,
    'alpha-1',
    'beta-1',
    '31,000',
    'drill',
  ])
    assert.ok(all.includes(part), part);
  const open = await get('/console/attacks/?state=open&class=syn_flood');
  assert.ok(open.includes('alpha-1') && !/UDP flood<\/td>/.test(open), 'state');
  const udp = await get('/console/attacks/?class=udp_flood');
  assert.ok(udp.includes('beta-1') && !udp.includes('alpha-1'), 'class');
  const recoveredOnly = await get('/console/attacks/?state=recovered');
  assert.ok(recoveredOnly.includes('beta-1') && !recoveredOnly.includes('alpha-1'), 'recovered');
  const ofServer = await get(`/console/attacks/?server=${one.serverId}&state=nonsense`);
  assert.ok(ofServer.includes('alpha-1') && !ofServer.includes('beta-1'), 'server');
  assert.match(await get('/console/'), /One attack is active/);
});

test('an incident of a destroyed server is not one that goes on', async () => {
  const gone = await createServer('Gone');
  await world.deliverIncidents(incidentOf(gone.address));
  await world.servers.destroyServer(systemActor, null, gone.serverId);
  await world.jobs.drain();
  assert.doesNotMatch(await get('/console/attacks/?state=open'), /gone-1/);
  assert.match(await get('/console/attacks/'), /gone-1.*server destroyed/);
});

test('NET-2.9: the page of a project counts applied, unmatched, conflicting and terminal incidents and names the newest', async () => {
  const server = await createServer('Counted');
  const { id } = await world.adminProjects.create(systemActor, {
    name: 'Counting monitor',
    permissions: ['ddos_incident_ingest'],
    clusterIds: null,
  });
  const deliver = (...incidents: ReturnType<typeof incidentOf>[]) =>
    world.protectIncidents.receive(
      { projectId: id, clusterIds: null },
      { contract_version: 1, source_site_id: 4, cluster_ids: [world.clusterId], incidents },
    );
  assert.doesNotMatch(await get(`/console/projects/${id}`), /Identity conflicts/);
  const bound = incidentOf(server.address);
  const stranger = incidentOf('203.0.113.249');
  await deliver(bound, stranger, stranger, incidentOf('203.0.113.248'));
  await deliver({ ...bound, revision: 2, target: { kind: 'host', value: '203.0.113.247' } });
  const page = await get(`/console/projects/${id}`);
  const figure = (label: string) =>
    new RegExp(`<dt>${label}</dt><dd><span class="figure">([^<]+)`).exec(page)?.[1];
  assert.deepEqual(['Applied', 'Unmatched', 'Identity conflicts', 'Terminal'].map(figure), [
    '1',
    '2',
    '1',
    '0',
  ]);
  assert.match(page, /203\.0\.113\.249/);
  await deliver({ ...bound, revision: 3 });
  assert.match(
    await get(`/console/projects/${id}`),
    /<dt>Identity conflicts<\/dt><dd><span class="figure">0/,
  );
});

test('NET-3.2: attacks of a silent monitor are not said to go on', async () => {
  await using silent = await createWorld();
  const customer = await silent.createCustomer('Unheard');
  const { serverId } = await silent.deploy(customer.tenant, 'unheard-1');
  await silent.backdate(serverId, '1 day');
  const [first] = await silent.addresses.listAllocationsOfServers([serverId]);
  await silent.deliverIncidents(
    incidentOf(first!.address, { started_at: secondsAgo(500), last_observed_at: secondsAgo(91) }),
  );
  const staff = { email: 'unheard@staff.test', name: 'support', password, staffRole: 'support' } as const;
  await silent.accounts.createPerson(systemActor, staff);
  const cookie = await silent.signIn(staff.email);
  const read = async (path: string) =>
    (
      await (await fetch(`${silent.url}${path}`, { headers: { accept: 'text/html', cookie } })).text()
    ).replaceAll(/\s+/g, ' ');
  const list = await read('/console/attacks/?state=stale');
  assert.match(list, /No recent data on 1 attack\./);
  assert.match(list, /unheard-1/);
  const overview = await read('/console/');
  assert.match(overview, /No recent data on one attack/);
  assert.doesNotMatch(overview, /attacks? (is|are) active/);
});

test('a customer sees no list of attacks', async () => {
  const { email } = await world.createCustomer('Curious');
  const answer = await fetch(`${world.url}/console/attacks/`, {
    headers: { accept: 'text/html', cookie: await world.signIn(email) },
  });
  assert.equal(answer.status, 404);
});
