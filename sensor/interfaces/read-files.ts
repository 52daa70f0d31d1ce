/**
 * Reads the kernel's tables from /sys and /proc when its sockets can not be used: without IPv6 neighbours and bridge
 * forwarding tables.
 */
import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { basename } from 'node:path';
import { canonicalAddress, formatAddress } from '#common/ip/index.ts';

const folder = '/sys/class/net';
const flagUp = 1;
const arpComplete = 2;

/** Reads the tables. */
export function readFiles(): KernelTables {
  const indexes = new Map<string, number>();
  for (const name of readdirSync(folder)) indexes.set(name, Number(read(`${folder}/${name}/ifindex`)));
  const indexOf = (name: string) => indexes.get(name) ?? 0;
  const addresses = Object.entries(networkInterfaces()).flatMap(([name, list]) =>
    (list ?? []).flatMap(({ address, cidr }) => {
      const canonical = canonicalAddress(address);
      return canonical
        ? [{ index: indexOf(name), address: `${canonical}/${cidr?.split('/')[1] ?? '128'}` }]
        : [];
    }),
  );
  return {
    links: [...indexes.keys()].map((name) => linkOf(name, indexOf)),
    addresses,
    neighbours: arpRows(indexOf),
    gateways: gatewaysOf(),
  };
}

function linkOf(name: string, indexOf: (name: string) => number): LinkRow {
  const at = `${folder}/${name}`;
  const vlan = vlanOf(name);
  const mac = read(`${at}/address`);
  const kind = existsSync(`${at}/bridge`)
    ? 'bridge'
    : vlan
      ? 'vlan'
      : existsSync(`${at}/tun_flags`)
        ? 'tun'
        : '';
  return {
    index: indexOf(name),
    name,
    mac: /^(?!00:00:00:00:00:00)[0-9a-f]{2}(:[0-9a-f]{2}){5}$/.test(mac) ? mac : '',
    kind,
    isUp: (Number(read(`${at}/flags`)) & flagUp) !== 0,
    mtu: Number(read(`${at}/mtu`)),
    master: existsSync(`${at}/master`) ? indexOf(basename(readlinkSync(`${at}/master`))) : 0,
    parent: vlan ? indexOf(vlan.parent) : 0,
    vlan: vlan?.id ?? 0,
  };
}

function vlanOf(name: string): { id: number; parent: string } | null {
  const text = read(`/proc/net/vlan/${name}`);
  const id = /VID: (\d+)/.exec(text)?.[1];
  const parent = /Device: (\S+)/.exec(text)?.[1];
  return id && parent ? { id: Number(id), parent } : null;
}

function arpRows(indexOf: (name: string) => number): NeighbourRow[] {
  return read('/proc/net/arp')
    .split('\n')
    .slice(1)
    .flatMap((line) => {
      const [address, , flags, mac, , name] = line.trim().split(/\s+/);
      if (!address || !mac || !name || (Number(flags) & arpComplete) === 0) return [];
      return [{ index: indexOf(name), mac: mac.toLowerCase(), address, vlan: 0, isRouter: false }];
    });
}

/** /proc/net/route has addresses as hexadecimal words in the machine's byte order. */
function gatewaysOf(): string[] {
  return read('/proc/net/route')
    .split('\n')
    .slice(1)
    .flatMap((line) => {
      const gateway = line.split('\t')[2];
      if (!gateway || /^0*$/.test(gateway)) return [];
      return [formatAddress(Buffer.from(gateway, 'hex').reverse())];
    });
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch {
    return '';
  }
}

/** The kernel's network tables as plain rows, before they are assembled and limited. */

export interface LinkRow {
  index: number;
  name: string;
  mac: string;
  kind: string;
  isUp: boolean;
  mtu: number;
  /** Indexes; 0 for none. */
  master: number;
  parent: number;
  vlan: number;
}

export interface AddressRow {
  index: number;
  /** `192.0.2.1/24`. */
  address: string;
}

export interface NeighbourRow {
  /** Of the interface, or of the bridge for a row of a forwarding table. */
  index: number;
  mac: string;
  /** Blank for a row of a bridge's forwarding table. */
  address: string;
  vlan: number;
  isRouter: boolean;
}

export interface KernelTables {
  links: LinkRow[];
  addresses: AddressRow[];
  neighbours: NeighbourRow[];
  /** Next hops of routes. */
  gateways: string[];
}

/** Hexadecimal bytes with colons; blank for other than Ethernet addresses. */
export function macText(bytes: Uint8Array | undefined): string {
  if (bytes?.length !== 6 || bytes.every((byte) => byte === 0)) return '';
  return Buffer.from(bytes).toString('hex').match(/../g)!.join(':');
}
