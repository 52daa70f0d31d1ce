/** Changes of servers for monitors: which are told, to whom, and that a reader with a cursor misses none. */
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { Compile } from 'typebox/compile';
import { CodedError } from '#common/errors/index.ts';
import { InventoryChangesPage, inventoryChangeKinds } from '#contracts/admin-api/inventory-changes.ts';
import { systemActor } from '#operations/accounts/index.ts';
import type { FirewallChange } from '#operations/firewall/index.ts';
import { noteServerChange, type ServerChangeKind } from '#operations/server-changes/index.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { explainStatements, rowsReadBy } from '#operations/testing/explain-statements.ts';
import { loopOf } from '#operations/testing/loop-of.ts';
import { visit } from '#operations/testing/visit.ts';
import { moveWorldClock } from '#operations/testing/world-time.ts';

let world: World;
let token: string;
/** The hypervisor carries nothing out. */
let isBroken = false;

before(async () => {
  const fail = () => {
    if (isBroken) throw new CodedError('hypervisor.failed', 'node-7 is on fire');
  };
  world = await createWorld({
    hypervisor: (usual) => ({
      ...usual,
      async applyFirewall(guest, plan) {
        fail();
        await usual.applyFirewall(guest, plan);
      },
      async restart(guest, how) {
        fail();
        await usual.restart(guest, how);
      },
      async attachInterface(guest, nic) {
        fail();
        return usual.attachInterface(guest, nic);
      },
    }),
  });
  token = await world.createToken(['vm_inventory_read']);
});
after(() => world[Symbol.asyncDispose]());
beforeEach(async () => {
  isBroken = false;
  await world.database.pool.query('delete from server_changes');
});

const ask = (query: string, bearer = token) =>
  fetch(`${world.url}/api/admin/v1/inventory/changes/${query}`, {
    headers: { authorization: `Bearer ${bearer}` },
  });

async function pageOf(query: string, bearer = token): Promise<InventoryChangesPage> {
  const answer = await ask(query, bearer);
  assert.equal(answer.status, 200, await answer.clone().text());
  const page: unknown = await answer.json();
  assert.ok(Compile(InventoryChangesPage).Check(page), JSON.stringify(page));
  return page;
}

/** Everything after a cursor, and the cursor behind it. */
async function readFrom(after: string | null, bearer = token, limit = 3) {
  const changes: InventoryChangesPage['changes'] = [];
  for (let next = after; ; ) {
    const page = await pageOf(`?limit=${limit}${next === null ? '' : `&after=${next}`}`, bearer);
    assert.ok(page.changes.length <= limit);
    changes.push(...page.changes);
    next = page.next_after;
    if (!page.has_more) return { changes, next };
  }
}

const kindsOf = async (serverId: number) =>
  (await readFrom(null)).changes
    .filter((change) => change.virtual_machine_id === serverId)
    .map(({ kind }) => kind);

async function customerWithServer(name: string) {
  const customer = await world.createCustomer(name);
  const { serverId } = await world.deploy(customer.tenant, name.toLowerCase());
  const readFirewall = async () =>
    (await world.firewalls.readFirewall(systemActor, customer.tenant.id, serverId))!;
  return {
    ...customer,
    serverId,
    readFirewall,
    async changeFirewall(...changes: FirewallChange[]) {
      for (const change of changes)
        await world.firewalls.changeFirewall(systemActor, serverId, (await readFirewall()).version, change);
    },
  };
}

const note = (serverId: number, kind: ServerChangeKind) =>
  world.database.db.transaction().execute((tx) => noteServerChange(tx, serverId, kind));

/** Runs the jobs that are due as often as any is tried. */
async function exhaustJobs(): Promise<void> {
  for (let attempt = 0; attempt < 9; attempt += 1) {
    await world.jobs.drain();
    await world.database.pool.query('update jobs set run_at = svc_now() where finished_at is null');
  }
}

async function callApi(key: string, method: string, path: string, body?: object): Promise<number> {
  const answer = await fetch(`${world.url}/api/${path}`, {
    method,
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
  return answer.status;
}

test('every door’s firewall, network and restart is told: that and when, and nothing of what or by whom', async () => {
  const customer = await customerWithServer('Changed');
  const { serverId, tenant } = customer;
  const key = await world.createKey(customer);
  const portal = await visit(world, customer.email, '/client/');
  const network = await world.networks.createNetwork(systemActor, {
    ...{ tenantId: tenant.id, name: 'secret-backend', cidr: '10.20.0.0/24' },
  });
  const begunMs = (await world.database.pool.query('select svc_now() as at')).rows[0].at.getTime();
  const steps: [string, () => Promise<number>][] = [
    [
      'firewall',
      async () => {
        const form = { direction: 'inbound', action: 'accept', protocol: 'tcp', ports: '4711', peers: '' };
        const fields = { ...form, description: 'hidden', version: '0' };
        return (await portal.post(`/client/servers/${serverId}/firewall/add`, fields)).status;
      },
    ],
    ['rebooted', () => callApi(key, 'POST', `v2/servers/${serverId}/actions`, { action: 'reboot' })],
    ['reset', () => callApi(key, 'POST', `v1/servers/${serverId}/actions`, { action: 'reset' })],
    [
      'network_attached',
      async () =>
        (await portal.post(`/client/networks/${network.id}/attach`, { server: String(serverId), ip: '' }))
          .status,
    ],
    ['network_detached', () => callApi(key, 'DELETE', `v2/servers/${serverId}/networks/${network.id}`)],
    [
      'rebooted',
      async () => (await portal.post(`/client/servers/${serverId}/actions`, { action: 'reboot' })).status,
    ],
  ];
  for (const [kind, step] of steps) {
    const status = await step();
    assert.ok([200, 202, 204, 303].includes(status), `${kind}: ${status}`);
    await world.jobs.drain();
  }
  const { changes } = await readFrom(null);
  assert.deepEqual(
    changes.map(({ kind }) => kind),
    steps.map(([kind]) => kind),
  );
  assert.deepEqual([...new Set(changes.map(({ kind }) => kind))].sort(), [...inventoryChangeKinds].sort());
  const endedMs = (await world.database.pool.query('select svc_now() as at')).rows[0].at.getTime();
  for (const change of changes) {
    assert.deepEqual(Object.keys(change).sort(), ['at', 'cluster_id', 'id', 'kind', 'virtual_machine_id']);
    assert.deepEqual([change.cluster_id, change.virtual_machine_id], [world.clusterId, serverId]);
    assert.match(change.at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    assert.ok(Date.parse(change.at) >= begunMs && Date.parse(change.at) <= endedMs, change.at);
  }
});

test('what failed, changed nothing or belongs to a deployment or a destruction is not told', async () => {
  const { serverId, tenant, changeFirewall } = await customerWithServer('Failed');
  const network = await world.networks.createNetwork(systemActor, {
    ...{ tenantId: tenant.id, name: 'backend', cidr: '10.30.0.0/24' },
  });
  const input = { serverId, networkId: network.id };
  await world.jobs.drain();
  isBroken = true;
  await changeFirewall({ kind: 'switch', isEnabled: true });
  await world.networks.attachServer(systemActor, tenant.id, input);
  await world.servers.changePower(systemActor, tenant.id, serverId, { command: 'reboot' });
  await exhaustJobs();
  assert.deepEqual(await kindsOf(serverId), []);

  await world.networks.detachServer(systemActor, tenant.id, input);
  await world.jobs.drain();
  assert.deepEqual(await kindsOf(serverId), [], 'what never was attached is not detached');
  await world.networks.attachServer(systemActor, tenant.id, input);
  await exhaustJobs();

  isBroken = false;
  await world.servers.changePower(systemActor, tenant.id, serverId, { command: 'start' });
  await world.jobs.drain();
  await world.networks.attachServer(systemActor, tenant.id, input);
  await world.jobs.drain();
  assert.deepEqual(await kindsOf(serverId), ['network_attached'], 'the failed attachment that was repeated');
  await world.networks.attachServer(systemActor, tenant.id, input);
  await world.networks.syncNetwork(systemActor, tenant.id, network.id);
  await world.jobs.drain();
  assert.deepEqual(await kindsOf(serverId), ['network_attached'], 'an attached network stays as it is');

  await world.ordering.createServer(systemActor, {
    ...{ tenantId: tenant.id, plan: 'small', image: 'debian-12', name: 'born', networkId: network.id },
  });
  await world.jobs.drain();
  await world.networks.detachServer(systemActor, tenant.id, input);
  await world.servers.destroyServer(systemActor, tenant.id, serverId);
  await world.jobs.drain();
  assert.equal((await readFrom(null)).changes.length, 1);
});

test('a firewall that is applied by several jobs at once is one change for each version that took effect', async () => {
  const { serverId, changeFirewall } = await customerWithServer('Versions');
  await changeFirewall({ kind: 'switch', isEnabled: true }, { kind: 'switch', isEnabled: false });
  await world.jobs.drain();
  assert.deepEqual(await kindsOf(serverId), ['firewall'], 'the first version never took effect');
  await changeFirewall({ kind: 'switch', isEnabled: true });
  await world.jobs.drain();
  assert.deepEqual(await kindsOf(serverId), ['firewall', 'firewall']);
});

test('NET-5.1: without the permission it is a 403 that names it, and a project is told of its clusters alone', async () => {
  const refused = await ask('', await world.createToken(['protect_telemetry_ingest']));
  assert.equal(refused.status, 403);
  const { error } = (await refused.json()) as { error: { details: unknown } };
  assert.deepEqual(error.details, { permission: 'vm_inventory_read' });

  const { serverId } = await customerWithServer('Scoped');
  for (let i = 0; i < 7; i += 1) await note(serverId, 'firewall');
  const other = await world.createToken(['vm_inventory_read'], [world.clusterId + 1]);
  const none = await readFrom(null, other);
  assert.deepEqual(none.changes, []);
  const own = await world.createToken(['vm_inventory_read'], [world.clusterId]);
  const all = await readFrom(null, own);
  assert.deepEqual([all.changes.length, all.next], [7, none.next]);
});

test('a limit over 1,000, an unknown parameter and a crooked cursor are 422', async () => {
  for (const query of ['limit=1001', 'limit=0', 'after=-1', 'after=x', 'after=1.5', 'after_id=1'])
    assert.equal((await ask(`?${query}`)).status, 422, query);
});

test('readers with a cursor get every change once, in the order of their pages', async () => {
  const { serverId } = await customerWithServer('Paged');
  for (let i = 0; i < 10; i += 1) await note(serverId, i % 2 === 0 ? 'firewall' : 'rebooted');
  const readers = await Promise.all([1, 2, 3, 4].map((limit) => readFrom(null, token, limit)));
  const [first] = readers;
  assert.equal(new Set(first!.changes.map(({ id }) => id)).size, 10);
  for (const reader of readers) assert.deepEqual(reader, first);
  assert.deepEqual(await readFrom(first!.next), { changes: [], next: first!.next });
  await note(serverId, 'reset');
  const later = await readFrom(first!.next);
  assert.deepEqual(
    later.changes.map(({ kind }) => kind),
    ['reset'],
  );
});

test('a change whose transaction commits late is told behind the cursor that passed its time', async () => {
  const { serverId } = await customerWithServer('Late');
  const client = await world.database.pool.connect();
  await client.query('begin');
  await client.query(
    `insert into server_changes (cluster_id, server_id, kind) values ($1, $2, 'network_attached')`,
    [world.clusterId, serverId],
  );
  await note(serverId, 'firewall');
  const before = await readFrom(null);
  assert.deepEqual(
    before.changes.map(({ kind }) => kind),
    ['firewall'],
  );
  await client.query('commit');
  client.release();
  const behind = await readFrom(before.next);
  assert.deepEqual(
    behind.changes.map(({ kind }) => kind),
    ['network_attached'],
  );
});

test('a cursor from before a backup was restored reads the list from its beginning, with the same ids', async () => {
  const { serverId } = await customerWithServer('Restored');
  await note(serverId, 'firewall');
  const { changes, next } = await readFrom(null);
  const again = await readFrom(String(Number(next) + 1_000));
  assert.deepEqual(again, { changes, next });
});

test('changes are kept for 30 days', async () => {
  const { serverId } = await customerWithServer('Kept');
  await note(serverId, 'firewall');
  const retention = loopOf(world.serverChanges, 'operations-change-retention');
  try {
    await moveWorldClock(world.database, '29 days 23 hours');
    await retention.runOnce();
    assert.deepEqual(await kindsOf(serverId), ['firewall']);
    await moveWorldClock(world.database, '30 days 1 hour');
    await retention.runOnce();
    assert.deepEqual(await kindsOf(serverId), []);
  } finally {
    await moveWorldClock(world.database, '0');
  }
});

test('a page reads its own rows alone, among many changes', async () => {
  const { serverId } = await customerWithServer('Planned');
  await world.database.pool.query(
    `insert into server_changes (cluster_id, server_id, kind, occurred_at, position)
     select $1, $2, 'firewall', svc_now() - n * interval '1 minute', nextval('server_change_positions')
     from generate_series(1, 20000) n`,
    [world.clusterId + 1, serverId],
  );
  await world.database.pool.query('analyze server_changes');
  const middle = await world.database.pool.query('select min(position) + 10000 as at from server_changes');
  const nodes = await explainStatements(world.database, async () => {
    const query = { after: middle.rows[0].at, limit: 50, clusterIds: [world.clusterId + 1] };
    assert.equal((await world.serverChanges.list(query)).changes.length, 50);
  });
  const scans = nodes.filter((node) => node['Relation Name'] === 'server_changes');
  assert.ok(scans.length >= 3);
  for (const scan of scans) {
    assert.match(scan['Index Name'] ?? scan['Node Type'], /^server_changes_/);
    assert.ok(rowsReadBy(scan) <= 50, `${scan['Index Name']}: ${rowsReadBy(scan)} rows`);
  }
});
