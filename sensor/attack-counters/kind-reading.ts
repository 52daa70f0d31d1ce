/** What the kernel counted by address, direction and kind of packet between two readings. */
import { kindCount } from './packet-kind.ts';

/** Numbers of one direction: packets by kind, then bytes of all packets, of reflections and of other datagrams. */
export const Read = {
  bytes: kindCount,
  reflectedBytes: kindCount + 1,
  datagramBytes: kindCount + 2,
} as const;
export const readLength = kindCount + 3;

/** Valid until the next reading. */
export interface KindReading {
  /** Monotonic milliseconds since the reading before; null for the first one, which knows no difference. */
  sinceMs: number | null;
  /** IP packets of all addresses, and those without a local one. */
  packets: number;
  bytes: number;
  foreignPackets: number;
  foreignBytes: number;
  /** Packets of addresses without room. */
  leftOut: number;
  /** Addresses with packets: their slots, and the numbers of both directions, inbound first. */
  count: number;
  slots: Int32Array;
  numbers: Float64Array;
  /** Slots that may have another address since the reading before. */
  vacated: readonly number[];
}
