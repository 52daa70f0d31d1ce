import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { systemClock } from '#common/clock/index.ts';
import { CodedError } from '#common/errors/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import { systemActor } from '#operations/accounts/index.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { moveWorldClock } from '#operations/testing/world-time.ts';
import { createJobRunner } from '#service-kit/jobs/index.ts';

const order = { plan: 'small', image: 'debian-12' };

/** Makes every waiting job due now, and every claimed one free, as time would. */
const releaseJobs = (world: World) =>
  world.database.pool.query(
    'update jobs set run_at = svc_now(), claimed_until = null where finished_at is null',
  );

const guestsOf = async (world: World) =>
  (await world.database.pool.query('select name, power from simulated_guests order by name')).rows;

for (const moment of ['before', 'after'] as const) {
  test(`a worker that dies ${moment} the guest is made leaves one guest and one set of addresses`, async () => {
    let deaths = 3;
    await using world = await createWorld({
      hypervisor: (usual) => ({
        ...usual,
        async ensureGuest(guest, step) {
          if (moment === 'after') await usual.ensureGuest(guest, step);
          deaths -= 1;
          if (deaths >= 0) throw new Error('killed');
          return usual.ensureGuest(guest, step);
        },
      }),
    });
    const { tenant } = await world.createCustomer('Killed');
    const { serverId } = await world.ordering.createServer(systemActor, { tenantId: tenant.id, ...order });
    for (let i = 0; i < 4; i += 1) {
      await world.jobs.drain();
      await releaseJobs(world);
    }
    const server = await world.servers.findServer(systemActor, null, serverId);
    assert.equal(server?.provisioningState, 'ready');
    assert.deepEqual(await guestsOf(world), [{ name: `vm-${serverId}`, power: 'on' }]);
    assert.equal((await world.addresses.listAllocationsOfServers([serverId])).length, 2);
  });
}

test('a worker that was overtaken changes nothing, and removes the guest that it made too late', async () => {
  const sleeping = Promise.withResolvers<void>();
  const asleep = Promise.withResolvers<void>();
  let calls = 0;
  await using world = await createWorld({
    hypervisor: (usual) => ({
      ...usual,
      async ensureGuest(guest, step) {
        calls += 1;
        if (calls === 1) {
          asleep.resolve();
          await sleeping.promise;
        }
        return usual.ensureGuest(guest, step);
      },
    }),
  });
  const { tenant } = await world.createCustomer('Sleepy');
  const { serverId } = await world.ordering.createServer(systemActor, { tenantId: tenant.id, ...order });
  const first = world.jobs.drain();
  await asleep.promise;
  await releaseJobs(world);
  const second = createJobRunner({
    db: () => world.database.db,
    handlers: world.servers.work.jobHandlers!,
    clock: systemClock,
    reporter: silentReporter,
  });
  await second.drain();
  await world.servers.destroyServer(systemActor, tenant.id, serverId);
  await second.drain();
  sleeping.resolve();
  await first;
  assert.deepEqual(await guestsOf(world), []);
  const { rows } = await world.database.pool.query('select provisioning_state as state from servers');
  assert.deepEqual(rows, [{ state: 'deleted' }]);
});

test('API-2.3.c: provisioning that keeps failing ends in failed and waits for an operator', async () => {
  let isBroken = true;
  await using world = await createWorld({
    hypervisor: (usual) => ({
      ...usual,
      async ensureGuest(guest, step) {
        if (isBroken) throw new Error('no contact with node-7');
        return usual.ensureGuest(guest, step);
      },
    }),
  });
  const { tenant } = await world.createCustomer('Unlucky');
  const { serverId } = await world.ordering.createServer(systemActor, { tenantId: tenant.id, ...order });
  for (let attempt = 0; attempt < 8; attempt += 1) {
    await world.jobs.drain();
    await releaseJobs(world);
  }
  const failed = await world.servers.findServer(systemActor, null, serverId);
  assert.equal(failed?.provisioningState, 'failed');
  assert.equal(failed?.currentAction, null);
  isBroken = false;
  await world.servers.retryProvisioning(systemActor, serverId);
  await world.jobs.drain();
  assert.equal((await world.servers.findServer(systemActor, null, serverId))?.provisioningState, 'ready');
});

test('API-3.4: an operator resolves what failed: repaired only when its guest runs, removed with all that it held', async () => {
  await using world = await createWorld({
    hypervisor: (usual) => ({
      ...usual,
      async ensureGuest() {
        throw new CodedError('hypervisor.refused', 'node-7 has no image of this name');
      },
    }),
  });
  const { tenant, owner } = await world.createCustomer('Resolved');
  const fail = async () => {
    const { serverId } = await world.ordering.createServer(systemActor, { tenantId: tenant.id, ...order });
    await world.jobs.drain();
    return serverId;
  };
  const stateOf = async (id: number) =>
    (await world.servers.findServer(systemActor, null, id))?.provisioningState;
  const [repaired, removed] = [await fail(), await fail()];
  assert.equal(await stateOf(repaired), 'failed');
  assert.match(
    (await world.servers.findFailureDetail(systemActor, repaired)) ?? '',
    /node-7 has no image/,
    'operators read what the hypervisor said',
  );
  const customer = (await world.accounts.customerActorOf(owner.id))!;
  await assert.rejects(world.servers.resolveProvisioning(customer, repaired, 'remove'), /operator/);
  await assert.rejects(world.servers.destroyServer(customer, tenant.id, removed), /operator/);
  await assert.rejects(
    world.servers.resolveProvisioning(systemActor, repaired, 'repaired'),
    /no running guest/,
  );
  assert.equal(await stateOf(repaired), 'failed', 'nothing was changed');
  await world.database.pool.query(
    `insert into simulated_guests (name, mac_address, addresses, power) values ($1, '52:54:00:00:00:01', '{}', 'on')`,
    [`vm-${repaired}`],
  );
  await world.servers.resolveProvisioning(systemActor, repaired, 'repaired');
  const server = await world.servers.findServer(systemActor, null, repaired);
  assert.deepEqual(
    [server?.provisioningState, server?.powerState, server?.failure, server?.currentAction],
    ['ready', 'running', null, null],
  );
  await world.servers.resolveProvisioning(systemActor, removed, 'remove');
  await world.jobs.drain();
  assert.equal(await stateOf(removed), undefined);
  assert.deepEqual(await world.addresses.listAllocationsOfServers([removed]), []);
  const [node] = await world.clusters.listNodes(systemActor, null);
  assert.equal(node?.guestCount, 1);
  await assert.rejects(world.servers.resolveProvisioning(systemActor, repaired, 'remove'), /has not failed/);
});

test('a guest that is made and stays silent is asked about again, and has failed when its time is over', async () => {
  let isSilent = true;
  await using world = await createWorld({
    hypervisor: (usual) => ({
      ...usual,
      async ensureGuest(guest, step) {
        await usual.ensureGuest(guest, step);
        return isSilent ? 'booting' : 'ready';
      },
    }),
  });
  const { tenant } = await world.createCustomer('Silent');
  const make = async () =>
    (await world.ordering.createServer(systemActor, { tenantId: tenant.id, ...order })).serverId;
  const read = (id: number) => world.servers.findServer(systemActor, null, id);
  const slow = await make();
  await world.jobs.drain();
  assert.equal((await read(slow))?.provisioningState, 'provisioning', 'not ready before it is addressable');
  isSilent = false;
  await releaseJobs(world);
  await world.jobs.drain();
  assert.equal((await read(slow))?.provisioningState, 'ready');
  isSilent = true;
  const silent = await make();
  await world.jobs.drain();
  await moveWorldClock(world.database, '4 minutes');
  await world.jobs.drain();
  assert.equal((await read(silent))?.failure?.code, 'guest_silent');
});

test('workers killed with SIGKILL at any moment lose no order and double no guest', async () => {
  await using world = await createWorld();
  const { tenant } = await world.createCustomer('Storm');
  for (let i = 0; i < 3; i += 1)
    await world.ordering.createServer(systemActor, { tenantId: tenant.id, ...order });
  const isDone = async () =>
    (await world.servers.countServers(systemActor, null, {
      order: 'oldest',
      limit: 1,
      statuses: ['running'],
    })) === 3;
  let kills = 0;
  while (!(await isDone())) {
    const worker = startWorker(world.database.url);
    const ended = once(worker, 'exit');
    await once(worker.stdout!, 'data');
    // At another step of the work each time, and later each time, so that it ends on a slow machine too.
    await systemClock.wait(kills * 60);
    worker.kill('SIGKILL');
    await ended;
    kills += 1;
    assert.ok(kills < 50, 'the orders are finished some time');
    // What the dead worker held is free after its claim; here that is told instead of waited for.
    await releaseJobs(world);
  }
  const guests = await guestsOf(world);
  assert.equal(guests.length, 3);
  assert.ok(guests.every((guest) => guest.power === 'on'));
  const { rows } = await world.database.pool.query(
    `select count(*) as held, count(distinct address) as addresses,
       (select count(*) from server_actions where status <> 'success') as unfinished
     from allocations where released_at is null`,
  );
  assert.deepEqual(rows, [{ held: 6, addresses: 6, unfinished: 0 }]);
});

function startWorker(url: string): ChildProcess {
  const file = fileURLToPath(new URL('./testing/worker.ts', import.meta.url));
  return spawn(process.execPath, [file, url], { stdio: ['ignore', 'pipe', 'inherit'] });
}
