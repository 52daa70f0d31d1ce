/** Random nodes with every reason for which an address must not be scanned, near the limits as well as far from them. */
import type { HostInterface } from '#contracts/sensor-api/telemetry.ts';

export type Random = () => number;

export interface RandomNic {
  id: number;
  mac: string;
  isRetired: boolean;
  ageSeconds: number;
  addresses: string[];
}

export interface RandomServer {
  clusterId: number;
  vmId: number;
  node: string;
  state: string;
  isRetired: boolean;
  ageSeconds: number;
  nics: RandomNic[];
}

export interface RandomHost {
  node: string;
  isRevoked: boolean;
  interfaces: HostInterface[];
  /** Null: it never listed them. */
  interfacesAgeSeconds: number | null;
}

export interface RandomInventory {
  /** The sensor's host, another of its site, and one of another site. */
  hosts: [own: RandomHost, neighbour: RandomHost, stranger: RandomHost];
  /** The sensor's cluster; null: any of its site. */
  boundTo: number | null;
  captures: { name: string; role: 'uplink' | 'bridge' }[];
  /** Clusters and whose they are. */
  clusters: { id: number; site: 'own' | 'other' | 'none' }[];
  servers: RandomServer[];
}

const pick = <T>(random: Random, list: readonly T[]): T => list[Math.floor(random() * list.length)]!;
const chance = (random: Random, share: number) => random() < share;
const upTo = (random: Random, max: number) => Math.floor(random() * (max + 1));

/** Inventories are made in slots of a batch; those of different slots share no public address. */
export function makeInventory(random: Random, slot: number): RandomInventory {
  const node = 'hv-1';
  const clusters = [
    { id: slot * 10 + 1, site: 'own' as const },
    { id: slot * 10 + 2, site: chance(random, 0.5) ? ('own' as const) : ('other' as const) },
    { id: slot * 10 + 3, site: pick(random, ['other', 'none'] as const) },
  ];
  const ownAddresses = listOwnAddresses(slot);
  const interfaces = listInterfaces(random, ownAddresses);
  const neighbour = `8.${slot}.9.9`;
  const inventory: RandomInventory = {
    hosts: [
      {
        ...{ node, interfaces, isRevoked: chance(random, 0.03) },
        interfacesAgeSeconds: chance(random, 0.85)
          ? pick(random, [0, 60, 280])
          : pick(random, [null, 320, 86_400]),
      },
      hostWith('hv-2', [`${neighbour}/24`], chance(random, 0.3)),
      hostWith('hv-1', [`8.${slot}.9.8/24`], false),
    ],
    boundTo: chance(random, 0.6) ? clusters[0]!.id : null,
    captures: listCaptures(random),
    clusters,
    servers: [],
  };
  const usual = { clusterId: clusters[0]!.id, node };
  const foreign = [...ownAddresses, neighbour, `8.${slot}.9.8`, ...special];
  for (let n = 0; n < 2 + upTo(random, 6); n += 1)
    inventory.servers.push(makeServer(random, { slot, n, clusters, usual, foreign }));
  share(random, inventory.servers);
  return inventory;
}

/** Addresses that no server may be scanned at, at the edges of their blocks. */
const special = [
  ...[
    '10.0.0.1',
    '10.255.255.255',
    '100.64.0.1',
    '100.127.255.255',
    '127.0.0.1',
    '169.254.1.1',
    '172.16.0.1',
  ],
  ...[
    '172.31.255.255',
    '192.0.0.1',
    '192.0.2.7',
    '192.168.1.1',
    '198.18.0.1',
    '198.19.255.255',
    '198.51.100.7',
  ],
  ...['203.0.113.7', '224.0.0.1', '239.1.1.1', '240.0.0.1', '255.255.255.255', '0.0.0.1', '192.88.99.1'],
  ...['::1', 'fe80::1', 'fc00::1', 'fdff::1', 'ff02::1', '2001:db8::7', '2002:808:808::1', '2001:0:1::1'],
  ...['64:ff9b::808:808', '3fff::1', '::ffff:8.8.8.8', '4000::1', '1fff::1'],
];

const listOwnAddresses = (slot: number) => [`8.${slot}.0.1`, `8.${slot}.1.1`, `2600:${slot.toString(16)}::1`];

function listInterfaces(random: Random, [uplink, gateway, gateway6]: readonly string[]): HostInterface[] {
  const named = (name: string, part: Partial<HostInterface>): HostInterface => ({
    ...{ name, index: 1, mac: '', kind: '', isUp: !chance(random, 0.05), mtu: 1500 },
    ...{ master: '', parent: '', vlan: 0, addresses: [], ...part },
  });
  const isBonded = chance(random, 0.3);
  const some = (addresses: string[]) => (chance(random, 0.9) ? addresses : []);
  return [
    named('lo', { addresses: ['127.0.0.1/8', '::1/128'] }),
    named('eth0', {
      master: isBonded ? 'bond0' : '',
      addresses: isBonded ? [] : some([`${uplink}/24`, 'fe80::2/64']),
    }),
    ...(isBonded ? [named('bond0', { addresses: some([`${uplink}/24`, 'fe80::2/64']) })] : []),
    // As a program may write an address: not the shortest way.
    named('br0', {
      addresses: some([`${gateway}/24`, `${gateway6!.replace('::', ':0:0:0::')}/48`, 'fe80::1/64']),
    }),
    ...(chance(random, 0.3)
      ? [named('br0.7', { parent: 'br0', vlan: 7, addresses: [`${gateway!.replace(/1$/, '2')}/26`] })]
      : []),
    named('mgmt0', { addresses: ['192.168.7.2/24', `${gateway!.replace(/1$/, '3')}/27`] }),
    named('ll0', { addresses: ['169.254.7.1/16', 'fe80::7/10'] }),
  ];
}

function listCaptures(random: Random): RandomInventory['captures'] {
  const both = [
    { name: 'eth0', role: 'uplink' as const },
    { name: 'br0', role: 'bridge' as const },
  ];
  if (chance(random, 0.8)) return both;
  return pick(random, [[both[0]!], [both[1]!], []]);
}

function hostWith(node: string, addresses: string[], isRevoked: boolean): RandomHost {
  const plain = { index: 1, mac: '', kind: '', isUp: true, mtu: 1500, master: '', parent: '', vlan: 0 };
  return { node, isRevoked, interfaces: [{ ...plain, name: 'eth0', addresses }], interfacesAgeSeconds: 10 };
}

interface ServerInput {
  slot: number;
  n: number;
  clusters: RandomInventory['clusters'];
  usual: { clusterId: number; node: string };
  /** Addresses that are not a server's to have. */
  foreign: readonly string[];
}

function makeServer(random: Random, { slot, n, clusters, usual, foreign }: ServerInput): RandomServer {
  const vmId = n + 1;
  const age = () => (chance(random, 0.9) ? pick(random, [0, 30, 870]) : pick(random, [930, 3600, 90_000]));
  const nics = Array.from({ length: 1 + (chance(random, 0.2) ? 1 : 0) }, (_, k) => ({
    ...{ id: vmId * 10 + k, mac: `52:54:00:00:${vmId.toString(16).padStart(2, '0')}:0${k}` },
    ...{ isRetired: chance(random, 0.05), ageSeconds: age() },
    addresses: Array.from({ length: 1 + upTo(random, 2) }, (_, m) => {
      if (chance(random, 0.15)) return pick(random, foreign);
      const last = vmId * 8 + k * 3 + m;
      // Most are on the bridge's networks, some behind the uplink.
      return chance(random, 0.5)
        ? `8.${slot}.${pick(random, [1, 1, 200])}.${last}`
        : `2600:${slot.toString(16)}:0:${pick(random, ['1', '1', 'ff'])}::${last.toString(16)}`;
    }),
  }));
  return {
    vmId,
    nics,
    clusterId: chance(random, 0.9) ? usual.clusterId : pick(random, clusters).id,
    node: chance(random, 0.9) ? usual.node : pick(random, ['hv-2', 'hv-10', 'HV-1']),
    state: chance(random, 0.9) ? 'running' : pick(random, ['stopped', 'paused', 'provisioning', 'Running']),
    isRetired: chance(random, 0.05),
    ageSeconds: age(),
  };
}

/** Gives servers an address or a MAC of another, or of their own other interface. */
function share(random: Random, servers: readonly RandomServer[]): void {
  const nics = servers.flatMap((server) => server.nics);
  if (chance(random, 0.25)) pick(random, nics).addresses.push(pick(random, pick(random, nics).addresses));
  if (chance(random, 0.15)) pick(random, nics).mac = pick(random, nics).mac;
}
