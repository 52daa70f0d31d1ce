/**
 * Receives the packets that an engine counts, so that others need not decode them again.
 *
 * Packets of the fast path come summed, and with them others of the same flow that are counted alike: one call for each flow,
 * side and second. Everything else comes one by one.
 */
import type { Packet } from './decode/packet.ts';

export interface PacketTap {
  /**
   * A decoded packet, which stands for `packets` merged ones; `isUnknown`: for an unknown number. The object is used
   * again for the next packet. Fragments come as they arrive, not as they are put together, and only the first says something of its flow.
   * `exchange`: what its flow was with it, as bits of `Exchange`.
   */
  packet(packet: Packet, packets: number, isUnknown: boolean, exchange: number): void;
  /** False for flows that the tap needs not be told of. Asked once of a flow. */
  wantsFlow(words: Int32Array, base: number): boolean;
  /** Packets that one side (0: the lower socket) of the flow at `base` sent since the last call, with its `Exchange` now. */
  flow(words: Int32Array, base: number, side: number, packets: number, bytes: number, exchange: number): void;
  /** A later second begins. What came before belongs to earlier ones: `packets`, told or not. */
  turn(second: number, packets: number): void;
}
