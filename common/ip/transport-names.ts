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

/** Number of an IP protocol of a name that `transportName` gives, or null. */
export function protocolNumber(name: string): number | null {
  const unnamed = /^ip-(\d{1,3})$/.exec(name);
  if (unnamed) return Number(unnamed[1]);
  for (const [number, known] of transports) if (known === name) return number;
  return null;
}
