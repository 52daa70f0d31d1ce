import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemActor, type Tenant } from '#operations/accounts/index.ts';
import { ensurePlan } from '#operations/catalog/index.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';

let world: World;
before(async () => {
  world = await createWorld();
  const size = { vcpus: 4, memoryMb: 8_192, diskGb: 160 };
  await ensurePlan(world.database.db, {
    ...size,
    slug: 'large',
    name: 'Large',
    hourlyQuanta: 178,
    monthlyCapQuanta: 120_000,
  });
});
after(() => world[Symbol.asyncDispose]());

const path = '/client/servers/new';
const order = { plan: 'small', image: 'debian-12', location: 'fra' };

async function visit(email: string) {
  const cookie = await world.signIn(email);
  const headers = { accept: 'text/html', cookie };
  const read = async (answer: Response) => ({ status: answer.status, text: await answer.text() });
  const get = async (at: string) => read(await fetch(`${world.url}${at}`, { headers, redirect: 'manual' }));
  const token = /name="csrf_token" value="([^"]+)"/.exec((await get('/client/')).text)![1]!;
  const post = async (at: string, fields: Record<string, string>) => {
    const body = new URLSearchParams({ csrf_token: token, ...fields });
    return read(await fetch(`${world.url}${at}`, { method: 'POST', headers, body, redirect: 'manual' }));
  };
  return { get, post };
}

async function createNetwork(tenant: Tenant, name: string, cidr: string): Promise<string> {
  const network = await world.networks.createNetwork(systemActor, { tenantId: tenant.id, name, cidr });
  await world.jobs.drain();
  return String(network.id);
}

const serversOf = (tenant: Tenant) =>
  world.servers.countServers(systemActor, tenant.id, { order: 'newest', limit: 50 });

/** The text of the error that is tied to this control. */
function errorAt(page: string, field: string): string | undefined {
  const control = new RegExp(`<(?:input|select|textarea)[^>]*name="${field}"[^>]*>`).exec(page)?.[0] ?? '';
  if (!control.includes('aria-invalid="true"')) return undefined;
  return new RegExp(`id="field-${field}-error">■ ([^<]+)<`).exec(page)?.[1];
}

test('API-2.4: the deploy form joins one network at a fixed address, without a public one where that is wished', async () => {
  const { email, tenant } = await world.createCustomer('Joining');
  const network = await createNetwork(tenant, 'backend', '10.20.0.0/24');
  const me = await visit(email);
  assert.match((await me.get(path)).text, /<option value="\d+">backend \(10\.20\.0\.0\/24\)<\/option>/);
  assert.match((await me.get(`${path}?network=${network}`)).text, /<option value="\d+" selected>backend/);
  const made = await me.post(path, {
    ...order,
    name: 'db-1',
    network,
    network_ip: '10.20.0.20',
    private_only: 'on',
  });
  assert.equal(made.status, 200);
  assert.match(made.text, /ssh root@10\.20\.0\.20/, 'the way in is its private address');
  await world.jobs.drain();
  const id = Number(/href="\/client\/servers\/(\d+)"/.exec(made.text)![1]);
  const server = (await world.servers.findServer(systemActor, null, id))!;
  assert.deepEqual([server.hasPublicIp, server.addresses], [false, []]);
  assert.deepEqual(
    server.privateNetworks.map((card) => [card.networkId, card.ip, card.state]),
    [[Number(network), '10.20.0.20', 'attached']],
  );
  const both = await me.post(path, { ...order, name: 'web-1', network });
  assert.match(both.text, /ssh root@203\.0\.113\./, 'a public server keeps its public way in');
  assert.match(both.text, />10\.20\.0\.2</, 'and takes the lowest free address of the network');
});

test('API-1.2: what the operation refuses stands at its field, nothing is ordered, and what was typed stays', async () => {
  const { email, tenant } = await world.createCustomer('Refused orders');
  const other = await world.createCustomer('Other owner');
  const network = await createNetwork(tenant, 'mine', '10.21.0.0/24');
  const theirs = await createNetwork(other.tenant, 'network of another', '10.22.0.0/24');
  const me = await visit(email);
  const keyBody = 'AAAAC3NzaC1lZDI1NTE5AAAAIIcvEZ6PfU56tmbpZIWoyu5t5wHpTWVHJabI5CqJAZxo';
  const typed = { ...order, name: 'kept "words"', ssh_key: `ssh-ed25519 ${keyBody} me@home` };
  await me.post(path, { ...order, network, network_ip: '10.21.0.9' });
  const before = await serversOf(tenant);
  const cases: [Record<string, string>, string, RegExp][] = [
    [{ private_only: 'on' }, 'network', /Choose the network through which the server is reached/],
    [{ network_ip: '10.21.0.5' }, 'network_ip', /Choose the network that this address is in/],
    [
      { network, network_ip: '10.99.0.1' },
      'network_ip',
      /Must be an address that servers may have in 10\.21\.0\.0\/24/,
    ],
    [{ network, network_ip: '10.21.0.9' }, 'network_ip', /10\.21\.0\.9 belongs to another server/],
    [{ network: theirs }, 'network', /This workspace has no such network/],
    [{ network: 'x' }, 'network', /This workspace has no such network/],
    [{ name: 'n'.repeat(65) }, 'name', /Must be 1 to 64 characters/],
    [{ ssh_key: '-----BEGIN OPENSSH PRIVATE KEY-----' }, 'ssh_key', /Must be a public key such as/],
  ];
  for (const [fields, field, message] of cases) {
    const refused = await me.post(path, { ...typed, ...fields });
    assert.equal(refused.status, 422, field);
    assert.match(errorAt(refused.text, field) ?? 'no error at the field', message);
    if (fields.name === undefined) assert.match(refused.text, /value="kept &quot;words&quot;"/);
    if (fields.ssh_key === undefined) assert.ok(refused.text.includes(keyBody));
    if (fields.network_ip) assert.ok(refused.text.includes(`value="${fields.network_ip}"`));
    if (fields.private_only) assert.match(refused.text, /name="private_only"[^>]* checked/);
    assert.doesNotMatch(refused.text, /network of another/, 'nothing of another customer is named');
  }
  assert.equal(await serversOf(tenant), before);
});

test('the price is that of the chosen plan, is told without ordering, and is true also where an order would be refused', async () => {
  const { email, tenant } = await world.createCustomer('Counting');
  const me = await visit(email);
  const estimate = (page: string) => /<div id="estimate"[^>]*>(.*?)<\/div>/s.exec(page)?.[1] ?? '';
  assert.match(estimate((await me.get(path)).text), /Small<\/strong> \$0\.0060 an hour.*Due now: nothing/s);
  assert.match(estimate((await me.get(`${path}?plan=large`)).text), /Large<\/strong> \$0\.0178 an hour/);
  const checked = await me.post(`${path}/check`, { ...order, plan: 'large', name: 'typed' });
  assert.equal(checked.status, 200);
  assert.match(estimate(checked.text), /Large<\/strong> \$0\.0178.*Credit after its first day: \$99\.57/s);
  assert.match(checked.text, /value="large"[^>]* checked/);
  assert.match(checked.text, /value="typed"/);
  const faulty = await me.post(`${path}/check`, { ...order, network_ip: '10.0.0.5' });
  assert.match(estimate(faulty.text), /Choose the network that this address is in/);
  assert.match(
    errorAt(faulty.text, 'network_ip') ?? 'none to mark without a network',
    /none|Choose the network/,
  );
  await world.setBalance(tenant, 0);
  assert.match(
    estimate((await me.post(`${path}/check`, order)).text),
    /needs credit above zero or a saved card/,
  );
  await world.saveCard(tenant);
  assert.match(
    estimate((await me.post(`${path}/check`, { ...order, plan: 'large' })).text),
    /Due now: \$12\.00 by your saved card/,
  );
  assert.deepEqual([await serversOf(tenant), await world.billing.balanceOf(systemActor, tenant.id)], [0, 0]);
  const forged = await fetch(`${world.url}${path}/check`, {
    method: 'POST',
    headers: { accept: 'text/html', cookie: await world.signIn(email) },
    body: new URLSearchParams(order),
  });
  assert.equal(forged.status, 403, 'without the form’s token');
});

test('the deploy form makes a server from a snapshot, and begins with the first plan that its disk fits into', async () => {
  const { email, tenant } = await world.createCustomer('Copying');
  const me = await visit(email);
  const none = await me.get(path);
  assert.doesNotMatch(none.text, /name="snapshot"/);
  assert.match(none.text, /value="small" required checked/);
  await me.post(path, { ...order, plan: 'large', name: 'original' });
  await world.jobs.drain();
  const servers = () => world.servers.listServers(systemActor, tenant.id, { order: 'newest', limit: 50 });
  const [original] = await servers();
  await me.post(`/client/servers/${original!.id}/snapshots`, { name: 'golden' });
  await world.jobs.drain();
  const [snapshot] = await world.servers.listSnapshots(systemActor, tenant.id, original!.id);
  const form = (await me.get(`${path}?snapshot=${snapshot!.id}`)).text;
  assert.match(form, /selected>golden of original, 160 GB</);
  assert.match(form, /value="large" required checked/);
  assert.doesNotMatch(form, /Correct the marked fields/);
  const small = await me.post(path, { ...order, snapshot: String(snapshot!.id) });
  assert.deepEqual([small.status, /smaller than that of the snapshot/.test(small.text)], [422, true]);
  const made = await me.post(path, { plan: 'large', snapshot: String(snapshot!.id), name: 'copy' });
  assert.equal(made.status, 200);
  await world.jobs.drain();
  assert.deepEqual(
    (await servers()).map(({ name, provisioningState }) => `${name} ${provisioningState}`),
    ['copy ready', 'original ready'],
  );
});
