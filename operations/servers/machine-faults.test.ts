import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '#common/clock/index.ts';
import { CodedError } from '#common/errors/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import { systemActor } from '#operations/accounts/index.ts';
import { ensureImage, ensurePlan } from '#operations/catalog/index.ts';
import type { HypervisorDriver } from '#operations/hypervisors/index.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { createJobRunner } from '#service-kit/jobs/index.ts';
import { chargeServerHours } from './index.ts';

const calls = ['readPower', 'signalShutdown', 'rebuildGuest', 'resizeGuest', 'setPower'] as const;
const rescueCalls = ['rescueGuest', 'endRescue', 'changeIso', 'setPower'] as const;
const snapshotCalls = ['createSnapshot', 'restoreSnapshot', 'setPower', 'deleteSnapshot'] as const;
type Call = (typeof calls | typeof rescueCalls | typeof snapshotCalls)[number];

/** Where the worker dies next: before or after the hypervisor has carried the call out. */
let death: { call: Call; isAfter: boolean } | null = null;

function mortal(usual: HypervisorDriver): HypervisorDriver {
  const wrap =
    (call: Call) =>
    async (...given: unknown[]) => {
      const isHere = death?.call === call;
      const isAfter = death?.isAfter ?? false;
      if (isHere && !isAfter) {
        death = null;
        throw new Error('killed');
      }
      const result = await (usual[call] as (...given: unknown[]) => Promise<unknown>)(...given);
      if (isHere && isAfter) {
        death = null;
        throw new Error('killed');
      }
      return result;
    };
  const all = [...calls, ...rescueCalls, ...snapshotCalls];
  return { ...usual, ...Object.fromEntries(all.map((call) => [call, wrap(call)])) } as HypervisorDriver;
}

/** As libvirt copies: a guest that is off is on for it, and once it is off again nothing is known of the copy. */
function forgetful(usual: HypervisorDriver): HypervisorDriver {
  const copied = new Set<number>();
  return {
    ...usual,
    async createSnapshot(name, snapshot) {
      if (copied.has(snapshot) && (await usual.readPower(name)) === 'off')
        throw new CodedError('hypervisor.refused', 'The copy broke off.');
      const copy = await usual.createSnapshot(name, snapshot);
      copied.add(snapshot);
      await usual.setPower(name, 'on');
      return copy;
    },
  };
}

async function seed(world: World): Promise<void> {
  await ensureImage(world.database.db, { slug: 'debian-13', name: 'Debian 13', family: 'debian' });
  await ensureImage(world.database.db, {
    ...{ slug: 'rescue-13', name: 'Rescue 13', family: 'debian', kind: 'rescue' },
  });
  await ensureImage(world.database.db, { slug: 'tools', name: 'Tools', family: 'windows', kind: 'iso' });
  await ensurePlan(world.database.db, {
    ...{ slug: 'large', name: 'Large', vcpus: 2, memoryMb: 4_096, diskGb: 80 },
    ...{ hourlyQuanta: 200, monthlyCapQuanta: 120_000 },
  });
}

/** Until nothing is left to do, as time would. */
async function settle(world: World, jobs: Pick<World['jobs'], 'drain'> = world.jobs): Promise<void> {
  for (let pass = 0; pass < 6; pass += 1) {
    await world.database.pool.query(
      'update jobs set run_at = svc_now(), claimed_until = null where finished_at is null',
    );
    await jobs.drain();
  }
}

test('a worker that dies at any call of a rebuild or a resize leaves one disk, one plan and one charge', async () => {
  await using world = await createWorld({ hypervisor: mortal });
  await seed(world);
  const { tenant } = await world.createCustomer('Mortal');
  for (const call of calls) {
    for (const isAfter of [false, true]) {
      const title = `${call}, ${isAfter ? 'after' : 'before'}`;
      const { serverId } = await world.deploy(tenant, 'mortal');
      await chargeServerHours(world.database.db);
      const before = await world.servers.findServer(systemActor, null, serverId);
      const balance = await world.billing.balanceOf(systemActor, tenant.id);

      death = { call, isAfter };
      await world.servers.rebuildServer(systemActor, null, serverId, { image: 'debian-13' });
      await settle(world);
      const resize = await world.servers.resizeServer(systemActor, null, serverId, { plan: 'large' });
      await settle(world);
      assert.equal(death, null, title);
      const after = await world.servers.findServer(systemActor, null, serverId);
      const { imageSlug, planSlug, powerState, currentAction, addresses } = after!;
      assert.deepEqual(
        [imageSlug, planSlug, powerState, currentAction],
        ['debian-13', 'large', 'running', null],
        title,
      );
      assert.deepEqual(addresses, before!.addresses);
      assert.equal((await world.servers.findAction(systemActor, null, resize.action.id))?.status, 'success');
      await chargeServerHours(world.database.db);
      assert.equal(balance - (await world.billing.balanceOf(systemActor, tenant.id)), 140, title);
      const { rows } = await world.database.pool.query(
        `select g.vcpus, g.memory_mb, g.disk_gb, r.memory_mb as room, g.rebuild = a.id as "isOfAction"
         from simulated_guests g
         join node_reservations r on r.server_id = $1 and r.released_at is null
         join server_actions a on a.server_id = $1 and a.command = 'rebuild'
         where g.name = 'vm-' || $1::bigint`,
        [serverId],
      );
      assert.deepEqual(
        rows,
        [{ vcpus: 2, memory_mb: 4_096, disk_gb: 80, room: 4_096, isOfAction: true }],
        title,
      );
      await world.servers.destroyServer(systemActor, null, serverId);
      await settle(world);
    }
  }
});

test('a worker that dies at any call of a snapshot, its restore or its deletion leaves one copy, one disk, and then nothing', async () => {
  await using world = await createWorld({ hypervisor: (usual) => mortal(forgetful(usual)) });
  await seed(world);
  const { tenant } = await world.createCustomer('Snapshots');
  const left = async () =>
    (
      await world.database.pool.query(
        'select id from server_snapshots union all select snapshot from simulated_snapshots',
      )
    ).rows;
  const powerOf = async (serverId: number) =>
    (
      await world.database.pool.query('select power from simulated_guests where name = $1', [
        `vm-${serverId}`,
      ])
    ).rows[0].power;
  for (const call of snapshotCalls)
    for (const isAfter of [false, true]) {
      const title = `${call}, ${isAfter ? 'after' : 'before'}`;
      const { serverId } = await world.deploy(tenant, 'mortal');
      await world.servers.changePower(systemActor, null, serverId, { command: 'stop' });
      await settle(world);
      death = { call, isAfter };
      const { id } = await world.servers.createSnapshot(systemActor, null, serverId, 'kept');
      await settle(world);
      const stopped = await world.servers.findServer(systemActor, null, serverId);
      assert.deepEqual([stopped?.powerState, stopped?.currentAction], ['stopped', null], title);
      assert.equal((await world.servers.findSnapshot(systemActor, null, id))?.state, 'ready', title);
      assert.equal(await powerOf(serverId), 'off', title);
      await world.servers.rebuildServer(systemActor, null, serverId, { image: 'debian-13' });
      await settle(world);
      const { action } = await world.servers.restoreSnapshot(systemActor, null, id);
      await settle(world);
      const server = await world.servers.findServer(systemActor, null, serverId);
      assert.deepEqual([server?.imageSlug, server?.powerState], ['debian-12', 'running'], title);
      const { rows } = await world.database.pool.query(
        'select image, rebuild, power from simulated_guests where name = $1',
        [`vm-${serverId}`],
      );
      assert.deepEqual(rows, [{ image: 'debian-12', rebuild: action.id, power: 'on' }], title);
      await world.servers.deleteSnapshot(systemActor, null, id);
      await settle(world);
      assert.equal(death, null, title);
      assert.deepEqual(await left(), [], title);
    }
});

test('a worker that dies at any call of a rescue, its end or an ISO leaves the server where it was asked to be', async () => {
  await using world = await createWorld({ hypervisor: mortal });
  await seed(world);
  const { tenant } = await world.createCustomer('Rescued');
  const { serverId } = await world.deploy(tenant, 'mortal');
  for (const call of rescueCalls)
    for (const isAfter of [false, true]) {
      const title = `${call}, ${isAfter ? 'after' : 'before'}`;
      death = { call, isAfter };
      for (const isRescued of [true, false]) {
        if (isRescued) await world.servers.rescueServer(systemActor, null, serverId, {});
        else await world.servers.unrescueServer(systemActor, null, serverId);
        await settle(world);
        if (!isRescued) {
          await world.servers.attachIso(systemActor, null, serverId, 'tools');
          await settle(world);
          const attached = await world.servers.findServer(systemActor, null, serverId);
          assert.equal(attached?.iso?.slug, 'tools', title);
          await world.servers.detachIso(systemActor, null, serverId);
          await settle(world);
        }
        const server = await world.servers.findServer(systemActor, null, serverId);
        assert.deepEqual(
          [server?.isRescued, server?.iso, server?.powerState, server?.currentAction],
          [isRescued, null, 'running', null],
          title,
        );
        const { rows } = await world.database.pool.query(
          'select power, rescue_image, iso from simulated_guests where name = $1',
          [`vm-${serverId}`],
        );
        assert.deepEqual(
          rows,
          [{ power: 'on', rescue_image: isRescued ? 'rescue-13' : null, iso: null }],
          title,
        );
      }
      assert.equal(death, null, title);
    }
});

test('a node that refuses again and again', async (t) => {
  let refusals = 20;
  let isAway = false;
  const removed: number[] = [];
  await using world = await createWorld({
    hypervisor: (usual) => ({
      ...usual,
      async rebuildGuest(...given) {
        if (!isAway) await usual.rebuildGuest(...given);
        throw new Error('no memory to start it');
      },
      async rescueGuest(...given) {
        if (!isAway) await usual.rescueGuest(...given);
        throw new Error('no memory to start it');
      },
      async changeIso(...given) {
        if (!isAway) await usual.changeIso(...given);
        throw new Error('the tray is locked');
      },
      async readIso(...given) {
        if (isAway) throw new Error('no contact with the node');
        return usual.readIso(...given);
      },
      async readRescue(...given) {
        if (isAway) throw new Error('no contact with the node');
        return usual.readRescue(...given);
      },
      async readRebuild(...given) {
        if (isAway) throw new Error('no contact with the node');
        return usual.readRebuild(...given);
      },
      async removeNetwork(networkId) {
        refusals -= 1;
        if (refusals >= 0) throw new Error('no contact with the node');
        removed.push(networkId);
      },
    }),
  });
  await seed(world);
  const { tenant } = await world.createCustomer('Refused');

  await t.test(
    'a rebuild that ends once the disk is another one leaves the row with the image of that disk',
    async () => {
      const { serverId } = await world.deploy(tenant, 'unstarted');
      const { action } = await world.servers.rebuildServer(systemActor, null, serverId, {
        image: 'debian-13',
      });
      await settle(world);
      const ended = await world.servers.findAction(systemActor, null, action.id);
      assert.match(
        JSON.stringify(ended),
        /The server has its other disk, but the hypervisor did not start it/,
      );
      const server = await world.servers.findServer(systemActor, null, serverId);
      assert.deepEqual([server?.imageSlug, server?.currentAction], ['debian-13', null]);
    },
  );

  await t.test(
    'a rebuild that ends at a node which does not answer leaves the row with the image of the disk once it does',
    async () => {
      for (const isReplaced of [true, false]) {
        const { serverId } = await world.deploy(tenant, 'unasked');
        isAway = !isReplaced;
        const { action } = await world.servers.rebuildServer(systemActor, null, serverId, {
          image: 'debian-13',
        });
        await world.jobs.drain();
        isAway = true;
        for (let attempt = 1; attempt < 5; attempt += 1) {
          await world.database.pool.query('update jobs set run_at = svc_now() where finished_at is null');
          await world.jobs.drain();
        }
        const ended = await world.servers.findAction(systemActor, null, action.id);
        assert.match(JSON.stringify(ended), /is seen when it does/);
        const imageOf = async () => (await world.servers.findServer(systemActor, null, serverId))?.imageSlug;
        await settle(world);
        assert.equal(await imageOf(), 'debian-12');
        isAway = false;
        await settle(world);
        assert.equal(await imageOf(), isReplaced ? 'debian-13' : 'debian-12');
      }
    },
  );

  await t.test(
    'a rescue or an ISO that ends at a node which does not answer is in the row once it does, where it was done',
    async () => {
      for (const isDone of [true, false]) {
        const { serverId } = await world.deploy(tenant, 'unrescued');
        const stands = async () => {
          const found = await world.servers.findServer(systemActor, null, serverId);
          return [found?.iso?.slug, found?.isRescued];
        };
        for (const [ask, end] of [
          [() => world.servers.attachIso(systemActor, null, serverId, 'tools'), ['tools', false]],
          [() => world.servers.detachIso(systemActor, null, serverId), [undefined, false]],
          [() => world.servers.rescueServer(systemActor, null, serverId, {}), [undefined, true]],
        ] as const) {
          const before = await stands();
          isAway = !isDone;
          await ask();
          await world.jobs.drain();
          isAway = true;
          await settle(world);
          assert.deepEqual(await stands(), before);
          isAway = false;
          await settle(world);
          assert.deepEqual(await stands(), isDone ? end : before);
        }
      }
    },
  );

  await t.test('API-4.7: a deleted network is removed from its node in the end', async () => {
    const { id } = await world.networks.createNetwork(systemActor, { tenantId: tenant.id, name: 'refused' });
    await settle(world);
    await world.networks.deleteNetwork(systemActor, null, id);
    for (let pass = 0; pass < 4; pass += 1) await settle(world);
    assert.deepEqual(removed, [id]);
  });
});

test('a worker that sleeps until its snapshot has been taken and deleted copies the disk for nothing, and leaves no copy', async () => {
  const asleep = Promise.withResolvers<void>();
  const sleeping = Promise.withResolvers<void>();
  let isFirst = true;
  await using world = await createWorld({
    hypervisor: (usual) => ({
      ...usual,
      async createSnapshot(...given) {
        if (isFirst) {
          isFirst = false;
          asleep.resolve();
          await sleeping.promise;
        }
        return usual.createSnapshot(...given);
      },
    }),
  });
  const { tenant } = await world.createCustomer('Drowsy');
  const { serverId } = await world.deploy(tenant, 'drowsy');
  const { id } = await world.servers.createSnapshot(systemActor, null, serverId, undefined);
  const late = world.jobs.drain();
  await asleep.promise;
  const awake = createJobRunner({
    db: () => world.database.db,
    handlers: world.servers.work.jobHandlers!,
    clock: systemClock,
    reporter: silentReporter,
  });
  await settle(world, awake);
  assert.equal((await world.servers.findSnapshot(systemActor, null, id))?.state, 'ready');
  await world.servers.deleteSnapshot(systemActor, null, id);
  await settle(world, awake);
  sleeping.resolve();
  await late;
  assert.deepEqual((await world.database.pool.query('select * from simulated_snapshots')).rows, []);
});

test('a worker that slept through a rebuild and the next one changes nothing when it wakes', async () => {
  const asleep = Promise.withResolvers<void>();
  const sleeping = Promise.withResolvers<void>();
  let isFirst = true;
  await using world = await createWorld({
    hypervisor: (usual) => ({
      ...usual,
      async rebuildGuest(...given) {
        if (isFirst) {
          isFirst = false;
          asleep.resolve();
          await sleeping.promise;
        }
        return usual.rebuildGuest(...given);
      },
    }),
  });
  await seed(world);
  const { tenant } = await world.createCustomer('Sleepy');
  const { serverId } = await world.deploy(tenant, 'sleepy');
  await world.servers.rebuildServer(systemActor, null, serverId, { image: 'debian-13' });
  const late = world.jobs.drain();
  await asleep.promise;
  const awake = createJobRunner({
    db: () => world.database.db,
    handlers: world.servers.work.jobHandlers!,
    clock: systemClock,
    reporter: silentReporter,
  });
  await settle(world, awake);
  const second = await world.servers.rebuildServer(systemActor, null, serverId, { image: 'debian-12' });
  await settle(world, awake);
  const guestOf = async () =>
    (await world.database.pool.query('select * from simulated_guests where name = $1', [`vm-${serverId}`]))
      .rows;
  const [guest] = await guestOf();
  assert.deepEqual([guest.image, Number(guest.rebuild)], ['debian-12', second.action.id]);
  sleeping.resolve();
  await late;
  assert.deepEqual(await guestOf(), [guest]);
  const server = await world.servers.findServer(systemActor, null, serverId);
  assert.deepEqual(
    [server?.imageSlug, server?.powerState, server?.currentAction],
    ['debian-12', 'running', null],
  );
});
