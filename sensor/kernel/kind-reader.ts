/**
 * Reads what an interface's addresses received and sent by kind of packet, for the detector: each reading is the difference to the one
 * before, because the kernel's counters only grow.
 *
 * Thousands of addresses are read every second. So a reading is plain numbers in arrays that are used again, and an address is found by
 * its place in the map, where it mostly stays.
 */
import { type KindReading, kindCount, Read, readLength } from '#sensor/attack-counters/index.ts';
import type { KernelCounter } from './counter.ts';
import { addressBytes, directionWords, hostWords, kindsAtWord, kindWords, volumes } from './layout.ts';

/** With more addresses, which have come and gone, all are forgotten. */
const slotsMax = 32_768;
const keyWords = addressBytes / 4;
/** Of the volumes that there is room for. */
const usedVolumes = 3;
/** What is kept of a direction: packets by kind, and bytes by volume. */
const keptPackets = 2 * kindWords;
const keptBytes = 2 * volumes;

export class KindReader {
  readonly #counter: KernelCounter;
  readonly #nowMs: () => number;
  /** Of each slot: version and words, in the order of the processor. */
  #keys = new Int32Array(1024 * keyWords);
  #packets = new Uint32Array(1024 * keptPackets);
  #bytes = new Float64Array(1024 * keptBytes);
  #used = 0;
  readonly #slotOf = new Map<string, number>();
  /** The slot at each place of the map, as of the reading before. */
  #places = new Int32Array(1024).fill(-1);
  #seen = { packets: 0, bytes: 0, foreignPackets: 0, foreignBytes: 0, leftOut: 0 };
  #readAtMs = Number.NaN;
  #generation = 0;
  #slots = new Int32Array(1024);
  #numbers = new Float64Array(1024 * 2 * readLength);
  readonly #sum = new Uint32Array(keptPackets);
  readonly #sumBytes = new Float64Array(keptBytes);

  constructor(counter: KernelCounter, nowMs = () => performance.now()) {
    this.#counter = counter;
    this.#nowMs = nowMs;
    counter.onRemoved = (key) => this.#clear(this.#slotOf.get(key.toString('latin1')));
  }

  /** IP version, and the four words of the address of a slot. */
  addressOf(slot: number): readonly [number, number, number, number, number] {
    const [version, w0, w1, w2, w3] = this.#keys.subarray(slot * keyWords, (slot + 1) * keyWords);
    return [version!, swapped(w0!), swapped(w1!), swapped(w2!), swapped(w3!)];
  }

  /** Packets and bytes of all addresses since the reading before, which stays what it is. */
  peek(): { packets: number; bytes: number } {
    const now = this.#counter.readSeen();
    return { packets: now.packets - this.#seen.packets, bytes: now.bytes - this.#seen.bytes };
  }

  /** Reads all addresses. `isKept`: the next reading begins here. */
  read(isKept = true): KindReading {
    const isFirst = Number.isNaN(this.#readAtMs);
    if (this.#used > slotsMax) this.#forget();
    const atMs = this.#nowMs();
    const seen = this.#counter.readSeen();
    let place = 0;
    let count = 0;
    this.#counter.eachBatch((keys, values, entries) => {
      const keyView = new Int32Array(keys.buffer, keys.byteOffset, keys.length / 4);
      const words = new Uint32Array(values.buffer, values.byteOffset, values.length / 4);
      for (let entry = 0; entry < entries; entry += 1) {
        const slot = this.#slotAt(place, keys, keyView, entry);
        place += 1;
        if (count === this.#slots.length) this.#growReading();
        if (this.#readHost(slot, words, entry, count, isKept || isFirst)) {
          this.#slots[count] = slot;
          count += 1;
        }
      }
    });
    const before = this.#seen;
    const sinceMs = isFirst ? null : atMs - this.#readAtMs;
    if (isKept || isFirst) {
      this.#seen = seen;
      this.#readAtMs = atMs;
    }
    return {
      sinceMs,
      packets: seen.packets - before.packets,
      bytes: seen.bytes - before.bytes,
      foreignPackets: seen.foreignPackets - before.foreignPackets,
      foreignBytes: seen.foreignBytes - before.foreignBytes,
      leftOut: seen.leftOut - before.leftOut,
      count: isFirst ? 0 : count,
      slots: this.#slots,
      numbers: this.#numbers,
      generation: this.#generation,
    };
  }

  /** The next reading is the first one again. */
  restart(): void {
    this.#readAtMs = Number.NaN;
  }

  #forget(): void {
    this.#used = 0;
    this.#slotOf.clear();
    this.#places.fill(-1);
    this.#generation += 1;
    this.restart();
  }

  /** The slot of the entry. It is mostly the one that was at its place before. */
  #slotAt(place: number, keys: Buffer, keyView: Int32Array, entry: number): number {
    if (place === this.#places.length) {
      const places = new Int32Array(place * 2).fill(-1);
      places.set(this.#places);
      this.#places = places;
    }
    const from = entry * keyWords;
    const known = this.#places[place]!;
    if (known >= 0 && this.#isKeyOf(known, keyView, from)) return known;
    const key = keys.toString('latin1', entry * addressBytes, (entry + 1) * addressBytes);
    const slot = this.#slotOf.get(key) ?? this.#newSlot(key, keyView, from);
    this.#places[place] = slot;
    return slot;
  }

  #isKeyOf(slot: number, keyView: Int32Array, from: number): boolean {
    const at = slot * keyWords;
    const keys = this.#keys;
    return (
      keys[at + 4] === keyView[from + 4] &&
      keys[at + 3] === keyView[from + 3] &&
      keys[at + 2] === keyView[from + 2] &&
      keys[at + 1] === keyView[from + 1] &&
      keys[at] === keyView[from]
    );
  }

  #newSlot(key: string, keyView: Int32Array, from: number): number {
    const slot = this.#used;
    this.#used += 1;
    if (this.#used * keyWords > this.#keys.length) this.#growSlots();
    this.#keys.set(keyView.subarray(from, from + keyWords), slot * keyWords);
    this.#clear(slot);
    this.#slotOf.set(key, slot);
    return slot;
  }

  #clear(slot: number | undefined): void {
    if (slot === undefined) return;
    this.#packets.fill(0, slot * keptPackets, (slot + 1) * keptPackets);
    this.#bytes.fill(0, slot * keptBytes, (slot + 1) * keptBytes);
  }

  /** Writes what an address has more than before. False without a packet. */
  #readHost(slot: number, words: Uint32Array, entry: number, at: number, isKept: boolean): boolean {
    const { cpus } = this.#counter;
    const sum = this.#sum;
    const first = entry * cpus * hostWords + kindsAtWord;
    // Every packet has bytes: most addresses are done after those.
    if (!this.#sumBytesOf(slot, words, first)) return false;
    sum.fill(0);
    for (let cpu = 0; cpu < cpus; cpu += 1) {
      const host = first + cpu * hostWords;
      for (let direction = 0; direction < 2; direction += 1) {
        const own = host + direction * directionWords;
        const into = direction * kindWords;
        for (let kind = 0; kind < kindCount; kind += 1) sum[into + kind]! += words[own + kind]!;
      }
    }
    return this.#difference(slot, at, isKept);
  }

  /** Adds up the bytes of all processors. False where they are what they were. */
  #sumBytesOf(slot: number, words: Uint32Array, first: number): boolean {
    const { cpus } = this.#counter;
    const sumBytes = this.#sumBytes;
    const kept = slot * keptBytes;
    let isChanged = false;
    for (let direction = 0; direction < 2; direction += 1) {
      const own = first + direction * directionWords + kindWords;
      for (let volume = 0; volume < usedVolumes; volume += 1) {
        let sum = 0;
        for (let cpu = 0; cpu < cpus; cpu += 1) {
          const bytes = own + cpu * hostWords + volume * 2;
          sum += words[bytes]! + words[bytes + 1]! * 2 ** 32;
        }
        sumBytes[direction * volumes + volume] = sum;
        isChanged ||= sum !== this.#bytes[kept + direction * volumes + volume];
      }
    }
    return isChanged;
  }

  #difference(slot: number, at: number, isKept: boolean): boolean {
    const sum = this.#sum;
    const sumBytes = this.#sumBytes;
    const packets = this.#packets;
    const bytes = this.#bytes;
    const numbers = this.#numbers;
    const ownPackets = slot * keptPackets;
    const ownBytes = slot * keptBytes;
    let all = 0;
    for (let direction = 0; direction < 2; direction += 1) {
      const into = (at * 2 + direction) * readLength;
      for (let kind = 0; kind < kindCount; kind += 1) {
        const word = direction * kindWords + kind;
        const more = (sum[word]! - packets[ownPackets + word]!) >>> 0;
        numbers[into + kind] = more;
        all += more;
        if (isKept) packets[ownPackets + word] = sum[word]!;
      }
      const volume = direction * volumes;
      const other = sumBytes[volume]! - bytes[ownBytes + volume]!;
      const reflected = sumBytes[volume + 1]! - bytes[ownBytes + volume + 1]!;
      const datagrams = sumBytes[volume + 2]! - bytes[ownBytes + volume + 2]!;
      numbers[into + Read.bytes] = other + reflected + datagrams;
      numbers[into + Read.reflectedBytes] = reflected;
      numbers[into + Read.datagramBytes] = datagrams;
      if (isKept)
        for (let i = 0; i < usedVolumes; i += 1) bytes[ownBytes + volume + i] = sumBytes[volume + i]!;
    }
    return all > 0;
  }

  #growSlots(): void {
    const slots = (this.#keys.length / keyWords) * 2;
    const [keys, packets, bytes] = [this.#keys, this.#packets, this.#bytes];
    this.#keys = new Int32Array(slots * keyWords);
    this.#keys.set(keys);
    this.#packets = new Uint32Array(slots * keptPackets);
    this.#packets.set(packets);
    this.#bytes = new Float64Array(slots * keptBytes);
    this.#bytes.set(bytes);
  }

  #growReading(): void {
    const [slots, numbers] = [this.#slots, this.#numbers];
    this.#slots = new Int32Array(slots.length * 2);
    this.#slots.set(slots);
    this.#numbers = new Float64Array(numbers.length * 2);
    this.#numbers.set(numbers);
  }
}

/** A word in network byte order. */
function swapped(word: number): number {
  return ((word & 0xff) << 24) | ((word & 0xff00) << 8) | ((word >>> 8) & 0xff00) | (word >>> 24);
}
