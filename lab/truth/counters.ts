/**
 * The independent counter: nftables' own count of IP bytes per guest address and direction, on the uplink and, for what the
 * hypervisor itself exchanges with guests (port scans), on the bridge.
 *
 * The kernel counts `skb->len`. At `netdev` ingress the Ethernet header is already off, so that is the IP total
 * length; at egress the header is still on, so 14 bytes a packet are taken off. The lab's tests of known transfers
 * prove both. Counters live as long as the hypervisor's namespace and are only ever added to.
 */
import { runTool } from '../world/run-tool.ts';

const ethernetHeaderBytes = 14;

export interface AddressCount {
  rxBytes: number;
  rxPackets: number;
  txBytes: number;
  txPackets: number;
}

/** Where a set counts: in one direction of the guest, arriving at a link or leaving it. */
interface CountedSet {
  way: 'rx' | 'tx';
  hook: 'ingress' | 'egress';
}
const sets: Readonly<Record<string, CountedSet>> = {
  rx: { way: 'rx', hook: 'ingress' },
  tx: { way: 'tx', hook: 'egress' },
  host_rx: { way: 'rx', hook: 'egress' },
  host_tx: { way: 'tx', hook: 'ingress' },
};

export interface CountedLinks {
  uplink: string;
  bridge: string;
  /** The hypervisor's own addresses on the bridge, of IPv4 and of IPv6. */
  hostAddresses: readonly [string, string];
}

/** Rules for `nft -f`: sets of addresses, each element with a counter of its own. */
export function truthRules({ uplink, bridge, hostAddresses: [host4, host6] }: CountedLinks): string {
  const set = (name: string, type: string) => `  set ${name} {\n    type ${type}\n    counter\n  }`;
  const each = Object.keys(sets).flatMap((name) => [
    set(`${name}4`, 'ipv4_addr'),
    set(`${name}6`, 'ipv6_addr'),
  ]);
  return `table netdev truth {
${each.join('\n')}
  chain arriving {
    type filter hook ingress device ${uplink} priority -400
    ip daddr @rx4
    ip6 daddr @rx6
  }
  chain leaving {
    type filter hook egress device ${uplink} priority 400
    ip saddr @tx4
    ip6 saddr @tx6
  }
  chain from_host {
    type filter hook egress device ${bridge} priority 400
    ip saddr ${host4} ip daddr @host_rx4
    ip6 saddr ${host6} ip6 daddr @host_rx6
  }
  chain to_host {
    type filter hook ingress device ${bridge} priority -400
    ip daddr ${host4} ip saddr @host_tx4
    ip6 daddr ${host6} ip6 saddr @host_tx6
  }
}`;
}

/** Starts counting these addresses; those already counted go on from where they are. */
export async function countAddresses(namespace: string, addresses: readonly string[]): Promise<void> {
  const lines = addresses.flatMap((address) => {
    const family = address.includes(':') ? '6' : '4';
    return Object.keys(sets).map((name) => `add element netdev truth ${name}${family} { ${address} }`);
  });
  await runTool(['ip', 'netns', 'exec', namespace, 'nft', '-f', '-'], `${lines.join('\n')}\n`);
}

/** Reads the counters of all addresses. `prefix` is how to run `nft` in the hypervisor's namespace, empty when already there. */
export async function readCounters(prefix: readonly string[]): Promise<Map<string, AddressCount>> {
  const output = await runTool([...prefix, 'nft', '-j', 'list', 'table', 'netdev', 'truth']);
  return parseCounters(output);
}

interface NftElement {
  elem: { val: string; counter: { packets: number; bytes: number } };
}

/** Reads the JSON of `nft -j list table`. */
export function parseCounters(json: string): Map<string, AddressCount> {
  const objects = (JSON.parse(json) as { nftables: { set?: { name: string; elem?: NftElement[] } }[] })
    .nftables;
  const counts = new Map<string, AddressCount>();
  for (const { set } of objects) {
    const counted = sets[set?.name.slice(0, -1) ?? ''];
    if (!counted) continue;
    for (const { elem } of set?.elem ?? []) {
      const count = counts.get(elem.val) ?? { rxBytes: 0, rxPackets: 0, txBytes: 0, txPackets: 0 };
      const { packets } = elem.counter;
      const bytes = elem.counter.bytes - (counted.hook === 'egress' ? ethernetHeaderBytes * packets : 0);
      count[`${counted.way}Packets`] += packets;
      count[`${counted.way}Bytes`] += bytes;
      counts.set(elem.val, count);
    }
  }
  return counts;
}
