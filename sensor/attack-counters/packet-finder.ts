/**
 * Finds out about waiting packets: which ends may be protected, and which slots they have.
 *
 * A block of packets at a time, and without a decision that depends on what it reads there, so that the waits for memory
 * overlap.
 */
import { Entry, entryWords, kindShift, Noted, type PacketBatch, wideWords } from './packet-batch.ts';
import { filterFactor, filterShift, type ProtectedScope } from './protected-scope.ts';
import { binLength, Head, headWords, type SlotTable, slotBits, slotMask } from './slot-table.ts';

export const blockMax = 128;

/** Instead of a slot: both ends may be protected, or its source is made up. */
export const bothEnds = -2;

const ipv4 = 4;

export interface PacketFinderParts {
  batch: PacketBatch;
  scope: ProtectedScope;
  hosts: SlotTable;
}

export class PacketFinder {
  /** Positions of the entries with a protected end, and that end's slot; -1 without one. */
  readonly found = new Int32Array(blockMax);
  readonly slots = new Int32Array(blockMax);
  /** Where they count, for reading ahead. */
  readonly bins = new Int32Array(blockMax);
  /** True when all slots were in use before: who had none then has none. */
  wasFull = false;
  /** All that was read ahead, so that reading it is not left out as useless. */
  read = 0;
  readonly #parts: PacketFinderParts;

  constructor(parts: PacketFinderParts) {
    this.#parts = parts;
  }

  /**
   * Finds the entries of one block. Returns how many have a protected end.
   *
   * It is one function, because calls that V8 does not inline would cost each packet.
   */
  find(first: number, end: number): number {
    const { batch, scope, hosts } = this.#parts;
    const { words } = batch;
    const { addressBits, blockBits, hasPrefixes } = scope;
    const { index, heads, multiplier, shift } = hosts;
    const mask = index.length - 1;
    const { found, slots, bins } = this;
    const { rowLength, openBin } = hosts;
    const { low } = hosts.counters;
    this.wasFull = hosts.isFull;
    let count = 0;
    let counted = 0;
    for (let at = first * entryWords; at < end * entryWords; at += entryWords) {
      const meta = words[at + Entry.meta]!;
      const source = words[at]!;
      const target = words[at + Entry.target]!;
      const isIpv4 = ((meta >> 8) & 0xff) === ipv4;
      let ends: number;
      if (isIpv4) {
        const a = Math.imul(source, filterFactor) >>> filterShift;
        const b = Math.imul(target, filterFactor) >>> filterShift;
        ends = ((addressBits[a >>> 5]! >>> (a & 31)) & 1) | (((addressBits[b >>> 5]! >>> (b & 31)) & 1) << 1);
        if (hasPrefixes) {
          const c = Math.imul(source >>> 8, filterFactor) >>> filterShift;
          const d = Math.imul(target >>> 8, filterFactor) >>> filterShift;
          ends |= ((blockBits[c >>> 5]! >>> (c & 31)) & 1) | (((blockBits[d >>> 5]! >>> (d & 31)) & 1) << 1);
        }
      } else ends = scope.mayHoldEnds(6, batch.wide, (at / entryWords) * wideWords);
      if (words[at + Entry.sender] !== 0) {
        words[at + Entry.meta] = meta | (ends << Noted.ends);
        found[count] = at;
        slots[count] = bothEnds;
        count += 1;
        continue;
      }
      if (ends === 0) continue;
      let slot = bothEnds;
      // A filter lets some other addresses pass. Without prefixes, the index knows all protected ones.
      if (ends === 3 && !hasPrefixes) ends = this.#endsWithSlots(at, isIpv4);
      if (ends === 1 || ends === 2) {
        if (isIpv4) {
          const word = words[at + (ends >> 1)]!;
          const product = Math.imul(word, multiplier);
          let place = product >>> shift;
          for (;;) {
            const one = index[place]!;
            slot = (one & slotMask) - 1;
            if (slot < 0) break;
            if (((one ^ (product << slotBits)) & ~slotMask) === 0) {
              const head = slot * headWords;
              if (heads[head + 3] === word && (heads[head + Head.version]! & 0xff) === ipv4) break;
            }
            place = (place + 1) & mask;
          }
        } else slot = hosts.findAt(batch.wide, (at / entryWords) * wideWords + (ends >> 1) * 4);
        if (slot < 0 && !hasPrefixes) continue;
      } else if (ends === 0) continue;
      words[at + Entry.meta] = meta | (ends << Noted.ends);
      if (slot >= 0) {
        const direction = ends & 1;
        bins[counted] = slot * rowLength + direction * binLength + openBin + ((meta >> kindShift) & 15) * 2;
        counted += 1;
      }
      found[count] = at;
      slots[count] = slot;
      count += 1;
    }
    // A loop without anything else: as many waits overlap as the processor allows.
    let read = 0;
    for (let one = 0; one < counted; one += 1) read |= low[bins[one]!]!;
    this.read = read;
    return count;
  }

  /** The protected ends of an entry, when every protected address has a slot. */
  #endsWithSlots(at: number, isIpv4: boolean): number {
    const { batch, hosts } = this.#parts;
    const { words, wide } = batch;
    const first = (at / entryWords) * wideWords;
    const source = isIpv4 ? hosts.find(4, 0, 0, 0, words[at]!) : hosts.findAt(wide, first);
    const target = isIpv4 ? hosts.find(4, 0, 0, 0, words[at + Entry.target]!) : hosts.findAt(wide, first + 4);
    return (source < 0 ? 0 : 1) | (target < 0 ? 0 : 2);
  }
}
