/**
 * Fragments of incomplete datagrams: the ports they belong to, and the whole datagram if it is small enough to carry a
 * name.
 *
 * Every fragment is counted. Only the first fragment has the ports; the counts of earlier ones are held until the ports
 * are known or the entry is reused. There are 32 entries of 8 KiB. Amplification floods consist of fragments, so only
 * datagrams that can carry a name are reassembled, and bytes are copied in blocks.
 */
import { decodeTransport } from './decode-ip.ts';
import { Packet, Protocol } from './packet.ts';
import { mayCarryPackets } from './tunnels.ts';

const entriesMax = 32;
const entryBytes = 8192;
/** One bit for each eight bytes of a datagram. */
const mapBytes = entryBytes / 64;
const keyWords = 9;
const dnsPort = 53;
const lifeSeconds = 30;

/** Receives a packet without ports, for fragments whose ports never became known. */
export type PendingSink = (packet: Packet, bytes: number, packets: number) => void;

export class Fragments {
  /** After `add` returned true: the whole datagram, decoded from its transport header on. */
  readonly whole = new Packet();
  /** After `add`: counts of earlier fragments that belong to the packet's ports. */
  releasedBytes = 0;
  releasedPackets = 0;

  /** Ids of the datagrams, which distinguish most of them, and the other fields that identify them. */
  readonly #ids = new Int32Array(entriesMax);
  readonly #keys = new Int32Array(entriesMax * keyWords);
  readonly #ports = new Int32Array(entriesMax);
  /** 0 free, 1 ports unknown, 2 ports known. */
  readonly #states = new Uint8Array(entriesMax);
  readonly #lastSeen = new Float64Array(entriesMax);
  readonly #lengths = new Int32Array(entriesMax);
  /** Number of leading bytes of the map that are full. */
  readonly #full = new Int32Array(entriesMax);
  /** 1 for a datagram that can not carry a name. */
  readonly #carriesNoName = new Uint8Array(entriesMax);
  readonly #pendingBytes = new Float64Array(entriesMax);
  readonly #pendingPackets = new Int32Array(entriesMax);
  /** One bit for each eight bytes, the unit of fragment offsets. */
  readonly #maps = new Uint8Array(entriesMax * mapBytes);
  readonly #data = new Uint8Array(entriesMax * entryBytes);
  readonly #placeholder = new Packet();
  readonly #onPending: PendingSink;
  /** The entry of the last added fragment, and the next entry to reuse. */
  #entry = 0;
  #hand = 0;
  /** Protocol, version and tunnel of the last added fragment. */
  #kind = 0;

  constructor(onPending: PendingSink) {
    this.#onPending = onPending;
    this.whole.attach(this.#data);
  }

  /**
   * Adds a fragment. Sets its ports if they are known; otherwise the caller holds its count, and `packet.ipLength` is
   * counted later. Returns true when the datagram is complete. `tunnel`: the path of tunnels that it was in; a fragment inside a
   * tunnel never belongs to a datagram outside, whose held counts it would take.
   */
  add(packet: Packet, now: number, tunnel: number): boolean {
    this.#kind = packet.protocol | (packet.version << 8) | (tunnel << 16);
    const entry = this.#entryOf(packet, now);
    this.#entry = entry;
    this.releasedBytes = this.releasedPackets = 0;
    if (packet.fragmentOffset === 0) this.#takeFirst(entry, packet);
    if (this.#states[entry] === 2) {
      packet.sourcePort = this.#ports[entry]! >>> 16;
      packet.targetPort = this.#ports[entry]! & 0xffff;
    }
    const isWhole = this.#carriesNoName[entry] === 0 && this.#gather(entry, packet);
    if (isWhole) this.#decodeWhole(entry, packet);
    return isWhole;
  }

  /** True when the ports of the last added fragment are not known yet; its count is then held. */
  hold(packet: Packet, packets: number): boolean {
    const entry = this.#entry;
    if (this.#states[entry] === 2) return false;
    this.#pendingBytes[entry]! += packet.ipLength;
    this.#pendingPackets[entry]! += packets;
    return true;
  }

  /** Reports every held count, before a minute closes. */
  flushPending(): void {
    for (let entry = 0; entry < entriesMax; entry += 1) this.#handOver(entry);
  }

  #takeFirst(entry: number, packet: Packet): void {
    if (this.#states[entry] !== 1) return;
    this.#states[entry] = 2;
    this.#carriesNoName[entry] = mayName(packet) ? 0 : 1;
    this.#ports[entry] = (packet.sourcePort << 16) | packet.targetPort;
    this.releasedBytes = this.#pendingBytes[entry]!;
    this.releasedPackets = this.#pendingPackets[entry]!;
    this.#pendingBytes[entry] = this.#pendingPackets[entry] = 0;
  }

  /** Copies the fragment's bytes. Returns true when the datagram is complete. */
  #gather(entry: number, packet: Packet): boolean {
    const offset = packet.fragmentOffset;
    const length = packet.payloadEnd - packet.transportAt;
    if (length <= 0 || offset + length > entryBytes) return false;
    const from = packet.transportAt;
    this.#data.set(packet.bytes.subarray(from, from + length), entry * entryBytes + offset);
    const last = packet.hasMoreFragments ? (offset + length) >> 3 : (offset + length + 7) >> 3;
    this.#mark(entry, offset >> 3, last);
    if (!packet.hasMoreFragments) this.#lengths[entry] = offset + length;
    const total = this.#lengths[entry]!;
    if (total === 0 || !this.#hasUnits(entry, (total + 7) >> 3)) return false;
    // Clear the map, so that a repeated fragment does not report the datagram again.
    this.#clearMap(entry);
    return true;
  }

  /** Marks the units from `first` up to, not including, `last`; whole bytes of the map at once. */
  #mark(entry: number, first: number, last: number): void {
    if (last <= first) return;
    const maps = this.#maps;
    const base = entry * mapBytes;
    const start = base + (first >> 3);
    const end = base + (last >> 3);
    const startBits = (0xff << (first & 7)) & 0xff;
    const endBits = (1 << (last & 7)) - 1;
    if (start === end) {
      maps[start]! |= startBits & endBits;
      return;
    }
    maps[start]! |= startBits;
    maps.fill(0xff, start + 1, end);
    if (endBits !== 0) maps[end]! |= endBits;
  }

  /** True when the first `count` units have arrived. Full bytes are not checked again. */
  #hasUnits(entry: number, count: number): boolean {
    const base = entry * mapBytes;
    const wholeBytes = count >> 3;
    let full = this.#full[entry]!;
    while (full < wholeBytes && this.#maps[base + full] === 0xff) full += 1;
    this.#full[entry] = full;
    const endBits = (1 << (count & 7)) - 1;
    return full >= wholeBytes && (this.#maps[base + wholeBytes]! & endBits) === endBits;
  }

  #clearMap(entry: number): void {
    this.#maps.fill(0, entry * mapBytes, (entry + 1) * mapBytes);
    this.#full[entry] = 0;
  }

  #decodeWhole(entry: number, packet: Packet): void {
    const { whole } = this;
    copyAddresses(packet, whole);
    whole.transportAt = entry * entryBytes;
    whole.end = whole.wireEnd = whole.payloadEnd = whole.transportAt + this.#lengths[entry]!;
    whole.fragmentOffset = 0;
    decodeTransport(whole);
  }

  #entryOf(packet: Packet, now: number): number {
    const id = packet.fragmentId;
    for (let entry = 0; entry < entriesMax; entry += 1) {
      if (this.#ids[entry] !== id || this.#states[entry] === 0 || !this.#isSame(entry, packet)) continue;
      if (now - this.#lastSeen[entry]! > lifeSeconds) continue;
      this.#lastSeen[entry] = now;
      return entry;
    }
    return this.#begin(packet, now);
  }

  /** Creates an entry for a new datagram, in place of the oldest one. */
  #begin(packet: Packet, now: number): number {
    const entry = this.#hand;
    this.#hand = entry + 1 === entriesMax ? 0 : entry + 1;
    this.#handOver(entry);
    this.#states[entry] = 1;
    this.#lastSeen[entry] = now;
    this.#lengths[entry] = 0;
    this.#carriesNoName[entry] = canName(packet.protocol) ? 0 : 1;
    if (this.#carriesNoName[entry] === 0) this.#clearMap(entry);
    this.#setKey(entry, packet);
    return entry;
  }

  #handOver(entry: number): void {
    const packets = this.#pendingPackets[entry]!;
    if (packets === 0) return;
    const bytes = this.#pendingBytes[entry]!;
    this.#pendingBytes[entry] = this.#pendingPackets[entry] = 0;
    this.#onPending(this.#packetOf(entry), bytes, packets);
  }

  #packetOf(entry: number): Packet {
    const packet = this.#placeholder;
    const at = entry * keyWords;
    const keys = this.#keys;
    packet.source0 = keys[at]!;
    packet.source1 = keys[at + 1]!;
    packet.source2 = keys[at + 2]!;
    packet.source3 = keys[at + 3]!;
    packet.target0 = keys[at + 4]!;
    packet.target1 = keys[at + 5]!;
    packet.target2 = keys[at + 6]!;
    packet.target3 = keys[at + 7]!;
    packet.protocol = keys[at + 8]! & 0xff;
    packet.version = (keys[at + 8]! >> 8) & 0xff;
    return packet;
  }

  #setKey(entry: number, packet: Packet): void {
    const at = entry * keyWords;
    const keys = this.#keys;
    keys[at] = packet.source0;
    keys[at + 1] = packet.source1;
    keys[at + 2] = packet.source2;
    keys[at + 3] = packet.source3;
    keys[at + 4] = packet.target0;
    keys[at + 5] = packet.target1;
    keys[at + 6] = packet.target2;
    keys[at + 7] = packet.target3;
    keys[at + 8] = this.#kind;
    this.#ids[entry] = packet.fragmentId;
  }

  #isSame(entry: number, packet: Packet): boolean {
    const at = entry * keyWords;
    const keys = this.#keys;
    return (
      keys[at + 8] === this.#kind &&
      keys[at + 3] === packet.source3 &&
      keys[at + 7] === packet.target3 &&
      keys[at] === packet.source0 &&
      keys[at + 1] === packet.source1 &&
      keys[at + 2] === packet.source2 &&
      keys[at + 4] === packet.target0 &&
      keys[at + 5] === packet.target1 &&
      keys[at + 6] === packet.target2
    );
  }
}

/** Copies the addresses of both ends. */
export function copyAddresses(from: Packet, to: Packet): void {
  to.version = from.version;
  to.protocol = from.protocol;
  to.source0 = from.source0;
  to.source1 = from.source1;
  to.source2 = from.source2;
  to.source3 = from.source3;
  to.target0 = from.target0;
  to.target1 = from.target1;
  to.target2 = from.target2;
  to.target3 = from.target3;
}

/** True for protocols of which only the first fragment has ports. */
export function hasPorts(protocol: number): boolean {
  return protocol === Protocol.tcp || protocol === Protocol.udp || protocol === Protocol.sctp;
}

/** Protocols whose packets are inspected for names. */
function canName(protocol: number): boolean {
  return (
    protocol === Protocol.tcp ||
    protocol === Protocol.udp ||
    protocol === Protocol.ipip ||
    protocol === Protocol.ipv6 ||
    protocol === Protocol.gre
  );
}

/** True when a datagram with this first fragment may carry a name: a hello, a request, a lookup, or an inner packet. */
function mayName(first: Packet): boolean {
  if (first.protocol === Protocol.tcp || mayCarryPackets(first)) return true;
  return first.protocol === Protocol.udp && (first.sourcePort === dnsPort || first.targetPort === dnsPort);
}
