/** The counters of a minute: addresses and rows of usage, filled when flows are flushed, and spoofed packets as they come. */

import { formatWords } from '../address-words.ts';
import type { Packet } from '../decode/packet.ts';
import { KeyedTable, mixHash } from '../keyed-table.ts';
import type { NameTable } from '../names/name-table.ts';
import {
  deviceKey,
  deviceKeyText,
  hostKeyWords,
  hostWords,
  macOfKey,
  Owner,
  routerMacs,
} from './address-owners.ts';
import type { HostCounters, SpoofedRow } from './minute-report.ts';
import { UsageTable } from './usage-table.ts';

export class Ledger {
  readonly hosts: HostTable;
  readonly usage: UsageTable;
  readonly spoofed: SpoofedTable;

  constructor(
    names: NameTable,
    seed: number,
    remoteHostsMax: number,
    usageRowsMax: number,
    noiseRowsMax: number,
  ) {
    this.hosts = new HostTable(seed, remoteHostsMax, noiseRowsMax);
    this.usage = new UsageTable(names, seed, usageRowsMax);
    this.spoofed = new SpoofedTable(seed);
  }

  /** Starts a new minute. */
  clear(): void {
    this.hosts.clear();
    this.usage.clear();
    this.spoofed.clear();
  }
}

// Exact counters per address. Local addresses always find room (up to a million). Remote addresses are bounded; without
// room the call returns `false`, and the caller counts it.

/** Bytes to and from an address, and packets: of everything, then of own scans. */
const hostSums = 6;
const ownScanAt = 3;

/** Enough for every local address of a site. */
const localHostsMax = 1 << 20;
/**
 * Bits per remote address, and in all, of a filter that rules out most addresses without a record. It fits into the L1
 * cache.
 */
const seenBitsOfHost = 8;
const seenBitsMax = 1 << 16;

class HostTable {
  readonly #local: KeyedTable;
  readonly #remote: KeyedTable;
  readonly #noiseRowsMax: number;
  readonly #seed: number;
  readonly #seen: Int32Array;
  readonly #seenMask: number;

  /** `noiseRowsMax`: from so many remote addresses on, noise gets no room for new ones. */
  constructor(seed: number, remoteHostsMax: number, noiseRowsMax: number) {
    this.#noiseRowsMax = noiseRowsMax;
    this.#seed = seed;
    const wanted = Math.min(seenBitsMax, Math.max(32, remoteHostsMax * seenBitsOfHost));
    const seenBits = 2 ** Math.ceil(Math.log2(wanted));
    this.#seen = new Int32Array(seenBits >> 5);
    this.#seenMask = seenBits - 1;
    const host = { keyWords: hostKeyWords, wordCount: hostWords, sumCount: hostSums };
    this.#local = new KeyedTable({ ...host, recordsMax: localHostsMax }, seed);
    this.#remote = new KeyedTable({ ...host, recordsMax: remoteHostsMax }, seed);
  }

  /**
   * Adds to an address; its words are in `source` from `at` on. Returns false when there was no room. Once there are
   * many remote addresses, noise gets no room for new ones.
   */
  add(
    isLocal: boolean,
    version: number,
    source: Int32Array,
    at: number,
    rxBytes: number,
    txBytes: number,
    packets: number,
    isNoise: boolean,
  ): boolean {
    const mayAdd = isLocal || !isNoise || this.#remote.count < this.#noiseRowsMax;
    const record = this.#record(isLocal, version, source, at, mayAdd);
    if (record < 0) return false;
    addTo(this.#table(isLocal).sums, record * hostSums, rxBytes, txBytes, packets);
    return true;
  }

  /** Names a part of what a local address has by now as own scans. */
  nameOwnScan(
    version: number,
    source: Int32Array,
    at: number,
    rxBytes: number,
    txBytes: number,
    packets: number,
  ): void {
    const record = this.#record(true, version, source, at, false);
    if (record >= 0) addTo(this.#local.sums, record * hostSums + ownScanAt, rxBytes, txBytes, packets);
  }

  /** Records the source MAC of an address; `isConflict` when one flow already saw several. */
  noteOwner(
    isLocal: boolean,
    version: number,
    source: Int32Array,
    at: number,
    macHigh: number,
    macLow: number,
    isConflict: boolean,
  ): void {
    const record = this.#record(isLocal, version, source, at, true);
    if (record < 0) return;
    const { words } = this.#table(isLocal);
    const base = record * hostWords;
    if (words[base + 2] === Owner.unknown && !isConflict) {
      words[base] = macHigh;
      words[base + 1] = macLow;
      words[base + 2] = Owner.one;
    } else if (isConflict || words[base] !== macHigh || words[base + 1] !== macLow)
      words[base + 2] = Owner.conflict;
  }

  /** Every local address with its accounted counters of this minute. */
  eachLocal(
    visit: (keys: Int32Array, at: number, rxBytes: number, txBytes: number, packets: number) => void,
  ): void {
    const { keys, sums, count } = this.#local;
    for (let record = 0; record < count; record += 1) {
      const at = record * hostSums;
      visit(keys, record * hostKeyWords, sums[at]!, sums[at + 1]!, sums[at + 2]!);
    }
  }

  /** Every address, local ones first. */
  rows(segment: string, withOwners: boolean): { rows: HostCounters[]; routerMacs: string[] } {
    const routers = withOwners ? routerMacs(this.#remote) : new Set<string>();
    const rows: HostCounters[] = [];
    for (const isLocal of [true, false]) {
      const table = this.#table(isLocal);
      for (let record = 0; record < table.count; record += 1) {
        const at = record * hostSums;
        rows.push({
          address: addressText(table.keys, record * hostKeyWords),
          isLocal,
          ...countersAt(table.sums, at),
          ...(table.sums[at + ownScanAt + 2]! > 0 && { ownScan: countersAt(table.sums, at + ownScanAt) }),
          deviceKey: isLocal && withOwners ? deviceKey(table, record, segment, routers) : '',
          isContested: withOwners && table.words[record * hostWords + 2] === Owner.conflict,
        });
      }
    }
    return { rows, routerMacs: [...routers].map(macOfKey) };
  }

  /** True for a remote address that certainly has no record, while noise gets no new one. */
  isUnheard(source: Int32Array, at: number): boolean {
    if (this.#remote.count < this.#noiseRowsMax) return false;
    const bit = this.#seenBit(source, at);
    return (this.#seen[bit >> 5]! & (1 << (bit & 31))) === 0;
  }

  /** Starts a new minute. */
  clear(): void {
    this.#local.clear();
    this.#remote.clear();
    this.#seen.fill(0);
  }

  #seenBit(source: Int32Array, at: number): number {
    const words = source[at]! ^ Math.imul(source[at + 1]!, 3) ^ Math.imul(source[at + 2]!, 5);
    return mixHash(this.#seed ^ words, source[at + 3]!) & this.#seenMask;
  }

  #table(isLocal: boolean): KeyedTable {
    return isLocal ? this.#local : this.#remote;
  }

  #record(isLocal: boolean, version: number, source: Int32Array, at: number, mayAdd: boolean): number {
    const table = this.#table(isLocal);
    const key = table.key;
    key[0] = source[at]!;
    key[1] = source[at + 1]!;
    key[2] = source[at + 2]!;
    key[3] = source[at + 3]!;
    key[4] = version;
    if (!mayAdd) return table.find();
    const record = table.locate();
    if (!isLocal && record >= 0) {
      const bit = this.#seenBit(source, at);
      this.#seen[bit >> 5]! |= 1 << (bit & 31);
    }
    return record;
  }
}

function addTo(sums: Float64Array, at: number, rxBytes: number, txBytes: number, packets: number): void {
  sums[at]! += rxBytes;
  sums[at + 1]! += txBytes;
  sums[at + 2]! += packets;
}

const countersAt = (sums: Float64Array, at: number) => ({
  rxBytes: sums[at]!,
  txBytes: sums[at + 1]!,
  packets: sums[at + 2]!,
});

function addressText(keys: Int32Array, at: number): string {
  return formatWords(keys[at + 4]!, keys[at]!, keys[at + 1]!, keys[at + 2]!, keys[at + 3]!);
}

// Counters of spoofed packets of a minute: what each MAC sent from which address of another.
//
// Bounded, because a sender may use any MAC: what finds no row counts in one row without MAC and address.

/** With the one for the rest. */
const rowsMax = 64;
const keyWords = 7;

class SpoofedTable {
  readonly #rows: KeyedTable;
  #restBytes = 0;
  #restPackets = 0;

  constructor(seed: number) {
    this.#rows = new KeyedTable({ keyWords, wordCount: 0, sumCount: 2, recordsMax: rowsMax - 1 }, seed);
  }

  add(p: Packet, packets: number): void {
    const { key, sums } = this.#rows;
    key[0] = p.source0;
    key[1] = p.source1;
    key[2] = p.source2;
    key[3] = p.source3;
    key[4] = p.version;
    key[5] = p.view.getUint16(p.macAt) | (p.vlan << 16);
    key[6] = p.view.getInt32(p.macAt + 2);
    const record = this.#rows.locate();
    if (record < 0) {
      this.#restBytes += p.ipLength;
      this.#restPackets += packets;
      return;
    }
    sums[record * 2]! += p.ipLength;
    sums[record * 2 + 1]! += packets;
  }

  rows(segment: string): SpoofedRow[] {
    const { keys, sums, count } = this.#rows;
    const rows = Array.from({ length: count }, (_, record) => {
      const at = record * keyWords;
      return {
        deviceKey: deviceKeyText(segment, keys[at + 5]!, keys[at + 6]!),
        address: formatWords(keys[at + 4]!, keys[at]!, keys[at + 1]!, keys[at + 2]!, keys[at + 3]!),
        bytes: sums[record * 2]!,
        packets: sums[record * 2 + 1]!,
      };
    });
    if (this.#restPackets === 0) return rows;
    return [...rows, { deviceKey: '', address: '', bytes: this.#restBytes, packets: this.#restPackets }];
  }

  /** Addresses that have rows. */
  addresses(): string[] {
    return this.#rows.count === 0 ? [] : [...new Set(this.rows('').map(({ address }) => address))];
  }

  clear(): void {
    this.#rows.clear();
    this.#restBytes = this.#restPackets = 0;
  }
}
