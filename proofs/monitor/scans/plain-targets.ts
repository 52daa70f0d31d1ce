/**
 * Which addresses of a node may be scanned (NET-2.7.8), computed in another way than the monitor does it: with whole
 * numbers for addresses, and over the inventory as it was made up, not over rows.
 */
import type { RandomInventory, RandomNic, RandomServer } from './random-inventory.ts';

/** What a plan has to name: an address of a server's interface, and any one of these sources. */
export interface PlainTarget {
  vmId: number;
  nicId: number;
  address: string;
  /** `interface address`. */
  sources: string[];
}

/** Why an address is not scanned. */
export type PlainReason =
  | 'no plan'
  | 'not of the node'
  | 'retired'
  | 'not running'
  | 'old'
  | 'special'
  | 'of a host'
  | 'shared'
  | 'no source';

interface Number128 {
  value: bigint;
  bits: 32 | 128;
}

export function readNumber(text: string): Number128 {
  if (!text.includes(':')) {
    const value = text.split('.').reduce((sum, part) => sum * 256n + BigInt(part), 0n);
    return { value, bits: 32 };
  }
  const dotted = /^(.*:)(\d+\.\d+\.\d+\.\d+)$/.exec(text);
  if (dotted) {
    const low = readNumber(dotted[2]!).value;
    return readNumber(`${dotted[1]}${(low >> 16n).toString(16)}:${(low & 0xffffn).toString(16)}`);
  }
  const [head = '', tail] = text.split('::');
  const words = (part: string) => part.split(':').filter(Boolean);
  const [first, last] = [words(head), words(tail ?? '')];
  const zeros = Array<string>(8 - first.length - last.length).fill('0');
  const value = [...first, ...zeros, ...last].reduce((sum, word) => sum * 65_536n + BigInt(`0x${word}`), 0n);
  return { value, bits: 128 };
}

function isInside({ value, bits }: Number128, cidr: string): boolean {
  const [base, length] = cidr.split('/') as [string, string];
  const block = readNumber(base);
  const rest = BigInt(bits - Number(length));
  return block.bits === bits && block.value >> rest === value >> rest;
}

/** IANA's special-purpose registries, without what is reachable in them, and what is not unicast. */
const specialBlocks = [
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12'],
  ...['192.0.0.0/29', '192.0.2.0/24', '192.88.99.0/24', '192.168.0.0/16', '198.18.0.0/15', '198.51.100.0/24'],
  ...[
    '203.0.113.0/24',
    '224.0.0.0/3',
    '::/3',
    '2001::/32',
    '2001:db8::/32',
    '2002::/16',
    '3fff::/20',
    '4000::/2',
  ],
  ...['8000::/1'],
];

export function listPlainTargets(inventory: RandomInventory): {
  targets: PlainTarget[];
  left: Map<PlainReason, number>;
} {
  const targets: PlainTarget[] = [];
  const left = new Map<PlainReason, number>();
  const sources = listSources(inventory);
  for (const server of inventory.servers)
    for (const nic of server.nics)
      for (const address of new Set(nic.addresses)) {
        const found = reasonOf(inventory, server, nic, address) ?? usable(sources, address);
        if (typeof found === 'string') left.set(found, (left.get(found) ?? 0) + 1);
        else targets.push({ vmId: server.vmId, nicId: nic.id, address, sources: found });
      }
  return { targets, left };
}

function reasonOf(
  inventory: RandomInventory,
  server: RandomServer,
  nic: RandomNic,
  address: string,
): PlainReason | null {
  const { hosts, servers, boundTo, clusters } = inventory;
  const [own, neighbour] = hosts;
  const isLive = (one: RandomServer) => !one.isRetired;
  const siteOf = (one: RandomServer) => clusters.find(({ id }) => id === one.clusterId)!.site;
  const isOfNode = (one: RandomServer) =>
    siteOf(one) === 'own' && one.node === own.node && (boundTo === null || one.clusterId === boundTo);
  const onNode = new Set(servers.filter((one) => isLive(one) && isOfNode(one)).map((one) => one.clusterId));
  const interfacesAge = own.interfacesAgeSeconds ?? Number.POSITIVE_INFINITY;
  if (own.isRevoked || interfacesAge > 300 || onNode.size > 1) return 'no plan';
  if (!isOfNode(server)) return 'not of the node';
  if (server.isRetired || nic.isRetired) return 'retired';
  if (server.state !== 'running') return 'not running';
  if (server.ageSeconds > 900 || nic.ageSeconds > 900) return 'old';
  const number = readNumber(address);
  if (specialBlocks.some((block) => isInside(number, block))) return 'special';
  const isOfHost = [own, neighbour].some(
    (host) =>
      !host.isRevoked &&
      host.interfaces.some((one) =>
        one.addresses.some((text) => readNumber(text.split('/')[0]!).value === number.value),
      ),
  );
  if (isOfHost) return 'of a host';
  const live = servers.filter(isLive).flatMap((one) => one.nics.map((each) => ({ one, each })));
  const isShared = live.some(({ one, each }) => {
    if (each.isRetired) return false;
    const isOther = one !== server;
    if (each.addresses.includes(address) && (isOther || each.mac !== nic.mac)) return true;
    return isOther && each.mac === nic.mac && siteOf(one) === 'own';
  });
  return isShared ? 'shared' : null;
}

interface PlainSource {
  interface: string;
  address: string;
  length: number;
  isUplink: boolean;
}

/** Interfaces that a capture is on, that carry one, or are a VLAN of one, as far as one gets so. */
function listSources({ hosts: [{ interfaces }], captures }: RandomInventory): PlainSource[] {
  const byName = new Map(interfaces.map((one) => [one.name, one]));
  const reach = (name: string, found: Set<string>): Set<string> => {
    if (found.has(name)) return found;
    found.add(name);
    const master = byName.get(name)?.master ?? '';
    if (master !== '') reach(master, found);
    for (const one of interfaces) if (one.parent === name) reach(one.name, found);
    return found;
  };
  const reached = (role: string) => {
    const found = new Set<string>();
    for (const capture of captures) if (capture.role === role) reach(capture.name, found);
    return found;
  };
  const [uplinks, bridges] = [reached('uplink'), reached('bridge')];
  return interfaces.flatMap((one) => {
    if (!one.isUp || !(uplinks.has(one.name) || bridges.has(one.name))) return [];
    return one.addresses.flatMap((text) => {
      const [address, length] = text.split('/') as [string, string];
      const number = readNumber(address);
      if (isInside(number, '169.254.0.0/16') || isInside(number, 'fe80::/10')) return [];
      return [{ interface: one.name, address, length: Number(length), isUplink: uplinks.has(one.name) }];
    });
  });
}

/** Those of the narrowest network of the target, else those of the uplink. */
function usable(sources: readonly PlainSource[], address: string): string[] | PlainReason {
  const number = readNumber(address);
  const alike = sources.filter((one) => readNumber(one.address).bits === number.bits);
  const near = alike.filter((one) => isInside(number, `${one.address}/${one.length}`));
  const narrowest = Math.max(...near.map((one) => one.length));
  const found =
    near.length > 0 ? near.filter((one) => one.length === narrowest) : alike.filter((one) => one.isUplink);
  return found.length === 0 ? 'no source' : found.map((one) => `${one.interface} ${one.address}`);
}
