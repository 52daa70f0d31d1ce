/**
 * The independent counter: nftables' own count of IP bytes per guest address and direction on the uplink.
 *
 * The kernel counts `skb->len`. At `netdev` ingress the Ethernet header is already off, so that is the IP total
 * length; at egress the header is still on, so 14 bytes a packet are taken off. The lab's test of a known transfer
 * proves both. Counters live as long as the hypervisor's namespace and are only ever added to.
 */
import { runTool } from '../world/run-tool.ts';

const ethernetHeaderBytes = 14;

export interface AddressCount {
  rxBytes: number;
  rxPackets: number;
  txBytes: number;
  txPackets: number;
}

/** Rules for `nft -f`: four sets of addresses, each element with a counter of its own. */
export function truthRules(uplink: string): string {
  const set = (name: string, type: string) => `  set ${name} {\n    type ${type}\n    counter\n  }`;
  return `table netdev truth {
${set('rx4', 'ipv4_addr')}
${set('rx6', 'ipv6_addr')}
${set('tx4', 'ipv4_addr')}
${set('tx6', 'ipv6_addr')}
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
}`;
}

/** Starts counting these addresses; those already counted go on from where they are. */
export async function countAddresses(namespace: string, addresses: readonly string[]): Promise<void> {
  const lines = addresses.flatMap((address) => {
    const family = address.includes(':') ? '6' : '4';
    return ['rx', 'tx'].map((way) => `add element netdev truth ${way}${family} { ${address} }`);
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
    for (const { elem } of set?.elem ?? []) {
      const count = counts.get(elem.val) ?? { rxBytes: 0, rxPackets: 0, txBytes: 0, txPackets: 0 };
      if (set!.name.startsWith('rx')) {
        count.rxPackets = elem.counter.packets;
        count.rxBytes = elem.counter.bytes;
      } else {
        count.txPackets = elem.counter.packets;
        count.txBytes = elem.counter.bytes - ethernetHeaderBytes * elem.counter.packets;
      }
      counts.set(elem.val, count);
    }
  }
  return counts;
}
