/**
 * Counts the packets of protected addresses, for the detector: one-second bins for each address, direction and kind.
 *
 * Guarantees: memory is bounded for any traffic, 4.1 MiB in a thread for 4,096 addresses (docs/detection.md);
 * what has no room of its own counts in its prefix and in `overflowed`. Packets come from an engine that decoded them
 * (`PacketTap`), or from the frames of files (`frame-feed.ts`).
 *
 * Packets wait in `packet-batch.ts`, with their kind (`packet-kind.ts`). `pair-table.ts` tells what is ordinary because both ends
 * converse.
 * `packet-finder.ts` turns away those of other addresses (`protected-scope.ts`) and finds the slots of the rest.
 * `senders.ts` finds packets whose source is made up. `known-hosts.ts` counts most of them, `attack-counters.ts` the others, in `slot-table.ts`. `traffic-detail.ts` keeps
 * sources and ports of the busiest. `live-counters.ts` hands seconds over, in the rows of `second-rows.ts`.
 */
export {
  AttackCounters,
  type AttackCountersOptions,
  countedHostsMax,
  countedPrefixesMax,
} from './attack-counters.ts';
export type { DetailLimits } from './detail-limits.ts';
export { Direction } from './direction.ts';
export { FrameFeed } from './frame-feed.ts';
export { type KindReading, Read, readLength } from './kind-reading.ts';
export {
  type CountingOrder,
  LiveCounters,
  type MemberSecond,
  type SlotDetail,
  type SlotKind,
  type WatchedScope,
} from './live-counters.ts';
export { isNetwork, networkSlot } from './network-slots.ts';
export { Kind, kindCount, reflectsFrom } from './packet-kind.ts';
export type { PairCount } from './pair-counts.ts';
export { PrefixGroups } from './prefix-groups.ts';
export { countsOf, packetsOf, readRows } from './second-rows.ts';
export { countedSendersMax } from './sender-counters.ts';
export { Bin, binLength, RowBit, SlotTable } from './slot-table.ts';
export { type HeavyPrefix, TrafficDetail } from './traffic-detail.ts';
