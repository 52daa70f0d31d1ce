/** Peer networks of minutes that arrive too late for their pairs, written beside the facts. */
import type { RowWriter } from '#service-kit/postgres/index.ts';
import { directionCode } from '../contract/codes.ts';
import { localAddressOf, type NamedPair } from '../contract/collect-facts.ts';
import { firstAddressOf } from '../contract/peer-networks.ts';
import type { RowPlace } from './row-place.ts';

export const latePeerColumns = [
  ...['site_id', 'minute', 'capture_id', 'vantage', 'direction', 'local', 'segment', 'peer'],
  ...['inbound_bytes', 'outbound_bytes', 'packets', 'is_foreign'],
];

const hourMs = 3_600_000;

/**
 * Whether the minute's hour may have lost pairs before it is rolled up again. An hour ahead of time, because the roll-up waits
 * until facts have settled; what is in the pairs as well is counted once.
 */
export const isLateForPeers = (minuteMs: number, pairsFromMs: number): boolean =>
  Math.floor(minuteMs / hourMs) * hourMs < pairsFromMs + hourMs;

/** Pairs of a capture's minute, summed by local address and network. */
export function writeLatePeers(to: RowWriter, place: RowPlace, pairs: readonly NamedPair[]): void {
  const counterMax = Number.MAX_SAFE_INTEGER;
  for (const sum of sumPeers(pairs)) {
    to.row(latePeerColumns.length);
    to.bigint(place.siteId);
    to.timestamp(place.minuteMs);
    to.bigint(place.captureId);
    to.smallint(place.vantage);
    to.smallint(directionCode(sum.direction));
    to.inet(sum.local);
    to.text(place.segmentOf(sum.local));
    to.inet(sum.peer);
    to.bigint(Math.min(sum.inboundBytes, counterMax));
    to.bigint(Math.min(sum.outboundBytes, counterMax));
    to.bigint(Math.min(sum.packets, counterMax));
    to.boolean(place.isForeign(sum.local));
  }
}

interface PeerSum {
  direction: 'outbound' | 'inbound';
  local: string;
  /** First address of the network. */
  peer: string;
  inboundBytes: number;
  outboundBytes: number;
  packets: number;
}

function sumPeers(pairs: readonly NamedPair[]): Iterable<PeerSum> {
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
