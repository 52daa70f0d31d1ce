/** Peer networks of minutes that arrive too late for their pairs, written beside the facts. */
import type { RowWriter } from '#service-kit/postgres/index.ts';
import { directionCode } from '../contract/codes.ts';
import type { NamedPair } from '../contract/collect-facts.ts';
import { sumPeers } from '../contract/sum-peers.ts';
import type { RowPlace } from '../control/row-place.ts';

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
