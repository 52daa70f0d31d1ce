/**
 * The slots of an interface's addresses: which address has which, and its counters of all processors, in memory that the kernel writes.
 *
 * Reading costs no call. So thousands of addresses can be read every second beside an engine that hardly notices.
 */
import koffi from 'koffi';
import {
  addressBytes,
  hostBytes,
  hostLongs,
  hostMinuteLongs,
  hostWords,
  type MapName,
  minuteAtLong,
  minutes,
  nameBytes,
  recentPlaces,
} from './layout.ts';
import { libbpf, must } from './libbpf.ts';

const library = koffi.load(null);
const system = {
  mmap: library.func('void *mmap(void *at, size_t length, int prot, int flags, int fd, int64_t offset)'),
  munmap: library.func('int munmap(void *at, size_t length)'),
};
const readAndWrite = 3;
const shared = 1;
const mapFailed = 2n ** 64n - 1n;
/** A packet is counted in less time: after that no program has the slot of an address that was removed. */
const inUseMs = 10;
const nameWords = nameBytes / 4;

/** Counters of one address in one minute. */
export interface HostCounts {
  rxBytes: number;
  txBytes: number;
  packets: number;
}

/** A map in the memory of this process. */
export class SharedMap {
  bytes: Buffer;
  readonly #at: unknown;

  constructor(fd: number, length: number) {
    this.#at = system.mmap(null, length, readAndWrite, shared, fd, 0);
    must(koffi.address(this.#at) === mapFailed ? -koffi.errno() : 0, 'read the counters in memory');
    this.bytes = Buffer.from(koffi.view(this.#at, length));
  }

  close(): void {
    system.munmap(this.#at, this.bytes.length);
    // What is gone must not be read.
    this.bytes = Buffer.alloc(0);
  }
}

export class Slots {
  readonly max: number;
  readonly cpus = libbpf().cpus() as number;
  readonly #bpf = libbpf();
  readonly #maps: Record<MapName, number>;
  readonly #names: SharedMap;
  readonly #counters: SharedMap;
  readonly #recent: SharedMap;
  /** Words of the names, and the counters in words of four and of eight bytes. */
  #nameWords: Int32Array;
  words: Uint32Array;
  longs: BigUint64Array;
  /** Slots whose address was removed, and since when; they have their name until they are vacant. */
  readonly #removed = new Map<number, number>();
  /** Called with each slot that becomes vacant: its counters begin at zero with the next address. */
  onVacant: (slot: number) => void = () => {};

  constructor(maps: Record<MapName, number>, max: number) {
    this.#maps = maps;
    this.max = max;
    this.#names = new SharedMap(maps.names, max * nameBytes);
    this.#counters = new SharedMap(maps.counters, max * this.cpus * hostBytes);
    this.#recent = new SharedMap(maps.recent, recentPlaces * 8);
    const { buffer } = this.#counters.bytes;
    this.#nameWords = new Int32Array(this.#names.bytes.buffer);
    this.words = new Uint32Array(buffer);
    this.longs = new BigUint64Array(buffer);
    this.#removeForgotten();
  }

  /** Makes all slots vacant; before the program is attached first. */
  static prepare({ vacant }: Record<MapName, number>, max: number): void {
    const bpf = libbpf();
    const slot = Buffer.alloc(4);
    while (bpf.take(vacant, null, slot) === 0);
    for (let i = max - 1; i >= 0; i -= 1) {
      slot.writeUInt32LE(i);
      must(bpf.update(vacant, null, slot, 0n), 'make room for addresses');
    }
  }

  isTaken(slot: number): boolean {
    if (this.#nameWords[slot * nameWords] === 0) return false;
    return this.#removed.size === 0 || !this.#removed.has(slot);
  }

  /** Slots with an address. */
  taken(): number[] {
    const found: number[] = [];
    for (let slot = 0; slot < this.max; slot += 1) if (this.isTaken(slot)) found.push(slot);
    return found;
  }

  /** The address of a slot as a key. */
  keyOf(slot: number): Buffer {
    return this.#names.bytes.subarray(slot * nameBytes, slot * nameBytes + addressBytes);
  }

  /** Version and the four words of the address, in the order of the processor. */
  addressOf(slot: number): readonly [number, number, number, number, number] {
    const [version, w0, w1, w2, w3] = this.#nameWords.subarray(slot * nameWords);
    return [version!, swapped(w0!), swapped(w1!), swapped(w2!), swapped(w3!)];
  }

  /** Takes a slot for this address, which may have none. */
  add(key: Buffer): void {
    const slot = Buffer.alloc(4);
    if (this.#bpf.take(this.#maps.vacant, null, slot) < 0) return;
    const name = this.keyOf(slot.readUInt32LE());
    key.copy(name);
    if (this.#bpf.update(this.#maps.hosts, key, slot, 1n) === 0) return;
    // A packet came first.
    name.fill(0);
    this.#bpf.update(this.#maps.vacant, null, slot, 0n);
  }

  remove(slot: number): void {
    this.#bpf.remove(this.#maps.hosts, this.keyOf(slot));
    this.#forget(slot);
    this.#removed.set(slot, performance.now());
  }

  /** Slots whose address was removed become vacant. Call it now and then. */
  vacate(): void {
    const until = performance.now() - inUseMs;
    for (const [slot, since] of this.#removed) {
      if (since > until) return;
      // A packet may have found it before it was removed.
      this.#forget(slot);
      for (let cpu = 0; cpu < this.cpus; cpu += 1) {
        const at = (cpu * this.max + slot) * hostWords;
        this.words.fill(0, at, at + hostWords);
      }
      this.keyOf(slot).fill(0);
      this.onVacant(slot);
      this.#removed.delete(slot);
      const number = Buffer.alloc(4);
      number.writeUInt32LE(slot);
      this.#bpf.update(this.#maps.vacant, null, number, 0n);
    }
  }

  #forget(slot: number): void {
    const key = this.keyOf(slot);
    const place = ((key[18]! << 8) | key[19]!) % recentPlaces;
    const { bytes } = this.#recent;
    if (bytes.readUInt32LE(place * 8) === slot + 1) bytes.fill(0, place * 8, place * 8 + 8);
  }

  /** The counters of all processors for this minute (seconds since 1970); null where it has none. */
  sumMinute(slot: number, minute: number): HostCounts | null {
    const number = minute / 60;
    const { longs, words, cpus, max } = this;
    let isThere = false;
    const sum = { rxBytes: 0, txBytes: 0, packets: 0 };
    for (let cpu = 0; cpu < cpus; cpu += 1) {
      const at = (cpu * max + slot) * hostLongs + minuteAtLong + (number % minutes) * hostMinuteLongs;
      if (words[at * 2] !== number) continue;
      isThere = true;
      sum.packets += words[at * 2 + 1]!;
      sum.rxBytes += Number(longs[at + 1]);
      sum.txBytes += Number(longs[at + 2]);
    }
    return isThere ? sum : null;
  }

  close(): void {
    this.words = new Uint32Array();
    this.longs = new BigUint64Array();
    this.#nameWords = new Int32Array();
    this.#names.close();
    this.#counters.close();
    this.#recent.close();
  }

  /** A sensor that was killed may have left names whose address was removed. */
  #removeForgotten(): void {
    const slot = Buffer.alloc(4);
    const isForgotten = (one: number) =>
      this.#bpf.lookup(this.#maps.hosts, this.keyOf(one), slot) < 0 || slot.readUInt32LE() !== one;
    // Asked twice: an address that a packet adds has its name first.
    for (const one of this.taken().filter(isForgotten).filter(isForgotten))
      this.#removed.set(one, performance.now());
  }
}

/** A word in network byte order. */
function swapped(word: number): number {
  return ((word & 0xff) << 24) | ((word & 0xff00) << 8) | ((word >>> 8) & 0xff00) | (word >>> 24);
}
