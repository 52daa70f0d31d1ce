/** IP protocols that have a name here; others are told by their number. */

interface ProtocolRow {
  /** In filters, feeds, files and the customer API; missing: the number serves as well. */
  name?: string;
  /** In a sentence, on a page. */
  title: string;
}

const table: Readonly<Record<number, ProtocolRow>> = {
  0: { title: 'hop-by-hop options' },
  1: { name: 'icmp', title: 'ICMP' },
  2: { name: 'igmp', title: 'IGMP' },
  4: { name: 'ipip', title: 'IP-in-IP' },
  6: { name: 'tcp', title: 'TCP' },
  17: { name: 'udp', title: 'UDP' },
  41: { name: 'ipv6', title: '6in4' },
  46: { title: 'RSVP' },
  47: { name: 'gre', title: 'GRE' },
  50: { name: 'esp', title: 'ESP' },
  51: { name: 'ah', title: 'AH' },
  58: { name: 'icmpv6', title: 'ICMPv6' },
  89: { name: 'ospf', title: 'OSPF' },
  97: { title: 'EtherIP' },
  103: { title: 'PIM' },
  112: { title: 'VRRP' },
  115: { title: 'L2TP' },
  132: { name: 'sctp', title: 'SCTP' },
  136: { title: 'UDP-Lite' },
};

const numbers = new Map(
  Object.entries(table).flatMap(([number, { name }]) => (name ? [[name, Number(number)]] : [])),
);

export const protocolNames = [...numbers.keys()];

/** Wire name of an IP protocol; `ip-` and its number when it has none. */
export function transportName(protocol: number): string {
  return table[protocol]?.name ?? `ip-${protocol}`;
}

/** Number of an IP protocol of a name that `transportName` gives, or null. */
export function protocolNumber(name: string): number | null {
  const unnamed = /^ip-(\d{1,3})$/.exec(name);
  if (unnamed) return Number(unnamed[1]);
  return numbers.get(name) ?? null;
}

/** `GRE`; null where a number says as much. */
export const protocolTitle = (protocol: number): string | null => table[protocol]?.title ?? null;

/** `GRE (47)`, `253`. */
export function describeProtocol(protocol: number): string {
  const title = protocolTitle(protocol);
  return title === null ? String(protocol) : `${title} (${protocol})`;
}

/** Protocols with ports that port scans and findings know. */
export const transports = ['tcp', 'udp'] as const;

/** What a rule of a firewall can be for; `icmp` is ICMPv6 as well. */
export const firewallProtocols = ['any', 'tcp', 'udp', 'icmp'] as const;
export type FirewallProtocol = (typeof firewallProtocols)[number];

/** `TCP`, `any`. */
export const firewallProtocolTitle = (name: FirewallProtocol): string =>
  name === 'any' ? name : name.toUpperCase();
