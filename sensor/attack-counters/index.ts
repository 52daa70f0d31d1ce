/**
 * Counts the packets of protected addresses, for the detector: one-second bins for each address, direction and kind.
 *
 * Guarantees: memory is bounded for any traffic, at most 16 MiB for 4,096 addresses; what has no room of its own counts
 * in its prefix and in `overflowed`. Packets come from an engine that decoded them (`PacketTap`), or as frames that are
 * decoded here, from files.
 *
 * A packet gets its kind in `packet-kind.ts` (with `flow-memory.ts`: whether the other end answers) and counts in
 * `slot-table.ts`. `traffic-detail.ts` keeps sources and ports of the busiest. `live-counters.ts` hands seconds over.
 */
export {
  AttackCounters,
  type AttackCountersOptions,
  countedHostsMax,
  countedPrefixesMax,
} from './attack-counters.ts';
export type { DetailLimits } from './detail-limits.ts';
export { Direction } from './direction.ts';
export {
  type CountingOrder,
  LiveCounters,
  type MemberSecond,
  type SlotDetail,
} from './live-counters.ts';
export { Kind, kindCount } from './packet-kind.ts';
export { PrefixGroups } from './prefix-groups.ts';
export { packetsOf, readRows } from './second-rows.ts';
export { Bin, binLength, SlotTable } from './slot-table.ts';
export { type DetailSummary, type HeavyPrefix, TrafficDetail } from './traffic-detail.ts';
