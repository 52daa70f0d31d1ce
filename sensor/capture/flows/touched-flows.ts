/**
 * The flows that the fast path counted in the open second, with their counters and flags before that, so that a tap gets the
 * difference once a second instead of every packet.
 *
 * A flow is in the list once, marked by a flag. It is settled at the end of the second, and before anything else reads or
 * changes its counters; packets of the slow path that count alike join its sum. A full list is settled within the second; nothing is lost. A flow that the tap does not want stays
 * marked without being in the list, so its packets cost nothing.
 */

import type { PacketTap } from '../capture.ts';
import { type Packet, Protocol } from '../decode/packet.ts';
import { exchangeOf, Field, Flag, flowWords } from './flow-record.ts';
import type { FlowTable } from './flow-table.ts';

const listedMax = 16_384;
/** Flows whose records are read ahead: both of their lines stay in the first cache. */
const aheadMax = 64;
/** The entry of a flow that the tap does not want. */
const unlisted = -1;

export class TouchedFlows {
  readonly #flows: FlowTable;
  readonly #tap: PacketTap;
  readonly #bases = new Int32Array(listedMax);
  /** Packets of both sides before, and bytes. */
  readonly #packets = new Int32Array(listedMax * 2);
  readonly #bytes = new Float64Array(listedMax * 2);
  readonly #flags = new Int32Array(listedMax);
  /** The entry of each flow that is marked. */
  readonly #entries: Int32Array;
  #count = 0;
  /** What was read ahead, so that reading it is not left out as useless. */
  read = 0;

  constructor(flows: FlowTable, tap: PacketTap) {
    this.#flows = flows;
    this.#tap = tap;
    this.#entries = new Int32Array(flows.words.length / flowWords);
  }

  /** Notes the counters of a flow that is not marked; the caller marks it, and counts after that. */
  note(base: number): void {
    if (!this.#tap.wantsFlow(this.#flows.words, base)) {
      this.#entries[base / flowWords] = unlisted;
      return;
    }
    if (this.#count === listedMax) this.settleAll();
    const entry = this.#count;
    this.#count += 1;
    const { words, sums } = this.#flows;
    this.#bases[entry] = base;
    this.#flags[entry] = words[base + Field.flags]!;
    this.#packets[entry * 2] = words[base + Field.packets]!;
    this.#packets[entry * 2 + 1] = words[base + Field.packets + 1]!;
    this.#bytes[entry * 2] = sums[(base + Field.bytes) >> 1]!;
    this.#bytes[entry * 2 + 1] = sums[((base + Field.bytes) >> 1) + 1]!;
    this.#entries[base / flowWords] = entry;
  }

  /**
   * True when a packet that is counted next is told with the sum of its marked flow, or not wanted. Otherwise what was counted
   * before is passed on, and the packet has to be told by itself, as always where `maySum` is false.
   */
  takes(base: number, side: number, p: Packet, maySum: boolean): boolean {
    const flags = this.#flows.words[base + Field.flags]!;
    if ((flags & Flag.touched) === 0) return false;
    // The first that a side says changes what packets of the opposite end are.
    if (maySum && (flags & (Flag.said << side)) !== 0 && isLikeKnown(p)) return true;
    if (maySum && this.#entries[base / flowWords] === unlisted) return true;
    this.settle(base);
    return false;
  }

  /** Passes on what a marked flow counted, and takes the mark off. */
  settle(base: number): void {
    const entry = this.#entries[base / flowWords]!;
    if (entry === unlisted) return;
    this.#bases[entry] = -1;
    this.#pass(base, entry);
  }

  settleAll(): void {
    for (let first = 0; first < this.#count; first += aheadMax) {
      const end = Math.min(first + aheadMax, this.#count);
      this.#readAhead(first, end);
      for (let entry = first; entry < end; entry += 1) {
        const base = this.#bases[entry]!;
        if (base >= 0) this.#pass(base, entry);
      }
    }
    this.#count = 0;
  }

  /** Reads the records of entries and does nothing else, so that the waits for memory overlap. */
  #readAhead(first: number, end: number): void {
    const { words } = this.#flows;
    const bases = this.#bases;
    let read = 0;
    for (let entry = first; entry < end; entry += 1) {
      const base = Math.max(0, bases[entry]!);
      read |= words[base + Field.packets]! | words[base + Field.flags]!;
    }
    this.read = read;
  }

  /** Settles everything, and takes all marks off. */
  end(): void {
    this.settleAll();
    const { words, highWater } = this.#flows;
    for (let base = 0; base < highWater; base += flowWords) words[base + Field.flags]! &= ~Flag.touched;
  }

  #pass(base: number, entry: number): void {
    const { words, sums } = this.#flows;
    const flags = words[base + Field.flags]!;
    const protocol = words[base + Field.meta]! & 0xff;
    words[base + Field.flags] = flags & ~Flag.touched;
    for (let side = 0; side < 2; side += 1) {
      const packets = words[base + Field.packets + side]! - this.#packets[entry * 2 + side]!;
      if (packets === 0) continue;
      const bytes = sums[((base + Field.bytes) >> 1) + side]! - this.#bytes[entry * 2 + side]!;
      const exchange = exchangeOf(this.#flags[entry]!, flags, side, protocol);
      this.#tap.flow(words, base, side, packets, bytes, exchange);
    }
  }
}

/** True for what the fast path counts of known flows: datagrams, and segments that neither open nor reset. */
function isLikeKnown(p: Packet): boolean {
  if (p.protocol === Protocol.tcp) return p.tcpFlags < 0 || (p.tcpFlags & 0x06) === 0;
  return p.protocol === Protocol.udp;
}
