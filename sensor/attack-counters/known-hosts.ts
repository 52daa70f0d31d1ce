/**
 * Counts waiting packets the short way: those whose protected ends have counters that are in use in the open second. Everything
 * else is left to `AttackCounters`, one entry at a time.
 *
 * It does what the long way does, in one function over plain arrays: a flood costs its price for every packet.
 */

import type { DetailLimits } from './detail-limits.ts';
import { type FlowMemory, Mark, marksOfEnd } from './flow-memory.ts';
import { Entry, entryWords, kindShift, type PacketBatch } from './packet-batch.ts';
import { isRemembered, Kind, twoWayKindOf } from './packet-kind.ts';
import { type Sampler, sampledFrom, sampleEvery } from './sampler.ts';
import { Head, headWords, type SlotTable } from './slot-table.ts';

/** Limits of a group in one array: packets by kind and bytes, of each direction. */
export const Limit = { group: 32, direction: 16, bytes: 15 } as const;

const tcp = 6;
const ipv4 = 4;

export interface KnownHostsParts {
  batch: PacketBatch;
  hosts: SlotTable;
  flows: FlowMemory;
  /** By `Limit`. */
  limits: Int32Array;
  /** True when addresses without counters may be protected. */
  mayGrow: boolean;
  sampler: Sampler;
  /** Called instead of counting a packet whose address has no counters and gets none. */
  onOverflow(entry: number): void;
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
   * Counts entries from `first` on, up to one that has to go the long way; returns its number.
   *
   * Over 80 lines: calls that V8 does not inline would cost each packet.
   */
  count(first: number, second: number): number {
    const { batch, hosts, flows, limits, mayGrow, sampler } = this.#parts;
    const { words, count } = batch;
    const { index, heads, multiplier, shift, rowLength, directionLength, openBin } = hosts;
    const { low } = hosts.counters;
    const { marks, places, odd } = flows;
    const mask = index.length - 1;
    const openSecond = second + 1;
    for (let entry = first; entry < count; entry += 1) {
      const at = entry * entryWords;
      const flags = words[at + Entry.flags]!;
      const meta = words[at + Entry.meta]!;
      const side = flags & 1;
      // Where the protected end is, and what it is to the packet.
      const isLower = (flags & 2) !== 0;
      if (isLower && (flags & 4) !== 0) return entry;
      const end = isLower ? at : at + Entry.higher;
      const w3 = words[end + 3]!;
      let slot = -1;
      if (meta >> 8 === ipv4) {
        let place = Math.imul(w3, multiplier) >>> shift;
        for (;;) {
          slot = index[place]! - 1;
          if (slot < 0) break;
          if (heads[slot * headWords + 3] === w3 && (heads[slot * headWords + Head.version]! & 0xff) === ipv4)
            break;
          place = (place + 1) & mask;
        }
      } else slot = hosts.find(6, words[end]!, words[end + 1]!, words[end + 2]!, w3);
      if (slot < 0) {
        if (mayGrow && !hosts.isFull) return entry;
        if (mayGrow) this.#parts.onOverflow(entry);
        continue;
      }
      const head = slot * headWords;
      if (heads[head + Head.lastSecond] !== openSecond || words[at + Entry.unknown] !== 0) return entry;
      const direction = isLower === (side === 0) ? 1 : 0;
      const bin = slot * rowLength + direction * directionLength + openBin;
      const limit = (heads[head + Head.version]! >> 8) * Limit.group + direction * Limit.direction;
      const packets = words[at + Entry.packets]!;
      const bytes = words[at + Entry.bytes]!;
      let kind = flags >> kindShift;
      let opened = 0;
      if (isRemembered[kind] === 1) {
        const place = places[entry]!;
        const all = marks[place]!;
        const own = marksOfEnd(all, side);
        const other = marksOfEnd(all, 1 - side);
        const isTcp = (meta & 0xff) === tcp;
        if (kind === Kind.openingAnswer) marks[place] = all | (Mark.answered << (odd + side * 4));
        else {
          const isAnswered = isTcp && (other & Mark.anyAnswered) !== 0;
          let isNoted = true;
          if (isAnswered || (other & Mark.anySent) !== 0) kind = twoWayKindOf[kind]!;
          else isNoted = low[bin + kind * 2]! < limits[limit + kind]!;
          if (isNoted) {
            if (isAnswered && (own & Mark.anySent) === 0) opened = 1;
            marks[place] = all | (Mark.sent << (odd + side * 4));
          }
        }
      }
      const counter = bin + kind * 2;
      const inBin = (low[counter]! + packets) | 0;
      const bytesInBin = (low[counter + 1]! + bytes) | 0;
      // Below zero: no room in 31 bits.
      if (bytesInBin < 0 || opened > 0) hosts.add(slot, direction, kind, packets, bytes, 0, opened);
      else {
        low[counter] = inBin;
        low[counter + 1] = bytesInBin;
      }
      if (((heads[head + Head.details]! >> (direction * 8)) & 0xff) !== 0) {
        if (inBin > sampledFrom && !sampler.next()) continue;
        this.#parts.onSample(
          slot,
          direction,
          at,
          kind,
          inBin > sampledFrom ? packets * sampleEvery : packets,
        );
      } else if (
        inBin >= limits[limit + kind]! ||
        bytesInBin >= limits[limit + Limit.bytes]! ||
        bytesInBin < 0
      )
        this.#parts.onBusy(slot, direction, at, kind, packets, inBin);
    }
    return count;
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
