/**
 * Peer networks: what local addresses exchanged over the Internet with a /24 of IPv4 or a /48 of IPv6, by the hour, for three
 * months. Neither the remote address nor the service is kept (NET-2.2.7 keeps those for 24 hours).
 *
 * Of a minute, direction and local address the one capture counts that counts for applications (NET-2.2.5). A minute that arrived when its
 * pairs were no longer kept counts if nothing of that address and direction was known of it.
 */
import { formatAddress, formatPrefix, parseAddress } from '#common/ip/index.ts';
import { localAddressOf, type NamedPair } from './collect-facts.ts';
import type { AddressRange, SiteRange } from './facts.ts';

export const peerLengths = { 4: 24, 6: 48 } as const;

/** Answers are of whole hours: those that the range touches. */
export const hoursOf = <T extends SiteRange>(range: T): T => ({
  ...range,
  fromMinute: Math.floor(range.fromMinute / 3600) * 3600,
  toMinute: Math.ceil(range.toMinute / 3600) * 3600,
});

/** The network of an address, such as `198.51.100.0/24`; null where the text is not an address. */
export function peerNetworkOf(address: string): string | null {
  const bytes = parseAddress(address);
  if (!bytes) return null;
  const length = bytes.length === 4 ? peerLengths[4] : peerLengths[6];
  return formatPrefix({ bytes: bytes.map((byte, i) => (i < length / 8 ? byte : 0)), length });
}

/** Its first address. */
export function firstAddressOf(address: string): string {
  const bytes = parseAddress(address)!;
  const kept = (bytes.length === 4 ? peerLengths[4] : peerLengths[6]) / 8;
  return formatAddress(bytes.map((byte, i) => (i < kept ? byte : 0)));
}

/** What was exchanged; bytes are those to and from the local address. */
interface PeerTraffic {
  inboundBytes: number;
  outboundBytes: number;
  packets: number;
}

export interface PeerUse extends PeerTraffic {
  /** Canonical text of the network. */
  network: string;
  /** Who opened the connections. */
  openedBy: 'address' | 'network' | 'both';
  /** Minutes with traffic. */
  minutes: number;
  /** Starts of the first and of the last hour with traffic. */
  firstHour: number;
  lastHour: number;
}

/** A local address that exchanged something with a network. */
export interface PeerOfNetwork extends PeerUse {
  address: string;
  /** Blank for a unique address, and where no owner was seen. */
  segment: string;
}

/** A list cut at its limit; the sums are of everything. */
export interface PeerList<T> extends PeerTraffic {
  items: T[];
  total: number;
}

/** An engine's reads of peer networks. */
export interface PeerNetworks {
  /** Networks that a local address exchanged something with, by bytes, largest first. */
  listPeerNetworks(range: AddressRange, limit: number): Promise<PeerList<PeerUse>>;
  /** Who exchanged something with networks within this prefix, by bytes, largest first. The prefix is of a whole network or shorter. */
  findPeers(range: SiteRange & { prefix: string }, limit: number): Promise<PeerList<PeerOfNetwork>>;
}

// What a capture's minute says of networks.

export interface PeerSum extends PeerTraffic {
  direction: 'outbound' | 'inbound';
  local: string;
  /** First address of the network. */
  peer: string;
}

/** Pairs of a capture's minute over the Internet, summed by direction, local address and network. */
export function sumPeers(pairs: readonly NamedPair[]): Iterable<PeerSum> {
  const sums = new Map<string, PeerSum>();
  for (const pair of pairs) {
    const { direction } = pair;
    if (direction !== 'outbound' && direction !== 'inbound') continue;
    const isHost = direction === 'inbound';
    const local = localAddressOf(pair)!;
    const peer = firstAddressOf(isHost ? pair.client : pair.server);
    const key = `${direction} ${local} ${peer}`;
    const sum = sums.get(key) ?? { direction, local, peer, inboundBytes: 0, outboundBytes: 0, packets: 0 };
    sums.set(key, sum);
    sum.inboundBytes += isHost ? pair.clientBytes : pair.serverBytes;
    sum.outboundBytes += isHost ? pair.serverBytes : pair.clientBytes;
    sum.packets += pair.packets;
  }
  return sums.values();
}
