/**
 * Fragments of datagrams that are on their way: which ports they belong to, and the whole datagram where it is small
 * enough to carry a name.
 *
 * Every fragment counts when it arrives. One that comes before the first (which alone has the ports) is held as a
 * count, until the ports are known or the entry makes room. Thirty-two datagrams at a time, 8 KiB each.
 */
import { decodeTransport } from './decode-ip.ts';
import { Packet, Protocol } from './packet.ts';

const entriesMax = 32;
const entryBytes = 8192;
const mapBytes = entryBytes / 64;
const keyWords = 10;
const lifeSeconds = 30;

/** A packet without ports that stands for fragments nobody could place. */
export type PendingSink = (packet: Packet, bytes: number, packets: number) => void;

export class Fragments {
  /** After `add` said true: the whole datagram, decoded from its transport header on. */
  readonly whole = new Packet();
  /** After `add`: counts of earlier fragments that now belong to the packet's ports. */
  releasedBytes = 0;
  releasedPackets = 0;

  readonly #keys = new Int32Array(entriesMax * keyWords);
  readonly #ports = new Int32Array(entriesMax);
  /** 0 free, 1 ports unknown, 2 ports known. */
  readonly #states = new Uint8Array(entriesMax);
  readonly #lastSeen = new Float64Array(entriesMax);
  readonly #lengths = new Int32Array(entriesMax);
  readonly #pendingBytes = new Float64Array(entriesMax);
  readonly #pendingPackets = new Int32Array(entriesMax);
  /** One bit for each eight bytes: offsets are multiples of that. */
  readonly #maps = new Uint8Array(entriesMax * mapBytes);
  readonly #data = new Uint8Array(entriesMax * entryBytes);
  readonly #placeholder = new Packet();
  readonly #onPending: PendingSink;

  constructor(onPending: PendingSink) {
    this.#onPending = onPending;
    this.whole.attach(this.#data);
  }

  /**
   * Takes a fragment: gives it its ports where they are known, holds its count where not (`packet.ipLength` is then
   * counted later), and is true when the datagram is whole.
   */
  add(packet: Packet, now: number): boolean {
    const entry = this.#entryOf(packet, now);
    this.releasedBytes = this.releasedPackets = 0;
    if (packet.fragmentOffset === 0) this.#takePorts(entry, packet);
    if (this.#states[entry] === 2) {
      packet.sourcePort = this.#ports[entry]! >>> 16;
      packet.targetPort = this.#ports[entry]! & 0xffff;
    }
    const isWhole = this.#gather(entry, packet);
    if (isWhole) this.#decodeWhole(entry, packet);
    return isWhole;
  }

  /** True when the last added fragment's ports are not known yet; then `hold` takes its count. */
  hold(packet: Packet, now: number): boolean {
    const entry = this.#entryOf(packet, now);
    if (this.#states[entry] === 2) return false;
    this.#pendingBytes[entry]! += packet.ipLength;
    this.#pendingPackets[entry]! += 1;
    return true;
  }

  /** Hands over every held count, before a minute closes. */
  flushPending(): void {
    for (let entry = 0; entry < entriesMax; entry += 1) this.#handOver(entry);
  }

  #takePorts(entry: number, packet: Packet): void {
    if (this.#states[entry] !== 1) return;
    this.#states[entry] = 2;
    this.#ports[entry] = (packet.sourcePort << 16) | packet.targetPort;
    this.releasedBytes = this.#pendingBytes[entry]!;
    this.releasedPackets = this.#pendingPackets[entry]!;
    this.#pendingBytes[entry] = this.#pendingPackets[entry] = 0;
  }

  /** Copies the fragment's bytes; true when none is missing any more. */
  #gather(entry: number, packet: Packet): boolean {
    const offset = packet.fragmentOffset;
    const length = packet.payloadEnd - packet.transportAt;
    if (length <= 0 || offset + length > entryBytes) return false;
    const base = entry * entryBytes + offset;
    for (let i = 0; i < length; i += 1) this.#data[base + i] = packet.bytes[packet.transportAt + i]!;
    const first = offset >> 3;
    const last = packet.hasMoreFragments ? (offset + length) >> 3 : (offset + length + 7) >> 3;
    for (let unit = first; unit < last; unit += 1)
      this.#maps[entry * mapBytes + (unit >> 3)]! |= 1 << (unit & 7);
    if (!packet.hasMoreFragments) this.#lengths[entry] = offset + length;
    const total = this.#lengths[entry]!;
    if (total === 0) return false;
    for (let unit = 0; unit < (total + 7) >> 3; unit += 1) {
      if ((this.#maps[entry * mapBytes + (unit >> 3)]! & (1 << (unit & 7))) === 0) return false;
    }
    // Whole once: a repeated fragment must not make the datagram appear again.
    this.#maps.fill(0, entry * mapBytes, (entry + 1) * mapBytes);
    return true;
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
    let oldest = 0;
    for (let entry = 0; entry < entriesMax; entry += 1) {
      if (
        this.#states[entry] !== 0 &&
        this.#isSame(entry, packet) &&
        now - this.#lastSeen[entry]! <= lifeSeconds
      ) {
        this.#lastSeen[entry] = now;
        return entry;
      }
      if (this.#states[entry] === 0) oldest = entry;
      else if (this.#states[oldest] !== 0 && this.#lastSeen[entry]! < this.#lastSeen[oldest]!) oldest = entry;
    }
    this.#handOver(oldest);
    this.#states[oldest] = 1;
    this.#lastSeen[oldest] = now;
    this.#lengths[oldest] = 0;
    this.#maps.fill(0, oldest * mapBytes, (oldest + 1) * mapBytes);
    this.#setKey(oldest, packet);
    return oldest;
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
    packet.version = keys[at + 8]! >> 8;
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
    keys[at + 8] = packet.protocol | (packet.version << 8);
    keys[at + 9] = packet.fragmentId;
  }

  #isSame(entry: number, packet: Packet): boolean {
    const at = entry * keyWords;
    const keys = this.#keys;
    return (
      keys[at + 9] === packet.fragmentId &&
      keys[at + 8] === (packet.protocol | (packet.version << 8)) &&
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

/** Copies what identifies a packet's two ends. */
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

/** True for protocols whose fragments carry ports in the first one only. */
export function hasPorts(protocol: number): boolean {
  return protocol === Protocol.tcp || protocol === Protocol.udp || protocol === Protocol.sctp;
}
