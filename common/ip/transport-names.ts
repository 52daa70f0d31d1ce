/** Names of IP protocols, for filters and rows. */

const transports = new Map([
  [1, 'icmp'],
  [2, 'igmp'],
  [4, 'ipip'],
  [6, 'tcp'],
  [17, 'udp'],
  [41, 'ipv6'],
  [47, 'gre'],
  [50, 'esp'],
  [51, 'ah'],
  [58, 'icmpv6'],
  [89, 'ospf'],
  [132, 'sctp'],
]);

/** Name of an IP protocol; `ip-` and its number when it has no name. */
export function transportName(protocol: number): string {
  return transports.get(protocol) ?? `ip-${protocol}`;
}

/** Number of an IP protocol of that name, or null. */
export function protocolNumber(name: string): number | null {
  for (const [number, known] of transports) if (known === name) return number;
  return null;
}
