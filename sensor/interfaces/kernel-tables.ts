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
