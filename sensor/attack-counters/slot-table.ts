/**
 * Counters of addresses or prefixes in one-second bins: the latest seconds, for each direction and kind of packet.
 *
 * A slot has a head of 32 bytes, with its address and what is looked at for every packet, and a row of counters. Packets and
 * bytes of a kind lie side by side, so a packet changes one line of the processor's cache in each. A bin is set to zero when
 * its slot first counts in a new second, so quiet slots cost nothing.
 */
import { formatWords, mixHash } from '#sensor/capture/index.ts';
import { CounterArray } from './counter-array.ts';
import { Kind, kindCount } from './packet-kind.ts';
import type { Move } from './pair-record.ts';

/** Layout of the counters that are read: packets by kind, IP bytes by kind, then three more counters. */
export const Bin = {
  packets: 0,
  bytes: kindCount,
  /** TCP connections whose handshake was completed in this second. */
  opened: kindCount * 2,
  /** How many more packets there were at most in frames that were merged out of an unknown number. */
  unknown: kindCount * 2 + 1,
  /** TCP connections whose opener sent its first data in this second. */
  used: kindCount * 2 + 2,
} as const;

/** Counters of one bin. */
export const binLength = kindCount * 2 + 3;

/** Words of a head: the address, the version with the group of thresholds, and what changes. */
export const Head = { address: 0, version: 4, lastSecond: 5, details: 6, hosts: 7 } as const;
export const headWords = 8;
/** A word of the index: the slot plus one, and above it bits of the hash that avoid looking at most other heads. */
export const slotBits = 13;
export const slotMask = (1 << slotBits) - 1;
const groupShift = 8;
/** Bits of a detail's number; those of the second direction are above. */
const detailBits = 8;
const slotsMin = 256;
const kindBits = (1 << kindCount) - 1;
/** Bits of a row for the counters after the kinds. */
export const RowBit = { opened: 1 << kindCount, unknown: 2 << kindCount, used: 4 << kindCount } as const;

export class SlotTable {
  /** Seconds that are kept: the open one among them. */
  readonly bins: number;
  /** The slots with packets in the second of the latest packet. */
  readonly active: Int32Array;
  activeCount = 0;
  activeSecond = -1;
  count = 0;

  readonly #slotsMax: number;
  readonly #directions: number;
  readonly multiplier: number;
  /** Counters of a slot. The two directions of a second lie side by side. */
  readonly rowLength: number;
  #capacity: number;
  /** A hash is the upper bits of a product. */
  shift: number;
  /** By hash, twice as many places as slots. */
  index: Int32Array;
  heads: Int32Array;
  readonly counters: CounterArray;
  #second = 0;
  /** Where the open second's bins are in the row of a slot. */
  openBin = 0;

  /** `slotsMax` is a power of two: places of the index are the upper bits of a hash. */
  constructor(slotsMax: number, directions: 1 | 2, bins: number, seed: number) {
    if (slotsMax < 1 || (slotsMax & (slotsMax - 1)) !== 0)
      throw new RangeError(`a table has a power of two of slots, not ${slotsMax}`);
    this.bins = bins;
    this.active = new Int32Array(slotsMax);
    this.#slotsMax = slotsMax;
    this.#directions = directions;
    this.multiplier = mixHash(0x9e3779b1, seed) | 1;
    this.rowLength = directions * bins * binLength;
    this.#capacity = Math.min(slotsMin, slotsMax);
    this.index = new Int32Array(this.#capacity * 2);
    this.shift = Math.clz32(this.index.length) + 1;
    this.heads = new Int32Array(this.#capacity * headWords);
    this.counters = new CounterArray(this.#capacity * this.rowLength);
  }

  get isFull(): boolean {
    return this.count === this.#slotsMax;
  }

  /** Packets count in this second from now on. */
  open(second: number): void {
    this.#second = second;
    this.openBin = this.#binsOf(second);
  }

  /** The slot of an address of four words, or -1. */
  find(version: number, w0: number, w1: number, w2: number, w3: number): number {
    return (this.index[this.#place(version, w0, w1, w2, w3)]! & slotMask) - 1;
  }

  /** The same for the IPv6 address at `at`. */
  findAt(words: Int32Array, at: number): number {
    return this.find(6, words[at]!, words[at + 1]!, words[at + 2]!, words[at + 3]!);
  }

  /** The slot of an address, created when it is missing; -1 when the table is full. */
  locate(version: number, w0: number, w1: number, w2: number, w3: number): number {
    const place = this.#place(version, w0, w1, w2, w3);
    const found = (this.index[place]! & slotMask) - 1;
    if (found >= 0 || this.isFull) return found;
    if (this.count === this.#capacity) {
      this.#grow();
      return this.locate(version, w0, w1, w2, w3);
    }
    const slot = this.count;
    this.count += 1;
    this.index[place] = (slot + 1) | (this.#productOf(version, w0, w1, w2, w3) << slotBits);
    const head = slot * headWords;
    const heads = this.heads;
    heads.fill(0, head, head + headWords);
    heads[head] = w0;
    heads[head + 1] = w1;
    heads[head + 2] = w2;
    heads[head + 3] = w3;
    heads[head + Head.version] = version;
    this.counters.clear(slot * this.rowLength, (slot + 1) * this.rowLength);
    return slot;
  }

  /** Adds packets to the bin of the open second. `opened`: as noted of them. Returns the packets of this kind in it. */
  add(
    slot: number,
    direction: number,
    kind: number,
    packets: number,
    bytes: number,
    unknown: number,
    opened: number,
  ): number {
    if (this.heads[slot * headWords + Head.lastSecond] !== this.#second + 1) this.begin(slot);
    const counters = this.counters;
    const bin = this.#openBinOf(slot, direction);
    counters.add(bin + kind * 2 + 1, bytes);
    if (unknown > 0) counters.add(bin + Bin.unknown, unknown);
    if ((opened & 1) !== 0) counters.add(bin + Bin.opened, 1);
    if ((opened & 2) !== 0) counters.add(bin + Bin.used, 1);
    return counters.add(bin + kind * 2, packets);
  }

  /** Adds the counters of a row (`second-rows.ts`) to the open second's bin. Returns the position after them. */
  addCounters(slot: number, direction: number, bits: number, from: Float64Array, first: number): number {
    if (this.heads[slot * headWords + Head.lastSecond] !== this.#second + 1) this.begin(slot);
    const counters = this.counters;
    const bin = this.#openBinOf(slot, direction);
    let at = first;
    for (let left = bits & kindBits; left !== 0; left &= left - 1) {
      const place = bin + (31 - Math.clz32(left & -left)) * 2;
      counters.add(place, from[at]!);
      counters.add(place + 1, from[at + 1]!);
      at += 2;
    }
    if ((bits & RowBit.opened) !== 0) counters.add(bin + Bin.opened, from[at++]!);
    if ((bits & RowBit.unknown) !== 0) counters.add(bin + Bin.unknown, from[at++]!);
    if ((bits & RowBit.used) !== 0) counters.add(bin + Bin.used, from[at++]!);
    return at;
  }

  /**
   * Moves packets and bytes of a kind to another one in a second that is kept, as far as there are so many. Those of datagrams that are
   * missing are looked for among the replies.
   */
  move(slot: number, one: Move): void {
    const { direction, second, from, to, packets, bytes } = one;
    const last = this.lastSecond(slot);
    if (second > last || second <= last - this.bins || direction >= this.#directions) return;
    const { counters } = this;
    const bin = this.binOf(slot, direction, second);
    const moved = Math.min(packets, counters.get(bin + from * 2));
    const movedBytes = Math.min(bytes, counters.get(bin + from * 2 + 1));
    counters.subtract(bin + from * 2, moved);
    counters.subtract(bin + from * 2 + 1, movedBytes);
    counters.add(bin + to * 2, moved);
    counters.add(bin + to * 2 + 1, movedBytes);
    if ((moved < packets || movedBytes < bytes) && from === Kind.datagram)
      this.move(slot, { ...one, from: Kind.reply, packets: packets - moved, bytes: bytes - movedBytes });
  }

  /** Packets and bytes of a direction in the open second. */
  sumOf(slot: number, direction: number): { packets: number; bytes: number } {
    const sum = { packets: 0, bytes: 0 };
    if (this.lastSecond(slot) !== this.#second) return sum;
    const bin = this.#openBinOf(slot, direction);
    for (let kind = 0; kind < kindCount; kind += 1) {
      sum.packets += this.counters.get(bin + kind * 2);
      sum.bytes += this.counters.get(bin + kind * 2 + 1);
    }
    return sum;
  }

  /** Multiplies a direction's packets and bytes of the open second, in which the slot has counted, by factors of at least one. */
  multiply(
    slot: number,
    direction: number,
    { packets, bytes }: { packets: number; bytes: number },
    hasConnections: boolean,
  ): void {
    const { counters } = this;
    const bin = this.#openBinOf(slot, direction);
    const grow = (at: number, factor: number) => {
      const before = counters.get(at);
      counters.add(at, Math.round(before * factor) - before);
    };
    for (let kind = 0; kind < kindCount; kind += 1) {
      grow(bin + kind * 2, packets);
      grow(bin + kind * 2 + 1, bytes);
    }
    if (hasConnections) for (const at of [Bin.opened, Bin.used]) grow(bin + at, packets);
  }

  /** The slot counts in the open second for the first time: sets the bins since its last second to zero. */
  begin(slot: number): void {
    const second = this.#second;
    if (second !== this.activeSecond) {
      this.activeSecond = second;
      this.activeCount = 0;
    }
    this.active[this.activeCount] = slot;
    this.activeCount += 1;
    const first = Math.max(this.lastSecond(slot) + 1, second - this.bins + 1);
    for (let one = first; one <= second; one += 1) {
      const bin = this.binOf(slot, 0, one);
      this.counters.clear(bin, bin + this.#directions * binLength);
    }
    this.heads[slot * headWords + Head.lastSecond] = second + 1;
  }

  /** True when a slot that has counted in the open second has so many bytes of a kind in it. */
  hasBytes(slot: number, direction: number, kind: number, bytes: number): boolean {
    return this.counters.reaches(this.#openBinOf(slot, direction) + kind * 2 + 1, bytes);
  }

  /** True when the bin of a second has so many packets, bytes or opened connections, or so many packets of a kind. */
  reaches(
    slot: number,
    direction: number,
    second: number,
    packetsMin: number,
    bytesMin: number,
    openedMin: number,
    byKind: readonly number[],
  ): boolean {
    const last = this.lastSecond(slot);
    if (second > last || second <= last - this.bins) return false;
    const counters = this.counters;
    const bin = this.binOf(slot, direction, second);
    let packets = 0;
    let bytes = 0;
    for (let kind = 0; kind < kindCount; kind += 1) {
      const ofKind = counters.get(bin + kind * 2);
      if (ofKind === 0) continue;
      if (ofKind >= byKind[kind]!) return true;
      packets += ofKind;
      bytes += counters.get(bin + kind * 2 + 1);
    }
    return packets >= packetsMin || bytes >= bytesMin || counters.get(bin + Bin.opened) >= openedMin;
  }

  /** Adds the bin of a second to `into`, from `at` on. */
  addBin(slot: number, direction: number, second: number, into: Float64Array, at = 0): void {
    const last = this.lastSecond(slot);
    if (second > last || second <= last - this.bins || direction >= this.#directions) return;
    const counters = this.counters;
    const bin = this.binOf(slot, direction, second);
    for (let kind = 0; kind < kindCount; kind += 1) {
      const packets = counters.get(bin + kind * 2);
      if (packets === 0) continue;
      into[at + kind]! += packets;
      into[at + Bin.bytes + kind]! += counters.get(bin + kind * 2 + 1);
    }
    into[at + Bin.opened]! += counters.get(bin + Bin.opened);
    into[at + Bin.unknown]! += counters.get(bin + Bin.unknown);
    into[at + Bin.used]! += counters.get(bin + Bin.used);
  }

  /** Where the counters of a second begin that lies among those which are kept. */
  binOf(slot: number, direction: number, second: number): number {
    return slot * this.rowLength + this.#binsOf(second) + direction * binLength;
  }

  /** The last second with a packet, -1 for none. */
  lastSecond(slot: number): number {
    return this.heads[slot * headWords + Head.lastSecond]! - 1;
  }

  /** The group of the slot's thresholds. */
  group(slot: number): number {
    return this.heads[slot * headWords + Head.version]! >> groupShift;
  }

  setGroup(slot: number, group: number): void {
    this.heads[slot * headWords + Head.version] = this.version(slot) | (group << groupShift);
  }

  /** The number of a direction's detail, 0 for none. */
  detail(slot: number, direction: number): number {
    return (this.heads[slot * headWords + Head.details]! >> (direction * detailBits)) & 0xff;
  }

  setDetail(slot: number, direction: number, number: number): void {
    const at = slot * headWords + Head.details;
    const shift = direction * detailBits;
    this.heads[at] = (this.heads[at]! & ~(0xff << shift)) | (number << shift);
  }

  /** Of a prefix: what the owner of the table notes of its hosts. */
  hosts(slot: number): number {
    return this.heads[slot * headWords + Head.hosts]!;
  }

  setHosts(slot: number, value: number): void {
    this.heads[slot * headWords + Head.hosts] = value;
  }

  /** IP version, and the words of the address. */
  version(slot: number): number {
    return this.heads[slot * headWords + Head.version]! & 0xff;
  }

  keyWord(slot: number, word: number): number {
    return this.heads[slot * headWords + word]!;
  }

  words(slot: number): [number, number, number, number] {
    const word = (at: number) => this.keyWord(slot, at);
    return [word(0), word(1), word(2), word(3)];
  }

  /** The address as text. */
  text(slot: number): string {
    return formatWords(this.version(slot), ...this.words(slot));
  }

  /** Removes every slot except these, which are in ascending order and get new numbers in that order. */
  keepOnly(slots: ArrayLike<number>): void {
    this.activeCount = 0;
    const length = this.rowLength;
    for (let slot = 0; slot < slots.length; slot += 1) {
      const from = slots[slot]!;
      this.heads.copyWithin(slot * headWords, from * headWords, (from + 1) * headWords);
      this.counters.move(from * length, length, slot * length);
    }
    this.count = slots.length;
    this.#reindex();
  }

  #openBinOf(slot: number, direction: number): number {
    return slot * this.rowLength + this.openBin + direction * binLength;
  }

  #binsOf(second: number): number {
    return (second % this.bins) * this.#directions * binLength;
  }

  /** Of an address: the upper bits are its place in the index, the lower ones are beside its slot. */
  #productOf(version: number, w0: number, w1: number, w2: number, w3: number): number {
    const last = version === 4 ? w3 : mixHash(mixHash(mixHash(w3 ^ this.multiplier, w2), w1), w0);
    return Math.imul(last, this.multiplier);
  }

  /** Where the address is in the index, or the free place for it. */
  #place(version: number, w0: number, w1: number, w2: number, w3: number): number {
    const index = this.index;
    const heads = this.heads;
    const mask = index.length - 1;
    const product = this.#productOf(version, w0, w1, w2, w3);
    const tag = product << slotBits;
    let at = product >>> this.shift;
    for (;;) {
      const word = index[at]!;
      if (word === 0) return at;
      const head = ((word & slotMask) - 1) * headWords;
      if (
        ((word ^ tag) & ~slotMask) === 0 &&
        heads[head + 3] === w3 &&
        heads[head + 2] === w2 &&
        heads[head + 1] === w1 &&
        heads[head] === w0 &&
        (heads[head + Head.version]! & 0xff) === version
      )
        return at;
      at = (at + 1) & mask;
    }
  }

  #grow(): void {
    this.#capacity = Math.min(this.#capacity * 2, this.#slotsMax);
    const heads = this.heads;
    this.heads = new Int32Array(this.#capacity * headWords);
    this.heads.set(heads);
    this.counters.resize(this.#capacity * this.rowLength);
    this.index = new Int32Array(this.#capacity * 2);
    this.shift = Math.clz32(this.index.length) + 1;
    this.#reindex();
  }

  #reindex(): void {
    const heads = this.heads;
    this.index.fill(0);
    for (let slot = 0; slot < this.count; slot += 1) {
      const head = slot * headWords;
      const [w0, w1, w2, w3] = [heads[head]!, heads[head + 1]!, heads[head + 2]!, heads[head + 3]!];
      const version = this.version(slot);
      const product = this.#productOf(version, w0, w1, w2, w3);
      this.index[this.#place(version, w0, w1, w2, w3)] = (slot + 1) | (product << slotBits);
    }
  }
}

/** How many kinds these bits stand for; each has two counters, and they come first. */
export function kindsOf(bits: number): number {
  return onesIn(bits & kindBits);
}

/** How many counters these bits stand for. */
export function countersOf(bits: number): number {
  return onesIn(bits) + kindsOf(bits);
}

function onesIn(bits: number): number {
  let count = 0;
  for (let left = bits; left !== 0; left &= left - 1) count += 1;
  return count;
}
