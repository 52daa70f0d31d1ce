// Slow: a guest boots in software, and is switched off and on.
import { execFileSync } from 'node:child_process';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { checkContract } from '../testing/contract.ts';
import { guest, neighbour, node } from '../testing/example-guest.ts';
import { createLibvirtWorld, type LibvirtWorld, whyNoLibvirt } from '../testing/libvirt-world.ts';
import { createLibvirtDriver } from './driver.ts';

test('libvirt with QEMU in software keeps the contract of drivers', { skip: whyNoLibvirt() }, async (t) => {
  const world = await createLibvirtWorld();
  t.after(() => world[Symbol.asyncDispose]());
  const images = await readdir(world.poolFolder);
  await checkContract(t, {
    driver: createLibvirtDriver({ ...node, uri: world.uri }),
    guest,
    neighbour,
    otherImage: 'other',
    knowsImages: true,
    inspect: async (name) => inspect(world, name),
    async listLeftovers() {
      const volumes = (await readdir(world.poolFolder)).filter((file) => !images.includes(file));
      const domains = world.virsh('list', '--all', '--name').split(/\s+/);
      const networks = world.virsh('net-list', '--all', '--name').split(/\s+/);
      const filters = world.virsh('nwfilter-list').match(/svc-\S+/g) ?? [];
      return [...volumes, ...domains, ...networks, ...filters].filter((name) => name !== '');
    },
    // Firmware runs no guest agent.
    hasRootPassword: null,
  });
});

/** By the definition that the next start takes, and by the disk's file. */
function inspect(world: LibvirtWorld, name: string) {
  if (!world.virsh('list', '--all', '--name').split(/\s+/).includes(name)) return null;
  const xml = world.virsh('dumpxml', name, '--inactive');
  const find = (pattern: RegExp) => pattern.exec(xml)?.[1] ?? 'none';
  const disk = find(/volume='(vm-\d+[^']*\.qcow2)'/);
  const file = execFileSync('qemu-img', ['info', '-U', '--output=json', join(world.poolFolder, disk)]);
  const info = JSON.parse(file.toString()) as { 'virtual-size': number; 'backing-filename': string };
  return {
    image: /([^/]+)\.qcow2$/.exec(info['backing-filename'])?.[1] ?? null,
    disk,
    vcpus: Number(find(/<vcpu[^>]*>(\d+)</)),
    memoryMb: Number(find(/<memory unit='KiB'>(\d+)</)) / 1024,
    diskGb: info['virtual-size'] / 1024 ** 3,
    // Also what it has now, and what still has a link: firmware does not let go of a NIC.
    macs: [...new Set([...macsOf(xml), ...macsOf(world.virsh('dumpxml', name))])],
  };
}

function macsOf(xml: string): string[] {
  const linked = xml.split('<interface ').filter((part) => !part.includes("<link state='down'/>"));
  return linked.flatMap((part) => /<mac address='([^']+)'/.exec(part)?.[1] ?? []);
}
