/** What a capture's minute says of networks. */
import { localAddressOf, type NamedPair } from './collect-facts.ts';
import { firstAddressOf } from './peer-networks.ts';

export interface PeerSum {
  direction: 'outbound' | 'inbound';
  local: string;
  /** First address of the network. */
  peer: string;
  inboundBytes: number;
  outboundBytes: number;
  packets: number;
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
