// Slow: a guest boots in software, and is switched off and on.
import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { test } from 'node:test';
import { guest, node } from '../testing/example-guest.ts';
import { createLibvirtWorld, whyNoLibvirt } from '../testing/libvirt-world.ts';
import { createLibvirtDriver } from './driver.ts';

test('a guest of QEMU in software is made, seen, counted, switched and destroyed, each call as often as one likes', {
  skip: whyNoLibvirt(),
}, async () => {
  await using world = await createLibvirtWorld();
  const driver = createLibvirtDriver({ ...node, uri: world.uri });
  const steps: number[] = [];
  const make = () => driver.ensureGuest(guest, async (percent) => void steps.push(percent));
  assert.equal(await driver.readPower('vm-7'), null);
  assert.equal(await make(), 'booting', 'a guest that has sent nothing is not addressable');
  assert.deepEqual(steps, [40, 60, 80]);
  assert.equal(await driver.readPower('vm-7'), 'on');
  // Its firmware asks the network for something to boot: that is the sign of life.
  while ((await make()) !== 'ready') await new Promise((wake) => setTimeout(wake, 500));
  const [seen] = await driver.observeGuests();
  assert.deepEqual([seen?.name, seen?.power, seen?.interfaces.length], ['vm-7', 'on', 1]);
  assert.ok(seen!.interfaces[0]!.sentBytes > 0 && seen!.interfaces[0]!.receivedBytes >= 0);
  assert.deepEqual((await readdir(world.poolFolder)).sort(), ['tiny.qcow2', 'vm-7-seed.iso', 'vm-7.qcow2']);

  await driver.signalShutdown('vm-7');
  assert.equal(await driver.readPower('vm-7'), 'on', 'firmware does not halt when it is asked to');
  await driver.restart('vm-7', 'acpi');
  await driver.restart('vm-7', 'reset');
  for (const power of ['off', 'off', 'on', 'on'] as const) {
    await driver.setPower('vm-7', power);
    assert.equal(await driver.readPower('vm-7'), power);
  }
  await driver.setPower('vm-7', 'off');
  await driver.signalShutdown('vm-7');
  assert.equal((await driver.observeGuests())[0]?.power, 'off');
  await driver.restart('vm-7', 'acpi');
  assert.equal(await driver.readPower('vm-7'), 'on', 'a guest that was off is on after a restart');

  await assert.rejects(
    driver.ensureGuest({ ...guest, name: 'vm-8', imageSlug: 'no-such-image' }, async () => {}),
    (error) => /no-such-image/.test(String(error)),
  );
  for (const name of ['vm-7', 'vm-7', 'vm-8', 'vm-9']) await driver.ensureGone(name);
  assert.deepEqual(await driver.observeGuests(), []);
  assert.deepEqual(await readdir(world.poolFolder), ['tiny.qcow2']);
});
