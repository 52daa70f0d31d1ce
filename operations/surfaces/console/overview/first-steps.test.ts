/** A fresh installation: what a new operator is told, and that following it ends with a server that runs. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemActor } from '#operations/accounts/index.ts';
import { createWorld, password, type World } from '#operations/testing/dated-world.ts';

let world: World;
before(async () => {
  world = await createWorld();
  await world.database.pool.query(
    'truncate nodes, address_pools, clusters, locations, images, plans cascade',
  );
  for (const staffRole of ['operator', 'support'] as const)
    await world.accounts.createPerson(systemActor, {
      email: `${staffRole}@staff.test`,
      name: staffRole,
      password,
      staffRole,
    });
});
after(() => world[Symbol.asyncDispose]());

async function visit(email: string) {
  const cookie = await world.signIn(email);
  const page = async (path: string) => {
    const answer = await fetch(`${world.url}${path}`, { headers: { accept: 'text/html', cookie } });
    return answer.text();
  };
  const csrf_token = /name="csrf_token" value="([^"]+)"/.exec(await page('/console/'))![1]!;
  const send = async (path: string, fields: Record<string, string>) => {
    const answer = await fetch(`${world.url}${path}`, {
      method: 'POST',
      headers: { accept: 'text/html', cookie },
      body: new URLSearchParams({ csrf_token, ...fields }),
      redirect: 'manual',
    });
    return { status: answer.status, to: answer.headers.get('location') ?? '', text: await answer.text() };
  };
  return { page, send };
}

const next = (page: string) => /Next: ([^.]+)\./.exec(page)?.[1];

test('the overview leads a new operator step by step to a server that runs, and then is silent about it', async () => {
  const { page, send } = await visit('operator@staff.test');
  const told = async (title: string, fields: [string, Record<string, string>]) => {
    const overview = await page('/console/');
    assert.equal(next(overview), title);
    const states = [...overview.matchAll(/>(done|next|to do)</g)].map(([, state]) => state);
    const at = states.indexOf('next');
    assert.deepEqual(
      states,
      states.map((_, i) => (i < at ? 'done' : i === at ? 'next' : 'to do')),
      title,
    );
    const answer = await send(...fields);
    assert.equal(answer.status, 303, `${title}: ${answer.text.slice(0, 2_000)}`);
    return answer.to;
  };
  assert.match(await page('/console/'), /8 steps are left/);
  assert.match(await page('/console/clusters/'), /Create a location first/);
  await told('create a location', [
    '/console/catalog/locations',
    { slug: 'fra1', name: 'Frankfurt 1', country: 'de' },
  ]);
  const [location] = await world.catalog.listAllLocations();
  assert.equal(location!.country, 'DE');
  await told('create a cluster', [
    '/console/clusters/',
    { name: 'fra1-a', location: String(location!.id), driver: 'simulated' },
  ]);
  const [cluster] = await world.clusters.listClusters();
  const at = `/console/clusters/${cluster!.id}`;
  assert.ok(
    (await page('/console/')).includes(`${at}/nodes/new`),
    'the step leads to the cluster’s own form',
  );
  await told('add a node', [`${at}/nodes`, { name: 'node-1', vcpus: '8', memory_gib: '16', disk_gb: '200' }]);
  const range = { gateway: '198.51.100.1', first: '198.51.100.10', last: '198.51.100.20' };
  await told('add addresses', [`${at}/pools`, { prefix: '198.51.100.0/24', ...range }]);
  const sizes = { vcpus: '1', memory_gib: '0.5', disk_gb: '10', hourly: '0.0060', monthly: '4' };
  await told('create a plan', ['/console/catalog/plans', { slug: 'nano', name: 'Nano', ...sizes }]);
  await told('create an image', [
    '/console/catalog/images',
    { slug: 'debian-13', name: 'Debian 13', family: 'Debian' },
  ]);
  const owner = { email: 'first@customer.test', name: 'First Owner' };
  const to = await told('create a customer', ['/console/customers/', { organization: 'First', ...owner }]);
  const project = await told('connect the monitor', ['/console/projects/', { name: 'Monitor' }]);
  assert.match((await send(`${project}/tokens`, {})).text, /svcadm_/);
  assert.doesNotMatch(await page('/console/'), /First steps/);
  assert.match(await page('/console/'), /All clear; 0 of 0 servers running/);

  const tenantId = Number(/customers\/(\d+)/.exec(to)![1]);
  const person = (await world.accounts.findPersonByEmail(owner.email))!;
  const actor = (await world.accounts.customerActorOf(person.id))!;
  await world.accounts.setBillingProfile(actor, tenantId, {
    legalName: 'First',
    email: owner.email,
    country: 'DE',
  });
  await send(`/console/customers/${tenantId}/credit`, { amount: '10', reference: 'transfer 1' });
  const { serverId } = await world.ordering.createServer(actor, {
    tenantId,
    plan: 'nano',
    image: 'debian-13',
    name: 'first',
  });
  await world.jobs.drain();
  const server = (await world.servers.findServer(actor, tenantId, serverId))!;
  assert.deepEqual([server.powerState, server.addresses[0]!.address], ['running', '198.51.100.10']);
  assert.match(await page('/console/'), /1 of 1 servers running/);
  assert.match(await page('/console/clusters/'), /of its memory is allocated to 1 server\./);
});

test('support is told the same and led to no form', async () => {
  await world.database.pool.query('update plans set is_offered = false');
  const { page } = await visit('support@staff.test');
  const overview = await page('/console/');
  assert.equal(next(overview), 'create a plan');
  assert.doesNotMatch(overview, /href="[^"]*\/new"/);
});

test('what can not be right is refused at its field, and what was typed stays', async () => {
  const { send } = await visit('operator@staff.test');
  const [cluster] = await world.clusters.listClusters();
  const pools = `/console/clusters/${cluster!.id}/pools`;
  const range = { gateway: '192.0.2.1', first: '192.0.2.10', last: '192.0.2.20' };
  const sizes = { vcpus: '1', memory_gib: '1', disk_gb: '10', hourly: '0.01', monthly: '5' };
  const plan = { slug: 'other', name: 'Other', ...sizes };
  const customer = { organization: 'Second', email: 'second@customer.test', name: 'Second', password };
  const refused: [string, Record<string, string>, RegExp][] = [
    [pools, { prefix: '192.0.2.1/24', ...range }, /without host bits/],
    [pools, { prefix: '192.0.2.0/24', ...range, gateway: '192.0.3.1' }, /not inside the network/],
    [pools, { prefix: '192.0.2.0/24', ...range, last: '192.0.2.9' }, /comes before the first/],
    [
      pools,
      { prefix: '198.51.0.0/16', gateway: '198.51.0.1', first: '198.51.0.2', last: '198.51.0.9' },
      /overlaps 198\.51\.100\.0\/24/,
    ],
    [
      '/console/catalog/locations',
      { slug: 'fra1', name: 'Again', country: 'DE' },
      /one of this name already/,
    ],
    ['/console/catalog/locations', { slug: 'Fra 1', name: 'Again', country: 'DE' }, /Lower-case letters/],
    ['/console/catalog/locations', { slug: 'par', name: 'Paris', country: 'France' }, /Two letters/],
    ['/console/catalog/images', { slug: '13', name: 'Digits', family: 'debian' }, /Lower-case letters/],
    ['/console/catalog/plans', { ...plan, hourly: 'free' }, /A price above zero/],
    ['/console/catalog/plans', { ...plan, monthly: '0.001' }, /At least the price of an hour/],
    ['/console/catalog/plans', { ...plan, vcpus: '1.5' }, /whole number above zero/],
    ['/console/catalog/plans', { ...plan, port_mbit: '0' }, /whole number of Mbit\/s above zero, or nothing/],
    ['/console/catalog/plans', { ...plan, port_mbit: 'fast' }, /whole number of Mbit/],
    ['/console/customers/', { ...customer, organization: ' ' }, /must have 1 to 120 characters/],
    ['/console/customers/', { ...customer, email: 'no-address' }, /must look like/],
    ['/console/customers/', { ...customer, email: 'a@x.test,b@x.test' }, /must look like/],
    ['/console/customers/', { ...customer, email: 'support@staff.test' }, /one of our own people/],
  ];
  for (const [path, fields, sentence] of refused) {
    const answer = await send(path, fields);
    assert.equal(answer.status, 422, `${path} ${JSON.stringify(fields)}`);
    assert.match(answer.text, sentence);
    assert.match(answer.text, /class="field-error"/, 'at its field');
    if (fields.name === 'Other') assert.match(answer.text, /value="other"/);
    assert.doesNotMatch(answer.text, new RegExp(`value="${password}"`));
  }
  assert.equal((await world.accounts.listTenants(systemActor)).length, 1, 'no partial customer exists');
  assert.equal(await world.accounts.findPersonByEmail('second@customer.test'), null);
});

test('a plan’s new price is for later orders, a withdrawn one can not be ordered, a used range stays', async () => {
  const { page, send } = await visit('operator@staff.test');
  const [plan] = await world.catalog.listAllPlans(systemActor);
  const at = `/console/catalog/plans/${plan!.id}`;
  const offer = { name: 'Nano', hourly: '0.02', monthly: '12', port_mbit: '500', offered: 'on' };
  // A form can't change the sizes: servers have them.
  assert.equal((await send(at, { ...offer, vcpus: '64', slug: 'mega' })).status, 303);
  const [changed] = await world.catalog.listPlans();
  assert.deepEqual(
    [changed!.hourlyQuanta, changed!.vcpus, changed!.slug, changed!.portMbit],
    [200, 1, 'nano', 500],
  );
  const [server] = await world.servers.listServers(systemActor, null, { order: 'newest', limit: 1 });
  assert.equal(server!.hourlyQuanta, 60, 'ordered at the old price');
  const { offered: _, ...withdrawn } = offer;
  await send(at, withdrawn);
  assert.deepEqual(await world.catalog.listPlans(), []);
  assert.match(await page('/console/catalog/'), /Nothing can be ordered: a plan is missing/);
  assert.match(await page(at), /Withdrawn/);
  await send(at, offer);

  const [pool] = await world.addresses.listPools(systemActor, null);
  assert.deepEqual([pool!.givenCount, pool!.size], [1, 11]);
  const kept = await send(`/console/clusters/pools/${pool!.id}/remove`, {});
  assert.match(await page(kept.to), /Nothing was removed\. Servers have used/);
  const cluster = (await world.clusters.listClusters())[0]!;
  const six = { gateway: '2001:db8::1', first: '2001:db8::10', last: '2001:db8::ffff:ffff:ffff:fff' };
  await send(`/console/clusters/${cluster.id}/pools`, { prefix: '2001:db8::/64', ...six });
  const made = (await world.addresses.listPools(systemActor, null)).find((each) => each.family === 6)!;
  assert.equal(made.size, Number.POSITIVE_INFINITY);
  assert.match(await page('/console/clusters/'), /plenty left/);
  assert.match((await send(`/console/clusters/pools/${made.id}/remove`, {})).to, /done=saved/);
  assert.equal((await world.addresses.listPools(systemActor, null)).length, 1);
  assert.equal((await send(`/console/clusters/pools/${made.id}/remove`, {})).status, 404);
});
