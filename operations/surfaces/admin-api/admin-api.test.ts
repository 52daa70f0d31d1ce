import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { TargetsPage } from '#contracts/admin-api/schemas.ts';
import { systemActor } from '#operations/accounts/index.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { moveWorldClock } from '#operations/testing/world-time.ts';

let world: World;
const base = '/api/admin/v1';

before(async () => {
  world = await createWorld();
});
after(() => world[Symbol.asyncDispose]());

function call(path: string, token: string | null, headers: Record<string, string> = {}): Promise<Response> {
  const authorization = token === null ? {} : { authorization: `Bearer ${token}` };
  return fetch(`${world.url}${base}${path}`, { headers: { ...authorization, ...headers } });
}

const errorOf = async (answer: Response) =>
  ((await answer.json()) as { error: Record<string, unknown> }).error;

test('NET-4.l: discovery names only what the project may do, in contract version 1 (NET-9.1)', async () => {
  const full = await world.createToken(['vm_inventory_read', 'protect_telemetry_ingest']);
  const { project, capabilities } = (await (await call('/discovery/', full)).json()) as {
    project: { id: number; name: string };
    capabilities: Record<string, unknown>;
  };
  assert.match(project.name, /^project \d+$/);
  const inventory = {
    vm_inventory: true,
    vm_inventory_version: 1,
    vm_inventory_changes: true,
    vm_inventory_changes_version: 1,
  };
  assert.deepEqual(capabilities, {
    ...inventory,
    protect_telemetry_ingest: true,
    protect_telemetry_contract_version: 1,
    protect_application_identity: true,
    protect_application_identity_version: 1,
    protect_telemetry_reason: true,
    protect_telemetry_reason_version: 1,
    protect_telemetry_own_scan: true,
    protect_telemetry_own_scan_version: 1,
    protect_telemetry_dropped: true,
    protect_telemetry_dropped_version: 1,
  });
  const narrow = await world.createToken(['vm_inventory_read']);
  const seen = (await (await call('/discovery/', narrow)).json()) as { capabilities: object };
  assert.deepEqual(seen.capabilities, inventory);
});

test('NET-5.1: a missing permission is a 403 that names it, and editing the project mends it with the same token', async () => {
  const project = await world.adminProjects.create(systemActor, {
    name: 'narrow',
    permissions: [],
    clusterIds: null,
  });
  const { token } = await world.adminProjects.issueToken(systemActor, project.id, null);
  for (const [path, permission] of [
    ['/inventory/vms/', 'vm_inventory_read'],
    ['/protect/targets/', 'protect_telemetry_ingest'],
  ] as const) {
    const refused = await call(path, token);
    assert.equal(refused.status, 403);
    const error = await errorOf(refused);
    assert.equal(error.code, 'permission_missing');
    assert.deepEqual(error.details, { permission });
  }
  await world.adminProjects.update(systemActor, project.id, {
    name: 'narrow',
    permissions: ['vm_inventory_read', 'protect_telemetry_ingest'],
    clusterIds: null,
  });
  assert.equal((await call('/inventory/vms/', token)).status, 200);
  assert.equal((await call('/protect/targets/', token)).status, 200);
});

test('NET-5.1: two tokens of a project work at once; a revoked one is refused on the next call', async () => {
  const project = await world.adminProjects.create(systemActor, {
    name: 'rotating',
    permissions: [],
    clusterIds: null,
  });
  const first = await world.adminProjects.issueToken(systemActor, project.id, null);
  const second = await world.adminProjects.issueToken(systemActor, project.id, null);
  assert.equal((await call('/discovery/', first.token)).status, 200);
  assert.equal((await call('/discovery/', second.token)).status, 200);
  await world.adminProjects.revokeToken(systemActor, project.id, first.id);
  assert.equal((await call('/discovery/', first.token)).status, 401);
  assert.equal((await call('/discovery/', second.token)).status, 200);
  const kept = JSON.stringify(await world.adminProjects.listTokens(systemActor, project.id));
  assert.ok(!kept.includes(second.token.slice(-43)), 'a token is shown once only');
});

test('every bad token gets the same 401: none, malformed, unknown, wrong secret, expired, a customer key', async () => {
  const project = await world.adminProjects.create(systemActor, {
    name: 'x',
    permissions: [],
    clusterIds: null,
  });
  const { token } = await world.adminProjects.issueToken(systemActor, project.id, null);
  const expired = await world.adminProjects.issueToken(
    systemActor,
    project.id,
    new Date(world.clock.nowMs() - 1000),
  );
  const secret = token.slice(-43);
  const bodies = new Set<string>();
  for (const bad of [
    null,
    'nonsense',
    `svcadm_aaaaaaaaaaaaaaaa_${secret}`,
    `${token.slice(0, -1)}${token.endsWith('A') ? 'B' : 'A'}`,
    expired.token,
    token.replace('svcadm_', 'svc_'),
  ]) {
    const answer = await call('/discovery/', bad);
    assert.equal(answer.status, 401);
    bodies.add(JSON.stringify({ ...(await errorOf(answer)), request_id: '' }));
  }
  assert.equal(bodies.size, 1);
});

test('NET-2.3, NET-4.a: targets are the active generations with their exact fields, by cursor', async () => {
  const { tenant } = await world.createCustomer('Targets');
  const first = await world.deploy(tenant, 'one');
  const second = await world.deploy(tenant, 'two');
  const token = await world.createToken(['protect_telemetry_ingest']);
  const expected = [...first.allocations, ...second.allocations]
    .sort((a, b) => a.id - b.id)
    .map((allocation) => ({
      id: allocation.id,
      billing_account_id: tenant.id,
      virtual_machine_id: allocation.serverId,
      cluster_id: world.clusterId,
      address: allocation.address,
      assigned_at: allocation.assignedAt,
    }));
  const seen: unknown[] = [];
  let after: number | null = 0;
  while (after !== null) {
    const page = (await (
      await call(`/protect/targets/?after_id=${after}&limit=1`, token)
    ).json()) as TargetsPage;
    assert.ok(page.targets.length <= 1);
    seen.push(...page.targets);
    after = page.next_after_id;
  }
  assert.deepEqual(seen, expected);

  await world.servers.destroyServer(systemActor, null, first.serverId);
  await world.jobs.drain();
  const left = (await (await call('/protect/targets/', token)).json()) as TargetsPage;
  assert.ok(left.targets.every((target) => target.virtual_machine_id !== first.serverId));
});

test('NET-2.3: addresses that are not globally routable are left out, and the cursor still moves', async () => {
  await using strict = await createWorld({ allowDocumentationAddresses: false });
  const { tenant } = await strict.createCustomer('Private');
  const { allocations } = await strict.deploy(tenant, 'inside');
  const token = await strict.createToken(['protect_telemetry_ingest']);
  const answer = await fetch(`${strict.url}${base}/protect/targets/?limit=${allocations.length}`, {
    headers: { authorization: `Bearer ${token}` },
  });
  const page = (await answer.json()) as TargetsPage;
  assert.deepEqual(page, { targets: [], next_after_id: Math.max(...allocations.map((each) => each.id)) });
});

test('NET-5.1: a project sees the clusters of its scope only', async () => {
  const { tenant } = await world.createCustomer('Scoped');
  await world.deploy(tenant, 'elsewhere');
  const token = await world.createToken(
    ['protect_telemetry_ingest', 'vm_inventory_read'],
    [world.clusterId + 1],
  );
  assert.deepEqual(((await (await call('/protect/targets/', token)).json()) as TargetsPage).targets, []);
  assert.deepEqual(((await (await call('/inventory/vms/', token)).json()) as { vms: [] }).vms, []);
});

test('the inventory lists living servers with their network interfaces and addresses', async () => {
  const { tenant } = await world.createCustomer('Inventory');
  const { serverId, allocations } = await world.deploy(tenant, 'listed');
  const token = await world.createToken(['vm_inventory_read']);
  const page = (await (await call(`/inventory/vms/?after_id=${serverId - 1}&limit=1`, token)).json()) as {
    vms: Record<string, unknown>[];
    next_after_id: number | null;
    as_of: string;
  };
  const { updated_at, interfaces, ...vm } = page.vms[0]!;
  assert.deepEqual(vm, {
    id: serverId,
    cluster_id: world.clusterId,
    node: 'simulated-1',
    name: 'listed',
    state: 'running',
  });
  assert.ok(Date.parse(updated_at as string) <= Date.parse(page.as_of));
  const [card] = interfaces as { mac_address: string; bridge: string; addresses: string[] }[];
  assert.match(card!.mac_address, /^([0-9a-f]{2}:){5}[0-9a-f]{2}$/);
  assert.equal(card!.bridge, 'br0');
  assert.deepEqual(card!.addresses.toSorted(), allocations.map((each) => each.address).toSorted());
});

test('a limit over 1,000, an unknown parameter and a crooked cursor are 422', async () => {
  const token = await world.createToken(['protect_telemetry_ingest', 'vm_inventory_read']);
  for (const query of [
    'limit=1001',
    'limit=0',
    'after_id=-1',
    'limit=1.5',
    'after_id=1e3',
    'after_id=x',
    'page=2',
  ]) {
    assert.equal((await call(`/protect/targets/?${query}`, token)).status, 422, query);
    assert.equal((await call(`/inventory/vms/?${query}`, token)).status, 422, query);
  }
});

test('NET-5.2: a source with too many failures gets 429, and a valid token from it still works', async () => {
  await using throttled = await createWorld({ adminAuthFailuresMax: 3 });
  const token = await throttled.createToken([]);
  const ask = (given: string) =>
    fetch(`${throttled.url}${base}/discovery/`, { headers: { authorization: `Bearer ${given}` } });
  const statuses: number[] = [];
  for (let i = 0; i < 5; i += 1) statuses.push((await ask('svcadm_bad')).status);
  assert.deepEqual(statuses, [401, 401, 401, 429, 429]);
  const refused = await ask('svcadm_bad');
  assert.equal((await errorOf(refused)).reason, 'auth_rate');
  assert.ok(Number(refused.headers.get('retry-after')) > 0);
  assert.equal((await ask(token)).status, 200);
  await moveWorldClock(throttled.database, '6 minutes');
  assert.equal((await ask('svcadm_bad')).status, 401);
});
