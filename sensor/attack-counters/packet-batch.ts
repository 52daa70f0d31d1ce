/**
 * Packets that wait to be counted.
 *
 * They are counted about a thousand at a time: the counters' code and tables stay in the processor's cache meanwhile. So the
 * packet path only writes half a line of the cache for each packet; all questions about it are asked later. The words of IPv6
 * addresses lie apart.
 */
import { Exchange, Field, type Packet, Protocol } from '#sensor/capture/index.ts';
import { datagramKind, isRefusal, Kind, kindOf, twoWayKindOf } from './packet-kind.ts';

export const batchMax = 1024;

/** Words of an entry. */
export const Entry = {
  /** The last words of the addresses. */
  source: 0,
  target: 1,
  /** The source's port above. */
  ports: 2,
  /** Protocol, version, kind; then by `Noted`. */
  meta: 3,
  packets: 4,
  bytes: 5,
  unknown: 6,
  /** One more than the slot of the server's MAC that sent it from an address that is not its own; 0 for all others. */
  sender: 7,
} as const;
/** Two entries fill a line of the cache. */
export const entryWords = 8;
export const kindShift = 16;
/**
 * Above the kind: which ends may be protected (bit 0: the source); two bits for a connection that the packet opens (bit 0) or uses first;
 * 1 for an ICMP error.
 */
export const Noted = { ends: 20, opened: 22, refusal: 24 } as const;
/** Words of the two addresses of an entry in `wide`. */
export const wideWords = 8;
/** Bytes have 31 bits. */
export const entryBytesMax = 2 ** 31 - 1;

const ipv4 = 4;

export class PacketBatch {
  readonly words = new Int32Array(batchMax * entryWords);
  /** All words of IPv6 addresses, the source's first. */
  readonly wide = new Int32Array(batchMax * wideWords);
  count = 0;

  get isFull(): boolean {
    return this.count === batchMax;
  }

  addPacket(p: Packet, packets: number, unknown: number, exchange: number, sender: number): void {
    const { words } = this;
    const entry = this.count;
    const at = entry * entryWords;
    this.count = entry + 1;
    words[at] = p.source3;
    words[at + Entry.target] = p.target3;
    words[at + Entry.ports] = (p.sourcePort << 16) | p.targetPort;
    const isGroup = p.protocol === Protocol.udp && isGroupOf(p.version, p.target0, p.target3);
    const kind = isGroup ? Kind.twoWayDatagram : kindOf(p);
    const refusal = isRefusal(p, kind) ? 1 << Noted.refusal : 0;
    words[at + Entry.meta] = p.protocol | (p.version << 8) | noted(kind, exchange) | refusal;
    words[at + Entry.packets] = packets;
    words[at + Entry.bytes] = p.ipLength;
    words[at + Entry.unknown] = unknown;
    words[at + Entry.sender] = sender;
    if (p.version !== ipv4) this.#addWide(p, entry * wideWords);
  }

  /** Packets that one side of the flow at `base` sent, less than 2 GiB. They are acknowledgements or datagrams. */
  addFlow(
    flows: Int32Array,
    base: number,
    side: number,
    packets: number,
    bytes: number,
    exchange: number,
    sender: number,
  ): void {
    const { words, wide } = this;
    const at = this.count * entryWords;
    const source = base + side * 4;
    const target = base + 4 - side * 4;
    const ports = flows[base + Field.ports]!;
    const sent = side === 0 ? ports : (ports << 16) | (ports >>> 16);
    const meta = flows[base + Field.meta]! & 0xffff;
    const isTcp = (meta & 0xff) === Protocol.tcp;
    const isGroup = !isTcp && isGroupOf(meta >> 8, flows[target]!, flows[target + 3]!);
    const kind = isTcp ? Kind.segment : isGroup ? Kind.twoWayDatagram : datagramKind(sent >>> 16);
    words[at] = flows[source + 3]!;
    words[at + Entry.target] = flows[target + 3]!;
    words[at + Entry.ports] = sent;
    words[at + Entry.meta] = meta | noted(kind, exchange);
    words[at + Entry.packets] = packets;
    words[at + Entry.bytes] = bytes;
    words[at + Entry.unknown] = 0;
    words[at + Entry.sender] = sender;
    if (meta >> 8 !== ipv4) {
      const first = this.count * wideWords;
      for (let word = 0; word < 4; word += 1) {
        wide[first + word] = flows[source + word]!;
        wide[first + 4 + word] = flows[target + word]!;
      }
    }
    this.count += 1;
  }

  /** Writes the addresses of the entry at `at`, four words each, the source's first. Returns `into`. */
  readEnds(at: number, into: Int32Array): Int32Array {
    const { words, wide } = this;
    if (((words[at + Entry.meta]! >> 8) & 0xff) === ipv4) {
      into.fill(0);
      into[3] = words[at]!;
      into[7] = words[at + Entry.target]!;
    } else {
      const first = (at / entryWords) * wideWords;
      for (let word = 0; word < wideWords; word += 1) into[word] = wide[first + word]!;
    }
    return into;
  }

  #addWide(p: Packet, at: number): void {
    const { wide } = this;
    wide[at] = p.source0;
    wide[at + 1] = p.source1;
    wide[at + 2] = p.source2;
    wide[at + 3] = p.source3;
    wide[at + 4] = p.target0;
    wide[at + 5] = p.target1;
    wide[at + 6] = p.target2;
    wide[at + 7] = p.target3;
  }
}

/** True for multicast and broadcast: it has no answers and reaches no other network. */
function isGroupOf(version: number, word0: number, word3: number): boolean {
  return version === ipv4 ? word3 >>> 28 >= 14 : word0 >>> 24 === 255;
}

/** The upper half of an entry's meta, before its ends are known. */
function noted(oneWayKind: number, exchange: number): number {
  const kind = (exchange & Exchange.isTwoWay) !== 0 ? twoWayKindOf[oneWayKind]! : oneWayKind;
  return (kind << kindShift) | ((exchange >> 1) << Noted.opened);
}
