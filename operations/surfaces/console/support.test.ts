/** Support reads everything and changes nothing: every page, and the operations behind the forms. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { hasCode } from '#common/errors/index.ts';
import { type StaffActor, systemActor } from '#operations/accounts/index.ts';
import { createWorld, password, type World } from '#operations/testing/dated-world.ts';

let world: World;
let support: string;
let operator: string;
let actor: StaffActor;
/** Values of path variables by the words before them. */
let ids: Record<string, string>;

before(async () => {
  world = await createWorld();
  for (const role of ['operator', 'support'] as const)
    await world.accounts.createPerson(systemActor, {
      email: `${role}@staff.test`,
      name: role,
      password,
      staffRole: role,
    });
  support = await world.signIn('support@staff.test');
  operator = await world.signIn('operator@staff.test');
  const person = await world.accounts.findPersonByEmail('support@staff.test');
  actor = (await world.accounts.staffActorOf(person!.id))!;
  const { tenant } = await world.createCustomer('Untouched');
  const { serverId } = await world.deploy(tenant, 'untouched');
  const project = await world.adminProjects.create(systemActor, {
    name: 'Untouched',
    permissions: ['vm_inventory_read'],
    clusterIds: null,
  });
  const [node] = await world.clusters.listNodes(systemActor, null);
  const [pool] = await world.addresses.listPools(systemActor, null);
  const [plan] = await world.catalog.listPlans();
  const [image] = await world.catalog.listImages();
  const [location] = await world.catalog.listLocations();
  ids = {
    customers: String(tenant.id),
    accounts: String(tenant.id),
    servers: String(serverId),
    projects: String(project.id),
    clusters: String(world.clusterId),
    nodes: String(node!.id),
    pools: String(pool!.id),
    plans: String(plan!.id),
    images: String(image!.id),
    locations: String(location!.id),
  };
});
after(() => world[Symbol.asyncDispose]());

const get = (path: string, cookie: string) =>
  fetch(`${world.url}${path}`, { headers: { cookie, accept: 'text/html' }, redirect: 'manual' });

const pathOf = (url: string) =>
  url.replace(/\/([a-z-]+)\/:\w+/g, (_, word: string) => `/${word}/${ids[word]}`);

test('every page that operators read, support reads too, without a form to send', async () => {
  const forOperatorsAlone: string[] = [];
  for (const { method, url } of world.routes) {
    if (method !== 'GET' || !url.startsWith('/console') || url.startsWith('/console/account/')) continue;
    const page = await get(pathOf(url), support);
    const text = await page.text();
    const own = await get(pathOf(url), operator);
    await own.arrayBuffer();
    assert.equal(own.status, 200, url);
    if (page.status === 404) {
      forOperatorsAlone.push(url);
      continue;
    }
    assert.equal(page.status, 200, url);
    // Data for a page's script are no page.
    if (page.headers.get('content-type')?.startsWith('application/json')) continue;
    const forms = [...text.matchAll(/<form[^>]*method="post"[^>]*action="([^"]+)"/g)].map((form) => form[1]);
    assert.deepEqual(forms, ['/sign-out'], url);
    assert.doesNotMatch(text, /href="[^"]*\/new"/, `${url} leads to a form`);
  }
  // Pages that are a form and nothing else.
  assert.ok(
    forOperatorsAlone.every((url) => /\/new$|^\/console\/catalog\/\w+\/:id$/.test(url)),
    forOperatorsAlone.join(' '),
  );
});

/** Routes that every role may call, and those for a person's own account. */
const reading =
  /^(find|list|search|count|read|sum|balance|access|usage|fleet|tenantsOf|last|members|billingProfileOf|customerActorOf|staffActorOf|remaining|forecast|describe|is|has|lock)/;
const withoutActor: Readonly<Record<string, readonly string[]>> = {
  accounts: ['signIn', 'noteOwn', 'acceptInvitation', 'changePassword'],
  adminProjects: ['verify'],
};

test('the operations themselves refuse support, whichever door is left open', async () => {
  const features = ['accounts', 'addresses', 'adminProjects', 'billing', 'catalog', 'clusters'] as const;
  let tried = 0;
  for (const feature of features) {
    for (const [name, method] of Object.entries(world[feature] as unknown as Record<string, unknown>)) {
      if (typeof method !== 'function' || reading.test(name) || withoutActor[feature]?.includes(name))
        continue;
      const call = method as (...given: unknown[]) => Promise<unknown>;
      await assert.rejects(
        async () => call(actor, Number(ids.customers), 1, {}),
        (error) => hasCode(error, 'accounts.forbidden'),
        `${feature}.${name}`,
      );
      tried += 1;
    }
  }
  assert.ok(tried >= 25, `only ${tried} operations`);
  const [tenantId, serverId] = [Number(ids.customers), Number(ids.servers)];
  const { servers, ordering, payments } = world;
  const calls: Record<string, () => Promise<unknown>> = {
    changePower: () => servers.changePower(actor, null, serverId, { command: 'stop' }),
    destroyServer: () => servers.destroyServer(actor, null, serverId),
    describeServer: () => servers.describeServer(actor, null, serverId, { name: 'changed' }),
    createServer: () => ordering.createServer(actor, { tenantId, plan: 'small', image: 'debian-12' }),
    retryProvisioning: () => servers.retryProvisioning(actor, serverId),
    resolveProvisioning: () => servers.resolveProvisioning(actor, serverId, 'remove'),
    retryReconciliation: () => payments.retryReconciliation(actor, 1),
    addCredit: () => payments.addCredit(actor, tenantId, { amountQuanta: 100_000, formId: 'support' }),
    removeCard: () => payments.removeCard(actor, tenantId, 1),
    makeCardDefault: () => payments.makeCardDefault(actor, tenantId, 1),
  };
  for (const [name, call] of Object.entries(calls))
    await assert.rejects(call, (error) => hasCode(error, 'accounts.forbidden'), name);
});
