import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { CodedError } from '#common/errors/index.ts';
import { systemActor } from '#operations/accounts/index.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { chargeServerHours, findDrift } from './index.ts';

let world: World;
/** The node does not answer. */
let isAway = false;
before(async () => {
  world = await createWorld({
    hypervisor: (usual) => ({
      ...usual,
      async inspectGuests() {
        if (isAway) throw new Error('no contact with node-7');
        return usual.inspectGuests();
      },
    }),
  });
});
after(() => world[Symbol.asyncDispose]());

const look = () => findDrift({ ...world, reporter: world.watch.reporter });
const found = async () =>
  (await world.servers.listDrifts(systemActor, null)).map(({ guest, kind }) => `${guest} ${kind}`);
/** As an operator with virsh. */
const atTheNode = (text: string) => world.database.pool.query(text);

test('what an operator changes at a node is seen, named, kept while the node is away, and gone when it is mended', async () => {
  const { tenant } = await world.createCustomer('Drift');
  const [first, second, third] = [
    await world.deploy(tenant, 'sized'),
    await world.deploy(tenant, 'plugged'),
    await world.deploy(tenant, 'lost'),
  ].map(({ serverId }) => `vm-${serverId}`);
  assert.equal(await look(), 0, 'all is as it is sold');

  await atTheNode(`update simulated_guests set memory_mb = 512 where name = '${first}'`);
  await atTheNode(`update simulated_guests set mac_address = '52:54:00:ff:ff:ff' where name = '${second}'`);
  await atTheNode(`delete from simulated_guests where name = '${third}'`);
  await atTheNode(`insert into simulated_guests (name, mac_address, addresses, power)
    values ('vm-4040', null, '{}', 'on'), ('other-host', null, '{}', 'on')`);
  assert.equal(await look(), 4);
  const drifts = [`${first} size`, `${second} interfaces`, `${third} missing`, 'vm-4040 stray'].sort();
  assert.deepEqual((await found()).sort(), drifts);
  const [size] = (await world.servers.listDrifts(systemActor, null)).filter(({ kind }) => kind === 'size');
  assert.equal(size?.detail, '1 vCPU and 512 MiB instead of 1 vCPU and 2048 MiB.');

  for (const drift of await world.servers.listDrifts(systemActor, null))
    if (drift.kind !== 'size')
      await assert.rejects(world.servers.mendDrift(systemActor, drift), /has to be mended at the node/);

  isAway = true;
  assert.equal(await look(), 0);
  assert.deepEqual((await found()).sort(), drifts, 'a node that is away keeps what was seen');
  isAway = false;
  await look();
  const again = (await world.servers.listDrifts(systemActor, null)).find(({ kind }) => kind === 'size');
  assert.deepEqual(again?.seenAt, size?.seenAt, 'since its first sight');

  await atTheNode(`delete from simulated_guests where name = 'vm-4040'`);
  await look();
  assert.ok(!(await found()).includes('vm-4040 stray'));
});

test('sizes are mended by a restart at an operator’s request, never by themselves, and cost nothing', async () => {
  const { tenant } = await world.createCustomer('Mended');
  const { serverId } = await world.deploy(tenant, 'mended');
  await atTheNode(`update simulated_guests set vcpus = 7 where name = 'vm-${serverId}'`);
  await look();
  const memory = async () =>
    (await atTheNode(`select vcpus, power from simulated_guests where name = 'vm-${serverId}'`)).rows[0];
  assert.equal((await memory()).vcpus, 7);
  const drift = (await world.servers.listDrifts(systemActor, null)).find(
    ({ guest }) => guest === `vm-${serverId}`,
  )!;
  await chargeServerHours(world.database.db);
  const balance = await world.billing.balanceOf(systemActor, tenant.id);
  await world.servers.mendDrift(systemActor, drift);
  assert.equal(
    await look()
      .then(found)
      .then((all) => all.includes(`vm-${serverId} size`)),
    false,
    'it is changing',
  );
  await world.jobs.drain();
  assert.deepEqual(await memory(), { vcpus: 1, power: 'on' });
  await look();
  assert.ok(!(await found()).some((one) => one.startsWith(`vm-${serverId} `)));
  assert.equal(await world.billing.balanceOf(systemActor, tenant.id), balance);
  await assert.rejects(world.servers.mendDrift(systemActor, drift), /not there any more/);
});

test('a node whose settings do not serve keeps no other node from being compared', async () => {
  const { tenant } = await world.createCustomer('Beside');
  const { serverId } = await world.deploy(tenant, 'beside');
  const sizes = {
    vcpus: 4,
    memoryMb: 8_192,
    diskGb: 100,
    uri: null,
    storagePool: null,
    bridge: 'br0',
    networkBridges: null,
  };
  await world.clusters.addNode(systemActor, { clusterId: world.clusterId, name: 'a-broken', ...sizes });
  await atTheNode(`update simulated_guests set vcpus = 9 where name = 'vm-${serverId}'`);
  const hypervisors: typeof world.hypervisors = {
    ...world.hypervisors,
    of(node) {
      if (node.name === 'a-broken') throw new CodedError('hypervisor.refused', 'its URI names a program');
      return world.hypervisors.of(node);
    },
  };
  await findDrift({ ...world, hypervisors, reporter: world.watch.reporter });
  assert.ok((await found()).includes(`vm-${serverId} size`));
});
