/**
 * The addresses of every lab world: documentation ranges only, the same in each world, because worlds never meet.
 *
 * The recording that a sensor replays without root was made in such a world, so a change here asks for a new one.
 */
import { type Prefix, parseAddress, parsePrefix, prefixContains } from '#common/ip/index.ts';

export interface LanNetwork {
  /** Canonical prefix text. */
  prefix: string;
  gateway: string;
  /** The addresses meant for guests, first and last. */
  firstGuest: string;
  lastGuest: string;
}

export const lanNetworks: readonly LanNetwork[] = [
  {
    prefix: '203.0.113.0/24',
    gateway: '203.0.113.1',
    firstGuest: '203.0.113.10',
    lastGuest: '203.0.113.250',
  },
  {
    prefix: '2001:db8:113::/64',
    gateway: '2001:db8:113::1',
    firstGuest: '2001:db8:113::10',
    lastGuest: '2001:db8:113::ffff',
  },
];

/** Between the hypervisor's uplink and the internet. */
export const wan = {
  hypervisor: ['198.51.100.2/24', '2001:db8:51::2/64'],
  internet: ['198.51.100.1/24', '2001:db8:51::1/64'],
  hypervisorGateways: ['198.51.100.2', '2001:db8:51::2'],
  internetGateways: ['198.51.100.1', '2001:db8:51::1'],
} as const;

/**
 * Where attacks come from: parts of the ranges for benchmarks (RFC 2544) and documentation (RFC 3849). Spoofed addresses
 * belong to no host, so answers to them end in the lab's internet; connecting ones belong to the lab's internet, which holds
 * their connections.
 */
export const attackSources = {
  spoofed: { ipv4: parsePrefix('198.18.0.0/16')!, ipv6: parsePrefix('2001:db8:e000::/36')! },
  connecting: { ipv4: parsePrefix('198.19.0.0/24')!, ipv6: parsePrefix('2001:db8:f000::/112')! },
} as const;

export const macs = {
  bridge: '52:54:00:5e:01:01',
  uplink: '52:54:00:5e:02:01',
  internet: '52:54:00:5e:02:02',
} as const;

export const links = {
  bridge: 'br0',
  uplink: 'uplink0',
  internet: 'wan0',
  management: 'mgmt0',
  guest: 'eth0',
} as const;

/** The LAN network that holds this address, or null. */
export function findLanNetwork(address: string): (LanNetwork & { parsed: Prefix }) | null {
  const bytes = parseAddress(address);
  if (!bytes) return null;
  for (const network of lanNetworks) {
    const parsed = parsePrefix(network.prefix)!;
    if (prefixContains(parsed, bytes)) return { ...network, parsed };
  }
  return null;
}
