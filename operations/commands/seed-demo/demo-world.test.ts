import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { systemClock } from '#common/clock/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import { systemActor } from '#operations/accounts/index.ts';
import { createTestDatabase } from '#service-kit/testing/index.ts';
import { compose } from '../../composition.ts';
import { readOperationsSettings } from '../../config.ts';
import { createDemoWorld } from './index.ts';

/** One start of the demo world; what its file says afterwards. */
async function seedDemo(features: Awaited<ReturnType<typeof compose>>, dir: string) {
  await createDemoWorld({ features, reporter: silentReporter, clock: systemClock, dir }).start();
  return JSON.parse(await readFile(join(dir, 'demo.json'), 'utf8'));
}

test('the demo world is made once, kept by later starts, and made of new keys when its file is gone', async () => {
  await using database = await createTestDatabase('operations');
  const folder = await mkdtemp(join(tmpdir(), 'svc-demo-world-'));
  const part = { ...database, name: 'database', start: async () => {}, stop: async () => {} };
  const settings = readOperationsSettings({ SVC_DATA_DIR: folder });
  const features = await compose(settings, { database: part, reporter: silentReporter });
  const worker = features.background.workers[0]!;
  await worker.start();
  const dir = join(folder, 'operations');
  const seed = () => seedDemo(features, dir);

  const first = await seed();
  assert.equal((await stat(join(dir, 'demo.json'))).mode & 0o777, 0o600);
  const full = await features.apiKeys.verifyKey(first.full_key);
  const read = await features.apiKeys.verifyKey(first.read_key);
  assert.deepEqual([full?.scope, read?.scope], ['full', 'read']);
  assert.deepEqual([full?.tenants[0]?.id, read?.tenants[0]?.id], [first.tenant_id, first.tenant_id]);
  const other = await features.apiKeys.verifyKey(first.other_full_key);
  assert.equal(other?.tenants[0]?.id, first.other_tenant_id);
  assert.notEqual(other?.organizationId, full?.organizationId);
  for (const who of ['customer', 'customer_member', 'operator', 'support', 'other_customer'])
    assert.ok(await features.accounts.signIn(first[who].email, first[who].password), who);
  const running = { order: 'oldest', limit: 10, statuses: ['running'] } as const;
  assert.equal((await features.servers.listServers(systemActor, first.tenant_id, running)).length, 1);

  const [project] = await features.adminProjects.list(systemActor);
  const { name, clusterIds, permissions } = project!;
  assert.ok(permissions.includes('ddos_incident_ingest'));
  const earlier = { name, clusterIds, permissions: ['vm_inventory_read'] };
  await features.adminProjects.update(systemActor, project!.id, earlier);
  assert.deepEqual(await seed(), first, 'a later start keeps the file');
  const [upgraded] = await features.adminProjects.list(systemActor);
  assert.deepEqual(upgraded!.permissions, permissions, 'a later version may deliver more');
  await rm(join(dir, 'demo.json'));
  const second = await seed();
  assert.equal(await features.apiKeys.verifyKey(first.full_key), null, 'the old key is revoked');
  assert.ok(await features.apiKeys.verifyKey(second.full_key));
  assert.equal(second.tenant_id, first.tenant_id);
  assert.equal((await features.servers.listServers(systemActor, first.tenant_id, running)).length, 1);
  await worker.stop();
  await rm(folder, { recursive: true });
});

test('customers’ servers at the simulated site are ordered once, with the addresses and the past that its traffic has', async () => {
  await using database = await createTestDatabase('operations');
  const folder = await mkdtemp(join(tmpdir(), 'svc-demo-world-'));
  const servers = [
    { name: 'shop-1', email: 'customer@demo.example', address: '192.0.2.10', mac: '52:54:00:00:00:10' },
    { name: 'mail-1', email: 'customer@demo.example', address: '192.0.2.11', mac: '52:54:00:00:00:11' },
    { name: 'blog-1', email: 'other@demo.example', address: '192.0.2.12', mac: '52:54:00:00:00:12' },
  ];
  const range = { firstAddress: '192.0.2.10', lastAddress: '192.0.2.250' };
  const site = {
    ...{ node: 'sim-hv-01', days: 7, pool: { prefix: '192.0.2.0/24', gateway: '192.0.2.1', ...range } },
    servers: servers.map(({ name, email, address }) => ({ name, email, address })),
  };
  const guests = servers.map(({ name, mac, address }) => ({ name, mac, addresses: [address] }));
  await writeFile(join(folder, 'guests.json'), JSON.stringify(guests));
  const part = { ...database, name: 'database', start: async () => {}, stop: async () => {} };
  const settings = readOperationsSettings({
    SVC_DATA_DIR: folder,
    SVC_OPERATIONS_SIMULATED_GUESTS: join(folder, 'guests.json'),
    SVC_DEMO_SIMULATED_SITE: JSON.stringify(site),
  });
  const features = await compose(settings, { database: part, reporter: silentReporter });
  const worker = features.background.workers[0]!;
  await worker.start();
  const seed = () => seedDemo(features, join(folder, 'operations'));
  const begunMs = Date.now();
  const made = await seed();
  assert.deepEqual(await seed(), made, 'a later start makes no more');
  const all = await features.servers.listServers(systemActor, null, { order: 'oldest', limit: 10 });
  const simulated = all.filter(({ clusterId }) => clusterId === made.simulated_cluster_id);
  assert.deepEqual(
    simulated.map(({ name, tenantId, node, addresses }) => [name, tenantId, node, addresses[0]!.address]),
    site.servers.map(({ name, address }, at) => [
      name,
      at < 2 ? made.tenant_id : made.other_tenant_id,
      site.node,
      address,
    ]),
  );
  const { vms } = await features.servers.listInventory({ afterId: 0, limit: 10 });
  const macOf = new Map(vms.flatMap(({ id, interfaces }) => interfaces.map((nic) => [id, nic.macAddress])));
  assert.deepEqual(
    simulated.map(({ id }) => macOf.get(id)),
    guests.map(({ mac }) => mac),
  );
  // However long this took: between its beginning and now. The database's clock is another reading of the same one.
  const agoMs = site.days * 86_400_000;
  const isWithin = (at: Date, shiftMs: number) =>
    at.getTime() >= begunMs - shiftMs - 1_000 && at.getTime() <= Date.now() - shiftMs + 1_000;
  const allocations = await features.addresses.listAllocationsOfServers(simulated.map(({ id }) => id));
  const pasts = [
    ...simulated.map(({ createdAt }) => createdAt),
    ...allocations.map((one) => new Date(one.assignedAt)),
  ];
  for (const past of pasts) assert.ok(isWithin(past, agoMs), past.toISOString());
  const [own] = all.filter(({ clusterId }) => clusterId === made.cluster_id);
  assert.ok(isWithin(own!.createdAt, 0), 'the other servers are new');
  await worker.stop();
  await rm(folder, { recursive: true });
});
