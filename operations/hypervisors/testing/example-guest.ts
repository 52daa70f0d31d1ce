/** A guest, and a node of libvirt to make it on. */
import type { GuestDefinition } from '#operations/hypervisors/index.ts';

export const guest: GuestDefinition = {
  name: 'vm-7',
  mac: '52:54:00:00:00:07',
  addresses: [
    { address: '203.0.113.17', prefixLength: 24, gateway: '203.0.113.1' },
    { address: '2001:db8:113::17', prefixLength: 64, gateway: '2001:db8:113::1' },
  ],
  privateInterfaces: [],
  hostname: 'web',
  imageSlug: 'tiny',
  vcpus: 1,
  memoryMb: 64,
  diskGb: 1,
  rootPassword: 'never in clear',
  sshKeys: ['ssh-ed25519 AAAA me@home'],
  userData: null,
};
export const node = {
  name: 'node-1',
  driver: 'libvirt',
  storagePool: 'guests',
  bridge: 'br0',
  networkBridges: null,
};

/** Another one of the same site. */
export const neighbour: GuestDefinition = {
  ...guest,
  name: 'vm-8',
  mac: '52:54:00:00:00:08',
  addresses: [
    { address: '203.0.113.18', prefixLength: 24, gateway: '203.0.113.1' },
    { address: '2001:db8:113::18', prefixLength: 64, gateway: '2001:db8:113::1' },
  ],
};
