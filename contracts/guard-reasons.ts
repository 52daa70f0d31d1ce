/** Why the guard of a server's network interface drops a packet that the server sent. */

interface ReasonRow {
  /** In a table, on a page. */
  title: string;
}

const table = {
  mac: { title: 'Source MAC of another interface' },
  address: { title: 'Source address not assigned to this interface' },
  arp: { title: 'ARP for an address not assigned to this interface' },
  neighbor: { title: 'Neighbor discovery for an address not assigned to this interface' },
  router: { title: 'Router advertisement' },
  dhcp: { title: 'DHCP server message' },
  header: { title: 'Headers that cannot be checked' },
  vlan: { title: 'VLAN tag' },
  ethertype: { title: 'Protocol other than IPv4, IPv6 and ARP' },
} as const satisfies Record<string, ReasonRow>;

export type GuardReason = keyof typeof table;

/** In the order of a list. */
export const guardReasons = Object.keys(table) as GuardReason[];

/** `Router advertisement`. */
export const guardReasonTitle = (reason: GuardReason): string => table[reason].title;
