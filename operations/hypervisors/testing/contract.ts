/** What every driver promises, tried on the hypervisor itself. A driver's test makes the world and calls this once. */

import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { Duplex } from 'node:stream';
import type { TestContext } from 'node:test';
import { hasCode } from '#common/errors/index.ts';
import { capabilities } from '#contracts/capabilities.ts';
import {
  type GuestDefinition,
  type GuestProgress,
  type HypervisorDriver,
  isPermanentRefusal,
} from '../guest.ts';

/** A guest as it stands at the hypervisor, looked at without the driver. */
export interface GuestFacts {
  image: string | null;
  /** Image of the rescue disk that it starts from; null: its own disk. */
  rescue: string | null;
  /** The ISO in its CD drive, now and at its next start. */
  iso: string | null;
  /** Another text for another disk. */
  disk: string;
  vcpus: number | null;
  memoryMb: number | null;
  diskGb: number | null;
  /** MACs of all its NICs. */
  macs: string[];
  /** What its public NIC may send from, the link-local address left out. */
  addresses: string[];
}

interface DriverWorld {
  driver: HypervisorDriver;
  guest: GuestDefinition;
  /** Another guest of the same site. */
  neighbour: GuestDefinition;
  /** An image besides that of the guest. */
  otherImage: string;
  /** Null when there is no such guest. */
  inspect(name: string): Promise<GuestFacts | null>;
  /** What is left of all guests: empty when there is none. */
  listLeftovers(): Promise<string[]>;
  /** False where the images of the world do not boot: their guests are made, run, and say nothing. */
  isBootable: boolean;
  /** False for a hypervisor that takes every image for there. */
  knowsImages: boolean;
  /** The speed limit of the public NIC that the guest's next start takes, in Mbit/s; null where the node can't keep one. */
  readSpeed: ((name: string) => Promise<number | null>) | null;
  /** Whether root in the guest has this password; null where nothing in the guest can set one. */
  hasRootPassword: ((name: string, password: string) => Promise<boolean>) | null;
}

const noStep = async () => {};
const networkId = 31;

export async function checkContract(t: TestContext, world: DriverWorld): Promise<void> {
  const { driver, guest, neighbour } = world;
  const { name } = guest;
  /** A guest that boots is asked about again until it is ready. */
  const untilReady = async (ask: () => Promise<GuestProgress>) => {
    const last = world.isBootable ? 'ready' : 'booting';
    for (;;) {
      const progress = await ask();
      if (progress === last) return;
      assert.ok(progress === 'copying' || world.isBootable, progress);
      await new Promise((wake) => setTimeout(wake, 200));
    }
  };
  const can = (capability: (typeof capabilities)[number]) => driver.capabilities.includes(capability);
  const facts = async (of = name) => (await world.inspect(of))!;
  const nic = { networkId, segment: null, mac: '52:56:00:00:00:05', address: '10.20.0.5', prefixLength: 24 };

  await t.test('a driver names its capabilities out of the closed list', () => {
    for (const capability of driver.capabilities) assert.ok(capabilities.includes(capability), capability);
  });

  await t.test('a node that has what it needs is good by its check', async () => {
    // A machine with much other work may take longer than a check waits.
    for (let looks = 1; ; looks += 1) {
      const checks = await driver.checkNode([`${guest.imageSlug}.qcow2`]);
      const faults = checks.filter(({ state }) => state === 'bad' || state === 'unknown');
      if (checks.length > 0 && faults.length === 0) break;
      assert.ok(
        looks < 5 && faults.some(({ text }) => /no answer within/.test(text)),
        JSON.stringify(faults),
      );
    }
    assert.deepEqual(await world.listLeftovers(), []);
  });

  await t.test(
    'a guest is made once, however often it is asked for, with its image, its sizes and its MAC',
    async () => {
      assert.equal(await driver.readPower(name), null);
      const steps: number[] = [];
      await untilReady(() => driver.ensureGuest(guest, async (percent) => void steps.push(percent)));
      assert.ok(steps.length > 0 && steps.every((percent) => percent > 0 && percent < 100));
      const made = await facts();
      await untilReady(() => driver.ensureGuest(guest, noStep));
      assert.deepEqual(await facts(), made);
      const { imageSlug: image, vcpus, memoryMb, diskGb, mac } = guest;
      const addresses = guest.addresses.map(({ address }) => address);
      assert.deepEqual(made, {
        ...{ image, rescue: null, iso: null, vcpus, memoryMb, diskGb, addresses },
        ...{ disk: made.disk, macs: [mac] },
      });
      assert.deepEqual(await driver.inspectGuests(), [{ name, vcpus, memoryMb, macs: [mac] }]);
      assert.deepEqual(
        (await driver.observeGuests()).map((seen) => [seen.name, seen.power]),
        [[name, 'on']],
      );
    },
  );

  await t.test(
    'power is switched, each way as often as one likes, and a guest that was off is on after a restart',
    async () => {
      for (const power of ['off', 'off', 'on', 'on'] as const) {
        await driver.setPower(name, power);
        assert.equal(await driver.readPower(name), power);
      }
      for (const how of ['acpi', 'reset'] as const) {
        await driver.restart(name, how);
        assert.equal(await driver.readPower(name), 'on');
      }
      await driver.signalShutdown(name);
      await driver.setPower(name, 'off');
      await driver.signalShutdown(name);
      assert.equal((await driver.observeGuests())[0]?.power, 'off');
      await driver.restart(name, 'acpi');
      assert.equal(await driver.readPower(name), 'on');
    },
  );

  await t.test(
    'a NIC on a private network is plugged in and taken away, each as often as one likes',
    async () => {
      for (const _ of [1, 2])
        assert.deepEqual(await driver.attachInterface(name, nic), { requiresReboot: false });
      assert.deepEqual((await facts()).macs.sort(), [guest.mac, nic.mac].sort());
      for (const _ of [1, 2]) await driver.detachInterface(name, nic);
      await driver.detachInterface('vm-404', nic);
      assert.deepEqual((await facts()).macs, [guest.mac]);
    },
  );

  await t.test(
    'a private network holds exactly its members, and is removed as often as one likes',
    async () => {
      const other = { ...nic, mac: '52:56:00:00:00:06', address: '10.20.0.6' };
      const alone = { ...neighbour, mac: null, addresses: [], privateInterfaces: [other] };
      await driver.ensureGuest(alone, noStep);
      assert.deepEqual((await facts(neighbour.name)).macs, [other.mac]);
      await driver.syncNetwork(networkId, [
        { guest: name, interface: nic },
        { guest: neighbour.name, interface: other },
      ]);
      assert.deepEqual((await facts()).macs.sort(), [guest.mac, nic.mac].sort());
      await driver.syncNetwork(networkId, [{ guest: name, interface: nic }]);
      assert.deepEqual((await facts(neighbour.name)).macs, []);
      await driver.ensureGone(neighbour.name);
      await driver.syncNetwork(networkId, []);
      for (const _ of [1, 2]) await driver.removeNetwork(networkId);
      assert.deepEqual((await facts()).macs, [guest.mac]);
    },
  );

  await t.test(
    'the console of a guest that runs opens, as often as one likes, and of one that is off it does not',
    async () => {
      const [kind] = driver.consoleKinds;
      assert.equal(kind !== undefined, can('console'));
      if (kind === undefined) return assert.rejects(driver.openConsole(name, 'text'), isPermanentRefusal);
      const consoles: Duplex[] = [];
      for (const _ of [1, 2]) {
        const console = await driver.openConsole(name, kind);
        const [greeting] = (await once(console, 'data')) as [Buffer];
        assert.match(String(greeting), kind === 'vnc' ? /^RFB 003\.008\n/ : /login: /);
        consoles.push(console);
      }
      await driver.setPower(name, 'off');
      for (const kind of driver.consoleKinds)
        await assert.rejects(driver.openConsole(name, kind), isPermanentRefusal);
      await driver.setPower(name, 'on');
      for (const console of consoles) console.destroy();
    },
  );

  await t.test('a firewall is applied and lifted, or refused where nothing filters', async () => {
    const plan = { inboundPolicy: 'drop', outboundPolicy: 'accept', rules: [] } as const;
    for (const next of [plan, plan, null, null]) {
      const applied = driver.applyFirewall(name, next);
      if (can('firewall')) await applied;
      else await assert.rejects(applied, isPermanentRefusal);
    }
  });

  await t.test(
    'addresses come and go, running or off, as often as one likes, and stay over a power cycle',
    async () => {
      const extra = { ...guest.addresses[0]!, address: '203.0.113.19' };
      const { addresses } = guest;
      const of = { name, mac: guest.mac! };
      if (!can('addresses'))
        return assert.rejects(driver.setAddresses({ ...of, addresses }), isPermanentRefusal);
      const present = async () => (await facts()).addresses.toSorted();
      const textOf = (list: typeof addresses) => list.map(({ address }) => address).toSorted();
      for (const power of ['on', 'off'] as const) {
        await driver.setPower(name, power);
        for (const next of [[...addresses, extra], [...addresses, extra], addresses, [...addresses, extra]]) {
          await driver.setAddresses({ ...of, addresses: next });
          assert.deepEqual(await present(), textOf(next), power);
        }
      }
      await driver.setPower(name, 'on');
      assert.deepEqual(await present(), textOf([...addresses, extra]));
      await driver.setAddresses({ ...of, addresses });
    },
  );

  await t.test('a rebuild gives another disk once, and keeps MAC, private NICs and sizes', async () => {
    if (!can('rebuild')) return assert.rejects(driver.rebuildGuest(guest, 11, noStep), isPermanentRefusal);
    await driver.attachInterface(name, nic);
    const before = await facts();
    if (world.knowsImages) {
      const absent = { ...guest, imageSlug: 'no-such-image' };
      await assert.rejects(
        driver.rebuildGuest(absent, 10, noStep),
        (error) => isPermanentRefusal(error) && /no-such-image/.test(String(error)),
      );
      assert.deepEqual([await facts(), await driver.readPower(name)], [before, 'on'], 'it runs as before');
    }
    const wanted = { ...guest, imageSlug: world.otherImage };
    await untilReady(() => driver.rebuildGuest(wanted, 11, noStep));
    const rebuilt = await facts();
    assert.notEqual(rebuilt.disk, before.disk);
    assert.deepEqual(rebuilt, { ...before, image: world.otherImage, disk: rebuilt.disk });
    await driver.setPower(name, 'off');
    await untilReady(() => driver.rebuildGuest(wanted, 11, noStep));
    assert.deepEqual(
      [await facts(), await driver.readPower(name)],
      [rebuilt, 'on'],
      'the same disk, switched on',
    );
    await assert.rejects(driver.rebuildGuest(guest, 10, noStep), isPermanentRefusal);
    assert.deepEqual([await driver.readRebuild(name), await driver.readRebuild('vm-404')], [11, null]);
    assert.deepEqual(await facts(), rebuilt, 'an older rebuild that comes late changes nothing');
    await untilReady(() => driver.rebuildGuest(guest, 12, noStep));
    assert.equal((await facts()).image, guest.imageSlug);
    await driver.detachInterface(name, nic);
  });

  await t.test(
    'a snapshot keeps a disk, on or off, and gives it back as often as one likes, also when it is deleted',
    async () => {
      const nothing = [name, 404] as const;
      if (!can('snapshots')) {
        await assert.rejects(driver.createSnapshot(...nothing), isPermanentRefusal);
        await assert.rejects(driver.restoreSnapshot(...nothing, 20), isPermanentRefusal);
        return assert.rejects(driver.deleteSnapshot(...nothing), isPermanentRefusal);
      }
      const untilCopied = async (snapshot: number) => {
        for (;;) {
          const copy = await driver.createSnapshot(name, snapshot);
          if ('bytes' in copy) return copy.bytes;
          assert.ok(copy.progress >= 0 && copy.progress < 100);
          await new Promise((wake) => setTimeout(wake, 50));
        }
      };
      const before = await facts();
      assert.ok((await untilCopied(1)) > 0);
      assert.deepEqual([await facts(), await driver.readPower(name)], [before, 'on'], 'the guest goes on');
      const other = { ...guest, imageSlug: world.otherImage };
      await untilReady(() => driver.rebuildGuest(other, 13, noStep));
      await driver.setPower(name, 'off');
      for (const _ of [1, 2]) await untilCopied(2);
      await driver.setPower(name, 'off');

      for (const _ of [1, 2]) {
        await driver.restoreSnapshot(name, 1, 14);
        assert.equal(await driver.readPower(name), 'off');
      }
      const restored = await facts();
      assert.notEqual(restored.disk, before.disk);
      assert.deepEqual(restored, { ...before, disk: restored.disk });
      await driver.setPower(name, 'on');
      await driver.restoreSnapshot(name, 1, 14);
      assert.deepEqual([await facts(), await driver.readPower(name)], [restored, 'on'], 'the same disk');
      await assert.rejects(driver.restoreSnapshot(name, 2, 13), isPermanentRefusal);
      await assert.rejects(driver.restoreSnapshot(...nothing, 15), isPermanentRefusal);
      assert.deepEqual(
        [await facts(), await driver.readPower(name)],
        [restored, 'on'],
        'refused is not begun',
      );

      await driver.deleteSnapshot(name, 1);
      assert.equal((await facts()).image, guest.imageSlug, 'its disk is whole');
      await driver.restoreSnapshot(name, 2, 15);
      assert.equal((await facts()).image, world.otherImage);
      for (const _ of [1, 2]) assert.equal(await driver.deleteSnapshot(name, 1), true);
      assert.equal(await driver.deleteSnapshot(...nothing), true);
      await driver.setPower(name, 'on');
      await untilReady(() => driver.rebuildGuest(guest, 16, noStep));
      assert.equal(await driver.deleteSnapshot(name, 2), true);
      await assert.rejects(driver.restoreSnapshot(name, 2, 17), isPermanentRefusal);
      // It goes with its guest.
      await untilCopied(3);

      const large = { ...neighbour, diskGb: guest.diskGb + 1 };
      const copy = { ...large, source: { guest: name, snapshot: 3 } };
      await assert.rejects(
        driver.ensureGuest({ ...copy, source: { guest: name, snapshot: 404 } }, noStep),
        isPermanentRefusal,
      );
      await untilReady(() => driver.ensureGuest(copy, noStep));
      const { image: _, disk, ...made } = await facts(neighbour.name);
      assert.deepEqual(made, {
        ...{ rescue: null, iso: null },
        ...{ vcpus: large.vcpus, memoryMb: large.memoryMb, diskGb: large.diskGb },
        ...{ macs: [large.mac], addresses: large.addresses.map(({ address }) => address) },
      });
      assert.equal(await driver.deleteSnapshot(name, 3), true, 'the copy does not need it');
      await untilReady(() => driver.ensureGuest(copy, noStep));
      await driver.setPower(neighbour.name, 'off');
      await driver.setPower(neighbour.name, 'on');
      assert.equal((await facts(neighbour.name)).disk, disk);
      await driver.ensureGone(neighbour.name);
    },
  );

  await t.test(
    'a resize needs a guest that is off, goes up and down, and never shrinks the disk',
    async () => {
      const size = (vcpus: number, memoryMb: number, diskGb: number) => ({ vcpus, memoryMb, diskGb });
      if (!can('resize'))
        return assert.rejects(driver.resizeGuest(name, size(2, 128, 2)), isPermanentRefusal);
      const before = await facts();
      await assert.rejects(driver.resizeGuest(name, size(2, 128, 2)), isPermanentRefusal);
      await driver.setPower(name, 'off');
      for (const next of [size(2, 128, 2), size(2, 128, 2), size(1, 96, 2)]) {
        await driver.resizeGuest(name, next);
        assert.deepEqual(await facts(), { ...before, ...next });
      }
      await assert.rejects(driver.resizeGuest(name, size(2, 128, 1)), isPermanentRefusal);
      assert.deepEqual(
        await facts(),
        { ...before, ...size(1, 96, 2) },
        'nothing of a refused resize is left',
      );
      await driver.setPower(name, 'on');
      assert.deepEqual(await facts(), { ...before, ...size(1, 96, 2) });
    },
  );

  await t.test(
    'root gets another password at once where the guest can set one, else at its next boot',
    async () => {
      const changed = { ...guest, rootPassword: 'kR7wq2Vn9tYbXc4MzLd6' };
      if (!can('reset_password'))
        return assert.rejects(driver.setRootPassword(changed, 21), isPermanentRefusal);
      const holds = await driver.setRootPassword(changed, 21);
      assert.equal(holds, world.hasRootPassword === null ? 'next_boot' : 'now');
      if (world.hasRootPassword !== null) assert.ok(await world.hasRootPassword(name, changed.rootPassword));
      for (const _ of [1, 2]) await driver.forgetRootPassword(changed);
    },
  );

  await t.test(
    'an ISO goes into the CD drive and comes out, running or off, as often as one likes; a call that comes late changes nothing',
    async () => {
      if (!can('iso')) return assert.rejects(driver.changeIso(name, 'boot', 41), isPermanentRefusal);
      const before = await facts();
      if (world.knowsImages) await assert.rejects(driver.changeIso(name, 'none', 41), isPermanentRefusal);
      let change = 41;
      for (const power of ['on', 'off'] as const) {
        await driver.setPower(name, power);
        for (const iso of ['boot', null]) {
          change += 1;
          for (const _ of [1, 2]) assert.equal(await driver.changeIso(name, iso, change), 'now');
          assert.deepEqual([await facts(), await driver.readPower(name)], [{ ...before, iso }, power]);
          assert.equal(await driver.readIso(name), iso);
        }
      }
      await assert.rejects(driver.changeIso(name, 'boot', change - 1), isPermanentRefusal);
      await driver.changeIso(name, 'boot', change + 1);
      await driver.setPower(name, 'on');
      assert.deepEqual(await facts(), { ...before, iso: 'boot' });
      await driver.changeIso(name, null, change + 2);
      assert.deepEqual([await facts(), await driver.readIso('vm-404')], [before, null]);
    },
  );

  await t.test(
    'a guest is rescued and has its own disk back, each as often as one likes; a call that comes late changes nothing',
    async () => {
      const wanted = { ...guest, imageSlug: world.otherImage, rootPassword: 'mX3vTq8RzYw5LdKc7bNe' };
      if (!can('rescue')) {
        await assert.rejects(driver.rescueGuest(wanted, 31, noStep), isPermanentRefusal);
        return assert.rejects(driver.endRescue(name, 31), isPermanentRefusal);
      }
      const before = await facts();
      if (world.knowsImages) {
        const absent = { ...wanted, imageSlug: 'no-such-image' };
        await assert.rejects(driver.rescueGuest(absent, 30, noStep), isPermanentRefusal);
        assert.deepEqual([await facts(), await driver.readPower(name)], [before, 'on'], 'it runs as before');
      }
      const rescued = { ...before, rescue: world.otherImage };
      const states = async () => [await facts(), await driver.readPower(name), await driver.readRescue(name)];
      for (const _ of [1, 2]) {
        await untilReady(() => driver.rescueGuest(wanted, 31, noStep));
        assert.deepEqual(await states(), [rescued, 'on', true]);
        await driver.restart(name, 'reset');
        await driver.setPower(name, 'off');
      }
      await assert.rejects(driver.rescueGuest(wanted, 30, noStep), isPermanentRefusal);
      await assert.rejects(driver.endRescue(name, 30), isPermanentRefusal);
      assert.deepEqual(await states(), [rescued, 'off', true]);
      await driver.endRescue(name, 32);
      assert.deepEqual(await states(), [before, 'off', false]);
      await driver.setPower(name, 'on');
      await driver.endRescue(name, 32);
      await assert.rejects(driver.rescueGuest(wanted, 31, noStep), isPermanentRefusal);
      assert.deepEqual(await states(), [before, 'on', false], 'nothing is begun twice');
      // It goes with its guest.
      await untilReady(() => driver.rescueGuest(wanted, 33, noStep));
      assert.equal(await driver.readRescue('vm-404'), null);
    },
  );

  await t.test('a public NIC is limited and set free again, also of a guest that is off', async () => {
    if (!can('speed_limit')) return assert.rejects(driver.limitSpeed(name, 10), isPermanentRefusal);
    if (world.readSpeed === null) return;
    for (const power of ['on', 'off'] as const) {
      await driver.setPower(name, power);
      for (const mbit of [10, 10, 200, null, null]) {
        await driver.limitSpeed(name, mbit);
        assert.equal(await world.readSpeed(name), mbit);
      }
    }
    await driver.limitSpeed(name, 10);
    await driver.setPower(name, 'on');
    assert.equal(await world.readSpeed(name), 10, 'a start takes it');
    await driver.limitSpeed(name, null);
  });

  await t.test('what is asked of a guest that is not there is refused for good', async () => {
    for (const call of [
      () => driver.setPower('vm-404', 'on'),
      () => driver.signalShutdown('vm-404'),
      () => driver.restart('vm-404', 'reset'),
      () => driver.rebuildGuest({ ...guest, name: 'vm-404' }, 1, noStep),
      () => driver.resizeGuest('vm-404', guest),
      () => driver.createSnapshot('vm-404', 1),
      () => driver.restoreSnapshot('vm-404', 1, 1),
      () => driver.rescueGuest({ ...guest, name: 'vm-404' }, 1, noStep),
      () => driver.endRescue('vm-404', 1),
      () => driver.changeIso('vm-404', null, 1),
      () => driver.setRootPassword({ ...guest, name: 'vm-404' }, 22),
      () => driver.attachInterface('vm-404', nic),
      ...(can('addresses')
        ? [() => driver.setAddresses({ name: 'vm-404', mac: guest.mac!, addresses: guest.addresses })]
        : []),
      () => driver.limitSpeed('vm-404', 10),
      ...driver.consoleKinds.map((kind) => () => driver.openConsole('vm-404', kind)),
    ])
      await assert.rejects(call(), (error) => hasCode(error, 'hypervisor.refused'), String(call));
  });

  await t.test('a destroyed guest leaves nothing, and is destroyed as often as one likes', async () => {
    await driver.syncNetwork(networkId, []);
    for (const gone of [name, name, neighbour.name, 'vm-404']) await driver.ensureGone(gone);
    await driver.removeNetwork(networkId);
    assert.equal(await driver.readPower(name), null);
    assert.deepEqual(await driver.observeGuests(), []);
    assert.deepEqual(await world.listLeftovers(), []);
  });
}
