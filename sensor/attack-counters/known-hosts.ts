/**
 * Counts waiting packets the short way: those of one protected end that has a slot. Everything else is left to `AttackCounters`,
 * one entry at a time.
 *
 * It does what the long way does, in one function over plain arrays: a flood costs its price for every packet.
 */

import type { DetailLimits } from './detail-limits.ts';
import { Entry, kindShift, Noted, type PacketBatch } from './packet-batch.ts';
import { bothEnds, type PacketFinder } from './packet-finder.ts';
import { Asked, askedOf, Place } from './pair-record.ts';
import type { PairTable } from './pair-table.ts';
import { type Sampler, sampledFrom, sampleEvery } from './sampler.ts';
import { Bin, binLength, Head, headWords, type SlotTable } from './slot-table.ts';

/** Limits of a group in one array: packets by kind and bytes, of each direction. */
export const Limit = { group: 32, direction: 16, bytes: 15 } as const;

export interface KnownHostsParts {
  batch: PacketBatch;
  finder: PacketFinder;
  hosts: SlotTable;
  pairs: PairTable;
  /** By `Limit`. */
  limits: Int32Array;
  sampler: Sampler;
  /** Called instead of counting a packet whose address has no counters and gets none. */
  onOverflow(at: number): void;
  /** Called after a packet was counted that adds to the slot's detail. */
  onSample(slot: number, direction: number, at: number, kind: number, weight: number): void;
  /** Called after a packet of a slot that should have a detail was counted. */
  onBusy(slot: number, direction: number, at: number, kind: number, packets: number, inBin: number): void;
}

export class KnownHosts {
  readonly #parts: KnownHostsParts;

  constructor(parts: KnownHostsParts) {
    this.#parts = parts;
  }

  /**
   * Counts what was found, from `first` up to `end`, until one has to go the long way; returns its number.
   *
   * It is one function, because calls that V8 does not inline would cost each packet.
   */
  count(first: number, end: number, second: number): number {
    const { batch, finder, hosts, pairs, limits, sampler } = this.#parts;
    const { words } = batch;
    const { found, slots } = finder;
    const { heads, rowLength, openBin } = hosts;
    const isOverflow = finder.wasFull;
    const { low } = hosts.counters;
    const openSecond = second + 1;
    for (let one = first; one < end; one += 1) {
      const at = found[one]!;
      const slot = slots[one]!;
      if (slot < 0) {
        if (slot === bothEnds || !isOverflow) return one;
        this.#parts.onOverflow(at);
        continue;
      }
      const head = slot * headWords;
      if (words[at + Entry.unknown] !== 0) return one;
      if (heads[head + Head.lastSecond] !== openSecond) hosts.begin(slot);
      const meta = words[at + Entry.meta]!;
      // 1 when the source is protected.
      const direction = (meta >> Noted.ends) & 1;
      const bin = slot * rowLength + direction * binLength + openBin;
      const limit = (heads[head + Head.version]! >> 8) * Limit.group + direction * Limit.direction;
      const packets = words[at + Entry.packets]!;
      const bytes = words[at + Entry.bytes]!;
      const place = Place.host + slot;
      const isBusy = heads[head + Head.details] !== 0;
      let kind = (meta >> kindShift) & 15;
      const asked = askedOf[kind]!;
      if (asked === Asked.always || (asked === Asked.whenBusy && isBusy))
        kind =
          direction === 0
            ? pairs.note(at, Place.none, place, isBusy)
            : pairs.note(at, place, Place.none, isBusy);
      const opened = (meta >> Noted.opened) & 3;
      const counter = bin + kind * 2;
      const inBin = (low[counter]! + packets) | 0;
      const bytesInBin = (low[counter + 1]! + bytes) | 0;
      // Below zero: no room in 31 bits.
      if (bytesInBin < 0 || opened !== 0) hosts.add(slot, direction, kind, packets, bytes, 0, opened);
      else {
        low[counter] = inBin;
        low[counter + 1] = bytesInBin;
      }
      if (((heads[head + Head.details]! >> (direction * 8)) & 0xff) !== 0) {
        // Those that complete a handshake are sampled as openings are, however many other segments there are.
        const isSampled = ((opened & 1) === 0 ? inBin : low[bin + Bin.opened]!) > sampledFrom;
        if (isSampled && !sampler.next()) continue;
        this.#parts.onSample(slot, direction, at, kind, isSampled ? packets * sampleEvery : packets);
      } else if (
        inBin >= limits[limit + kind]! ||
        bytesInBin >= limits[limit + Limit.bytes]! ||
        bytesInBin < 0
      )
        this.#parts.onBusy(slot, direction, at, kind, packets, inBin);
    }
    return end;
  }
}

/** Limits as whole numbers in one array. */
export function flatLimits(limits: readonly DetailLimits[]): Int32Array {
  const flat = new Int32Array(limits.length * Limit.group);
  for (const [group, { packets, bytes }] of limits.entries()) {
    for (const [direction, ofKinds] of packets.entries()) {
      const at = group * Limit.group + direction * Limit.direction;
      for (const [kind, limit] of ofKinds.entries()) flat[at + kind] = wholeLimit(limit);
      flat[at + Limit.bytes] = wholeLimit(bytes[direction]!);
    }
  }
  return flat;
}

/** Counters reach a limit when they reach the next whole number. */
function wholeLimit(limit: number): number {
  return Math.min(0x7fffffff, Math.ceil(limit));
}
