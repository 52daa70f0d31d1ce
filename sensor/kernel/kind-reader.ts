/**
 * Reads what an interface's addresses received and sent by kind of packet, for the detector: each reading is the difference to the one
 * before, because the kernel's counters only grow.
 *
 * Thousands of addresses are read every second. So a reading is plain numbers in arrays that are used again.
 */
import { type KindReading, kindCount, Read, readLength } from '#sensor/attack-counters/index.ts';
import type { KernelCounter } from './counter.ts';
import { hostLongs, hostWords, kindWords, packetsAtWord, volumes } from './layout.ts';
import type { Slots } from './slots.ts';

/** Of the volumes that there is room for. */
const usedVolumes = 3;
/** What is kept of a slot: packets by direction and kind, and bytes by direction and volume. */
const keptPackets = 2 * kindWords;
const keptBytes = 2 * volumes;
/** The halves of a number may be of two moments. Of two readings a second apart that is seen by so great a difference. */
const bytesMax = 2 ** 31;

export class KindReader {
  readonly #counter: KernelCounter;
  readonly #slots: Slots;
  readonly #nowMs: () => number;
  /** Of each slot, as of the reading before. */
  readonly #packets: Uint32Array;
  readonly #bytes: Float64Array;
  #vacated: number[] = [];
  #seen = { packets: 0, bytes: 0, foreignPackets: 0, foreignBytes: 0, leftOut: 0 };
  #readAtMs = Number.NaN;
  /** The reading. */
  #read = new Int32Array(1024);
  #numbers = new Float64Array(1024 * 2 * readLength);
  readonly #sum = new Uint32Array(keptPackets);
  readonly #sumBytes = new Float64Array(keptBytes);

  constructor(counter: KernelCounter, nowMs = () => performance.now()) {
    this.#counter = counter;
    this.#slots = counter.slots;
    this.#nowMs = nowMs;
    this.#packets = new Uint32Array(this.#slots.max * keptPackets);
    this.#bytes = new Float64Array(this.#slots.max * keptBytes);
    this.#slots.onVacant = (slot) => {
      this.#packets.fill(0, slot * keptPackets, (slot + 1) * keptPackets);
      this.#bytes.fill(0, slot * keptBytes, (slot + 1) * keptBytes);
      this.#vacated.push(slot);
    };
  }

  /** IP version, and the four words of the address of a slot. */
  addressOf(slot: number): readonly [number, number, number, number, number] {
    return this.#slots.addressOf(slot);
  }

  /** Packets and bytes of all addresses since the reading before, which stays what it is. */
  peek(): { packets: number; bytes: number } {
    const now = this.#counter.readSeen();
    return { packets: now.packets - this.#seen.packets, bytes: now.bytes - this.#seen.bytes };
  }

  /** Reads all addresses. `isKept`: the next reading begins here. */
  read(isKept = true): KindReading {
    const isFirst = Number.isNaN(this.#readAtMs);
    const isBase = isKept || isFirst;
    const atMs = this.#nowMs();
    const seen = this.#counter.readSeen();
    const slots = this.#slots;
    let count = 0;
    for (let slot = 0; slot < slots.max; slot += 1) {
      if (!slots.isTaken(slot) || !this.#sumBytesOf(slot)) continue;
      if (count === this.#read.length) this.#growReading();
      this.#sumPacketsOf(slot);
      if (!this.#difference(slot, count, isBase)) continue;
      this.#read[count] = slot;
      count += 1;
    }
    const before = this.#seen;
    const sinceMs = isFirst ? null : atMs - this.#readAtMs;
    if (isBase) {
      this.#seen = seen;
      this.#readAtMs = atMs;
    }
    const vacated = this.#vacated;
    this.#vacated = [];
    return {
      sinceMs,
      packets: seen.packets - before.packets,
      bytes: seen.bytes - before.bytes,
      foreignPackets: seen.foreignPackets - before.foreignPackets,
      foreignBytes: seen.foreignBytes - before.foreignBytes,
      leftOut: seen.leftOut - before.leftOut,
      count: isFirst ? 0 : count,
      slots: this.#read,
      numbers: this.#numbers,
      vacated,
    };
  }

  /** The next reading is the first one again. */
  restart(): void {
    this.#readAtMs = Number.NaN;
  }

  /** Adds up the bytes of all processors. False where they are what they were: every packet has some. */
  #sumBytesOf(slot: number): boolean {
    const { words, cpus, max } = this.#slots;
    const sums = this.#sumBytes;
    const kept = slot * keptBytes;
    let isChanged = false;
    for (let direction = 0; direction < 2; direction += 1)
      for (let volume = 0; volume < usedVolumes; volume += 1) {
        const own = direction * volumes + volume;
        let sum = 0;
        for (let cpu = 0; cpu < cpus; cpu += 1) {
          const at = (cpu * max + slot) * hostWords + own * 2;
          sum += words[at]! + words[at + 1]! * 2 ** 32;
        }
        const more = sum - this.#bytes[kept + own]!;
        if (more < 0 || more >= bytesMax) sum = this.#exactBytesOf(slot, own);
        sums[own] = sum;
        isChanged ||= more !== 0;
      }
    return isChanged;
  }

  #exactBytesOf(slot: number, own: number): number {
    const { longs, cpus, max } = this.#slots;
    let sum = 0;
    for (let cpu = 0; cpu < cpus; cpu += 1) sum += Number(longs[(cpu * max + slot) * hostLongs + own]);
    return sum;
  }

  #sumPacketsOf(slot: number): void {
    const { words, cpus, max } = this.#slots;
    const sum = this.#sum.fill(0);
    for (let cpu = 0; cpu < cpus; cpu += 1) {
      const at = (cpu * max + slot) * hostWords + packetsAtWord;
      for (let i = 0; i < keptPackets; i += 1) sum[i]! += words[at + i]!;
    }
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

  #growReading(): void {
    const [read, numbers] = [this.#read, this.#numbers];
    this.#read = new Int32Array(read.length * 2);
    this.#read.set(read);
    this.#numbers = new Float64Array(numbers.length * 2);
    this.#numbers.set(numbers);
  }
}
