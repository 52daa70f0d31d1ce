/**
 * Packets of protected addresses that wait to be counted.
 *
 * They are counted some hundred at a time: the counters' code and tables stay in the processor's cache meanwhile, and what
 * has to be read from far away is asked for at once instead of packet by packet. An entry is one line of the cache and
 * begins as a flow's record does.
 */
import { Field, type Packet, sourceIsLower } from '#sensor/capture/index.ts';

export const batchMax = 256;

/** Words of an entry. */
export const Entry = {
  lower: 0,
  higher: 4,
  ports: 8,
  /** Protocol, and version. */
  meta: 9,
  /** Bit 0: the side that sent. Bits 1 and 2: the lower and the higher end may be protected. Above: the kind. */
  flags: 10,
  packets: 11,
  bytes: 12,
  unknown: 13,
} as const;
export const entryWords = 16;
export const kindShift = 3;
/** Bytes have 31 bits. */
export const entryBytesMax = 2 ** 31 - 1;

export class PacketBatch {
  readonly words = new Int32Array(batchMax * entryWords);
  count = 0;

  get isFull(): boolean {
    return this.count === batchMax;
  }

  /** `ends`: bit 0 when the source may be protected, bit 1 when the target may be. */
  addPacket(p: Packet, ends: number, kind: number, packets: number, unknown: number): void {
    const { words } = this;
    const at = this.count * entryWords;
    this.count += 1;
    const isLower = p.version === 4 && p.source3 !== p.target3 ? p.source3 < p.target3 : sourceIsLower(p);
    const source = isLower ? at : at + Entry.higher;
    const target = isLower ? at + Entry.higher : at;
    words[source + 3] = p.source3;
    words[target + 3] = p.target3;
    // Of an IPv4 address only the last word is read.
    if (p.version !== 4) {
      words[source] = p.source0;
      words[source + 1] = p.source1;
      words[source + 2] = p.source2;
      words[target] = p.target0;
      words[target + 1] = p.target1;
      words[target + 2] = p.target2;
    }
    words[at + Entry.ports] = isLower
      ? (p.sourcePort << 16) | p.targetPort
      : (p.targetPort << 16) | p.sourcePort;
    words[at + Entry.meta] = p.protocol | (p.version << 8);
    const sides = isLower ? ends << 1 : ((ends & 1) << 2) | (ends & 2) | 1;
    words[at + Entry.flags] = sides | (kind << kindShift);
    words[at + Entry.packets] = packets;
    words[at + Entry.unknown] = unknown;
    words[at + Entry.bytes] = p.ipLength;
  }

  /** Packets that one side of the flow at `base` sent, less than 2 GiB. `ends`: bit 0 when the lower end may be protected. */
  addFlow(
    flows: Int32Array,
    base: number,
    side: number,
    ends: number,
    kind: number,
    packets: number,
    bytes: number,
  ): void {
    const { words } = this;
    const at = this.count * entryWords;
    this.count += 1;
    for (let word = 0; word < Field.ports; word += 1) words[at + word] = flows[base + word]!;
    words[at + Entry.ports] = flows[base + Field.ports]!;
    words[at + Entry.meta] = flows[base + Field.meta]! & 0xffff;
    words[at + Entry.flags] = side | (ends << 1) | (kind << kindShift);
    words[at + Entry.packets] = packets;
    words[at + Entry.unknown] = 0;
    words[at + Entry.bytes] = bytes;
  }
}
