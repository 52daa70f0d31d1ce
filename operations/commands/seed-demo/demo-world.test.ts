import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
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

test('the demo world is made once, kept by later starts, and made of new keys when its file is gone', async () => {
  await using database = await createTestDatabase('operations');
  const folder = await mkdtemp(join(tmpdir(), 'svc-demo-world-'));
  const part = { ...database, name: 'database', start: async () => {}, stop: async () => {} };
  const settings = readOperationsSettings({ SVC_DATA_DIR: folder });
  const features = await compose(settings, { database: part, reporter: silentReporter });
  const worker = features.background.workers[0]!;
  await worker.start();
  const dir = join(folder, 'operations');
  const seed = async () => {
    await createDemoWorld({ features, reporter: silentReporter, clock: systemClock, dir }).start();
    return JSON.parse(await readFile(join(dir, 'demo.json'), 'utf8'));
  };

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
