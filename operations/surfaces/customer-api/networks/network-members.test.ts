import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { sql } from 'kysely';
import { CodedError } from '#common/errors/index.ts';
import { systemActor } from '#operations/accounts/index.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { type Answer, type Call, createApiClient } from '../testing/client.ts';
import { customerOf, networkOf } from '../testing/network-calls.ts';

let world: World;
let call: Call;
/** How the hypervisor answers requests for network interfaces: accepts them, or refuses permanently. */
let isBroken = false;
/** Runs once, before the hypervisor plugs a network interface in. */
let meanwhile: (() => Promise<void>) | null = null;
const asked: string[] = [];
/** What one hypervisor stands for. */
let reach: 'site' | 'node' = 'site';
before(async () => {
  world = await createWorld({
    networksMax: 4,
    hypervisor: (usual) => ({
      ...usual,
      get reach() {
        return reach;
      },
      async attachInterface(guest, nic) {
        asked.push(`attach ${guest} ${nic.address}`);
        if (isBroken) throw new CodedError('hypervisor.refused', 'node-7 has no slot left');
        const work = meanwhile;
        meanwhile = null;
        await work?.();
        return usual.attachInterface(guest, nic);
      },
      async syncNetwork(networkId, members) {
        asked.push(['sync', networkId, ...members.map(({ guest }) => guest)].join(' '));
        if (isBroken) throw new CodedError('hypervisor.failed', 'node-7 is on fire');
        await usual.syncNetwork(networkId, members);
      },
    }),
  });
  call = createApiClient(world.url);
});
after(() => world[Symbol.asyncDispose]());

const order = { plan: 'small', image: 'debian-12' };
const errorOf = (answer: Answer) => [answer.status, answer.body.error.reason ?? answer.body.error.code];

const customerWithKey = (name: string) => customerOf(world, name);
const createNetwork = (key: string, body: object = {}) => networkOf(call, key, body);

test('API-2.4: a server joins one network at deploy time, and is attached and detached later', async () => {
  const { key } = await customerWithKey('Members');
  const backend = await createNetwork(key, { cidr: '10.20.0.0/24' });
  const database = await createNetwork(key, { name: 'database', cidr: '10.21.0.0/29' });
  const created = await call('POST', '/api/v2/servers', {
    key,
    body: { ...order, name: 'web-1', network_id: backend.id, network_ip: '10.20.0.5' },
  });
  assert.equal(created.status, 201, created.text);
  const [joining] = created.body.private_networks;
  assert.deepEqual(
    [joining.network_id, joining.name, joining.cidr, joining.ip, joining.state, joining.attached_at],
    [backend.id, 'backend', '10.20.0.0/24', '10.20.0.5', 'attaching', null],
  );
  await world.jobs.drain();
  const path = `/api/v2/servers/${created.body.id}`;
  const [joined] = (await call('GET', path, { key })).body.private_networks;
  assert.equal(joined.state, 'attached');
  assert.match(joined.mac_address, /^52:56:/);
  assert.ok(joined.attached_at);
  const attached = await call('POST', `${path}/networks`, { key, body: { network_id: database.id } });
  assert.deepEqual([attached.status, attached.body.state, attached.body.ip], [202, 'attaching', '10.21.0.2']);
  await world.jobs.drain();
  const nics = (await call('GET', `${path}/networks`, { key })).body.networks;
  const one = (await call('GET', `${path}/networks?limit=1`, { key })).body;
  assert.deepEqual([one.networks, one.pagination.limit], [nics.slice(0, 1), 1]);
  assert.deepEqual(nics, (await call('GET', path, { key })).body.private_networks);
  assert.deepEqual(
    nics.map((nic: { state: string }) => nic.state),
    ['attached', 'attached'],
  );
  const again = await call('POST', `${path}/networks`, {
    key,
    body: { network_id: database.id, ip: '10.21.0.2' },
  });
  assert.deepEqual([again.status, again.body], [200, nics[1]]);
  const elsewhere = { key, body: { network_id: database.id, ip: '10.21.0.3' } };
  assert.deepEqual(errorOf(await call('POST', `${path}/networks`, elsewhere)), [409, 'already_attached']);
  const members = (await call('GET', `/api/v2/networks/${database.id}`, { key })).body;
  assert.deepEqual(
    [members.member_count, members.available_ips, members.members],
    [
      1,
      4,
      [
        {
          server_id: created.body.id,
          name: 'web-1',
          ip: '10.21.0.2',
          mac_address: nics[1].mac_address,
          state: 'attached',
        },
      ],
    ],
  );
  const found = await call('GET', `/api/v2/servers?network_id=${database.id}`, { key });
  assert.deepEqual(
    found.body.servers.map((one: { id: number }) => one.id),
    [created.body.id],
  );
  const detached = await call('DELETE', `${path}/networks/${database.id}`, { key });
  assert.deepEqual([detached.status, detached.body.state], [202, 'detaching']);
  const tooEarly = await call('POST', `${path}/networks`, { key, body: { network_id: database.id } });
  assert.equal(tooEarly.status, 409, 'it is not attached again while it is being detached');
  await world.jobs.drain();
  assert.equal((await call('GET', path, { key })).body.private_networks.length, 1);
  assert.equal((await call('DELETE', `${path}/networks/${database.id}`, { key })).status, 404);
});

test('API-4.7: addresses are the lowest free or the one that was asked for, and never two servers’', async () => {
  const { key, tenant } = await customerWithKey('Addresses');
  const network = await createNetwork(key, { cidr: '192.168.7.0/29' });
  const ids = [];
  for (let i = 0; i < 6; i += 1) ids.push((await world.deploy(tenant, `node-${i}`)).serverId);
  const attach = (id: number, ip?: string) =>
    call('POST', `/api/v2/servers/${id}/networks`, {
      key,
      body: { network_id: network.id, ...(ip ? { ip } : {}) },
    });
  assert.equal((await attach(ids[0]!, '192.168.7.3')).body.ip, '192.168.7.3');
  for (const ip of ['192.168.7.0', '192.168.7.1', '192.168.7.7', '192.168.8.2', '::1', 'x']) {
    const refused = await attach(ids[1]!, ip);
    assert.deepEqual(errorOf(refused), [422, 'invalid_fields']);
    assert.equal(refused.body.error.fields[0].path, 'ip');
  }
  assert.deepEqual(errorOf(await attach(ids[1]!, '192.168.7.3')), [409, 'ip_in_use']);
  const crowd = await Promise.all(ids.slice(1, 5).map((id) => attach(id)));
  assert.deepEqual(crowd.map((answer) => answer.body.ip).sort(), [
    '192.168.7.2',
    '192.168.7.4',
    '192.168.7.5',
    '192.168.7.6',
  ]);
  const full = await attach(ids[5]!);
  assert.deepEqual(errorOf(full), [422, 'limit_exceeded']);
  assert.deepEqual(full.body.error.details, { limit: 'network_members', max: 5, used: 5 });
});

test('API-4.7: a private-only server keeps its last interface, also when both are detached at once', async () => {
  const { key } = await customerWithKey('Private only');
  const [one, two] = [await createNetwork(key), await createNetwork(key)];
  const refused = await call('POST', '/api/v2/servers', { key, body: { ...order, public_ip: false } });
  assert.deepEqual(errorOf(refused), [422, 'invalid_fields']);
  assert.equal(refused.body.error.fields[0].path, 'network_id');
  const created = await call('POST', '/api/v2/servers', {
    key,
    body: { ...order, public_ip: false, network_id: one.id },
  });
  await world.jobs.drain();
  const path = `/api/v2/servers/${created.body.id}`;
  const server = (await call('GET', path, { key })).body;
  assert.deepEqual([server.status, server.public_ips], ['running', []]);
  assert.equal(server.private_networks[0].is_last_interface, true);
  assert.deepEqual(errorOf(await call('DELETE', `${path}/networks/${one.id}`, { key })), [
    409,
    'last_interface',
  ]);
  await call('POST', `${path}/networks`, { key, body: { network_id: two.id } });
  assert.deepEqual(
    errorOf(await call('DELETE', `${path}/networks/${one.id}`, { key })),
    [409, 'last_interface'],
    'the other is not attached yet',
  );
  await world.jobs.drain();
  const nics = (await call('GET', path, { key })).body.private_networks;
  assert.deepEqual(
    nics.map((nic: { is_last_interface: boolean }) => nic.is_last_interface),
    [false, false],
  );
  const both = await Promise.all(
    [one.id, two.id].map((id) => call('DELETE', `${path}/networks/${id}`, { key })),
  );
  assert.deepEqual(both.map((answer) => answer.status).sort(), [202, 409]);
  await world.jobs.drain();
  assert.equal((await call('DELETE', path, { key })).status, 202);
  await world.jobs.drain();
  for (const { id } of [one, two])
    assert.equal((await call('DELETE', `/api/v2/networks/${id}`, { key })).status, 204);
});

test('API-4.7: wishes to sync are one while it waits, and its error lands in the network', async () => {
  const { key, tenant } = await customerWithKey('Sync');
  const network = await createNetwork(key);
  const { serverId } = await world.deploy(tenant, 'member');
  await call('POST', `/api/v2/servers/${serverId}/networks`, { key, body: { network_id: network.id } });
  await world.jobs.drain();
  const path = `/api/v2/networks/${network.id}`;
  asked.length = 0;
  const answers = await Promise.all(
    Array.from({ length: 5 }, () => call('POST', `${path}/sync`, { key, body: {} })),
  );
  assert.deepEqual(
    answers.map((answer) => [answer.status, answer.body.sync.state]),
    Array(5).fill([202, 'pending']),
  );
  await world.database.pool.query('delete from simulated_interfaces');
  await world.jobs.drain();
  assert.deepEqual(asked, [`sync ${network.id} vm-${serverId}`]);
  const { rows } = await world.database.pool.query('select guest from simulated_interfaces');
  assert.deepEqual(rows, [{ guest: `vm-${serverId}` }]);
  assert.equal((await call('GET', path, { key })).body.sync.state, 'synced');
});

test('API-4.7: an interface that the hypervisor refuses is in error, and can be retried or removed', async () => {
  const { key, tenant } = await customerWithKey('Broken');
  const network = await createNetwork(key);
  const { serverId } = await world.deploy(tenant, 'member');
  const path = `/api/v2/servers/${serverId}/networks`;
  isBroken = true;
  await call('POST', path, { key, body: { network_id: network.id } });
  await world.jobs.drain();
  isBroken = false;
  const stateOf = async () => (await call('GET', path, { key })).body.networks[0]?.state;
  assert.equal(await stateOf(), 'error');
  const again = await call('POST', path, { key, body: { network_id: network.id } });
  assert.deepEqual([again.status, again.body.state], [200, 'attaching']);
  await world.jobs.drain();
  assert.equal(await stateOf(), 'attached');
});

test('API-4.7: a server that is detached while its interface is being plugged in keeps no interface', async () => {
  const { key, tenant } = await customerWithKey('Overtaken');
  const network = await createNetwork(key);
  const { serverId } = await world.deploy(tenant, 'member');
  const path = `/api/v2/servers/${serverId}/networks`;
  await call('POST', path, { key, body: { network_id: network.id } });
  meanwhile = async () => {
    assert.equal((await call('DELETE', `${path}/${network.id}`, { key })).status, 202);
    await world.jobs.drain();
  };
  await world.jobs.drain();
  assert.deepEqual((await call('GET', path, { key })).body.networks, []);
  const { rows } = await world.database.pool.query(
    'select guest from simulated_interfaces where network_id = $1',
    [network.id],
  );
  assert.deepEqual(rows, []);
  assert.equal((await call('DELETE', `/api/v2/networks/${network.id}`, { key })).status, 204);
});

test('API-4.8: destroying a server takes it off its networks before the action succeeds', async () => {
  const { key, tenant } = await customerWithKey('Destroy');
  const network = await createNetwork(key);
  const { serverId } = await world.deploy(tenant, 'member');
  await call('POST', `/api/v2/servers/${serverId}/networks`, { key, body: { network_id: network.id } });
  await world.jobs.drain();
  await call('DELETE', `/api/v2/servers/${serverId}`, { key });
  const [member] = (await call('GET', `/api/v2/networks/${network.id}`, { key })).body.members;
  assert.equal(member.state, 'detaching');
  await world.jobs.drain();
  assert.deepEqual((await call('GET', `/api/v2/networks/${network.id}`, { key })).body.members, []);
  const { rows } = await world.database.pool.query(
    'select 1 from simulated_interfaces where network_id = $1',
    [network.id],
  );
  assert.deepEqual(rows, []);
});

test('API-4.7: a network has servers of several nodes where each has a bridge of its number, and of one node elsewhere', async () => {
  reach = 'node';
  const { key } = await customerWithKey('Two nodes');
  const local = await createNetwork(key);
  const deploy = async (network_id: number) => {
    const { id } = (
      await call('POST', '/api/v2/servers', { key, body: { ...order, name: 'db', network_id } })
    ).body;
    await world.jobs.drain();
    return id as number;
  };
  const statesOf = async (id: number) =>
    (await call('GET', `/api/v2/servers/${id}/networks`, { key })).body.networks.map(
      (nic: { state: string }) => nic.state,
    );
  const one = await deploy(local.id);
  const [first] = await world.clusters.listNodes(systemActor, world.clusterId);
  const room = { vcpus: 64, memoryMb: 65_536, diskGb: 1_000 };
  const second = await world.clusters.addNode(systemActor, {
    ...{ clusterId: world.clusterId, name: 'simulated-2', ...room },
    ...{ uri: null, storagePool: null, bridge: 'br0', networkBridges: null },
  });
  await world.clusters.changeNode(systemActor, first!.id, { isOpen: false });
  const two = await deploy(local.id);
  assert.deepEqual([await statesOf(one), await statesOf(two)], [['attached'], ['error']]);
  asked.length = 0;
  await call('POST', `/api/v2/networks/${local.id}/sync`, { key });
  await world.jobs.drain();
  assert.deepEqual(asked.toSorted(), [`sync ${local.id}`, `sync ${local.id} vm-${one}`], 'it is not split');
  assert.deepEqual(await statesOf(two), ['error']);

  const setBridges = (nodeId: number, networkBridges: string) =>
    world.clusters.changeNode(systemActor, nodeId, { networkBridges });
  await setBridges(first!.id, 'brpn{100-102}');
  await setBridges(second, 'vmbr{101-110}');
  const networks = await Promise.all([createNetwork(key), createNetwork(key)]);
  const { rows } = await sql<{ id: string; segment: number }>`
    select id::text, segment from private_networks where segment is not null order by segment`.execute(
    world.db(),
  );
  const segments = rows.map(({ segment }) => segment);
  assert.deepEqual(segments, [101, 102], 'each has a number that both nodes have');
  networks.sort(({ id }) => (String(id) === rows[0]!.id ? -1 : 1));
  const other = await customerWithKey('Another of that place');
  const full = await call('POST', '/api/v2/networks', { key: other.key, body: { name: 'late' } });
  assert.deepEqual(errorOf(full), [422, 'limit_exceeded']);
  for (const id of [one, two])
    await call('POST', `/api/v2/servers/${id}/networks`, { key, body: { network_id: networks[0]!.id } });
  await world.jobs.drain();
  assert.deepEqual(
    [await statesOf(one), await statesOf(two)],
    [
      ['attached', 'attached'],
      ['error', 'attached'],
    ],
  );
  asked.length = 0;
  await call('POST', `/api/v2/networks/${networks[0]!.id}/sync`, { key });
  await world.jobs.drain();
  const both = networks[0]!.id;
  assert.deepEqual(asked.toSorted(), [`sync ${both} vm-${one}`, `sync ${both} vm-${two}`].toSorted());
  await assert.rejects(setBridges(second, 'vmbr{102-110}'), /bridges would change/);
  await setBridges(second, 'vmbr{101-120}');
  await call('DELETE', `/api/v2/networks/${networks[1]!.id}`, { key });
  await createNetwork(other.key);
});
