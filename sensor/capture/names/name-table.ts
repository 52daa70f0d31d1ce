/**
 * Host names as small integers: bytes from the wire are looked up in an arena, and only a new name becomes a string.
 *
 * `sweep` removes names that no flow, row or DNS answer refers to, at the end of a minute or when the table fills up,
 * so that memory stays bounded. Ids are valid until the next sweep. Looked-up names can not fill the whole table,
 * because a resolver looks up more names than clients speak.
 */

import { Field, Flag, flowWords } from '../flows/flow-record.ts';
import type { FlowTable } from '../flows/flow-table.ts';
import { mixHash } from '../keyed-table.ts';
import type { Ledger } from '../reports/ledger.ts';
import type { FlowClassifier } from './flow-classifier.ts';

const nameBytesMax = 253;
const labelBytesMax = 63;
/** Part of the table that names from DNS answers may fill; the rest is for names that clients speak. */
const lookedUpPart = 0.75;
/** Number of new names, as a part of the table, that justifies another sweep. */
const sweepPart = 0.125;

/** Buffer in which `normalizeHost` and the parsers put a name before it is interned. */
export const nameScratch = new Uint8Array(256);

export class NameTable {
  readonly #seed: number;
  readonly #namesMax: number;
  readonly #registrableDomain: (host: string) => string | null;
  readonly #arena: Uint8Array;
  #arenaUsed = 0;
  /** A sweep is due before the end of the minute: many names are new, or one found no room. */
  isPressed = false;
  /** The first of the two reasons. */
  hasGrown = false;
  /** Part of the table in use at which it applies. */
  #sweepAt = lookedUpPart - sweepPart;
  readonly #starts: Int32Array;
  readonly #index: Int32Array;
  #hosts: string[] = [];
  /** Id of the registrable domain, -1 for none. */
  #domains: number[] = [];

  constructor(namesMax: number, seed: number, registrableDomain: (host: string) => string | null) {
    this.#namesMax = namesMax;
    this.#seed = seed;
    this.#registrableDomain = registrableDomain;
    this.#arena = new Uint8Array(namesMax * 36);
    this.#starts = new Int32Array(namesMax + 1);
    this.#index = new Int32Array(1 << Math.ceil(Math.log2(namesMax * 2)));
  }

  /** Id of the name in the first `length` bytes of the scratch, or -1 when there is no room. */
  intern(length: number, isLookedUp = false): number {
    const at = this.#probe(nameScratch, 0, length);
    const found = this.#index[at]! - 1;
    if (found >= 0) return found;
    const id = this.#hosts.length;
    const part = isLookedUp ? lookedUpPart : 1;
    if (id >= this.#namesMax * part || this.#arenaUsed + length > this.#arena.length * part) {
      this.isPressed = true;
      return -1;
    }
    for (let i = 0; i < length; i += 1) this.#arena[this.#arenaUsed + i] = nameScratch[i]!;
    this.#arenaUsed += length;
    this.#starts[id + 1] = this.#arenaUsed;
    this.#index[at] = id + 1;
    let host = '';
    for (let i = 0; i < length; i += 1) host += String.fromCharCode(nameScratch[i]!);
    this.#hosts.push(host);
    this.#domains.push(-1);
    this.#domains[id] = this.#internDomain(host, id);
    if (this.#fill > this.#sweepAt) this.isPressed = this.hasGrown = true;
    return id;
  }

  /** The host as it was on the wire, in lower case. */
  host(id: number): string {
    return this.#hosts[id]!;
  }

  /** Id of its registrable domain; -1 for an address, a single label and other hosts without one. */
  domain(id: number): number {
    return this.#domains[id]!;
  }

  /** True when half of the table is used. */
  get isCrowded(): boolean {
    return this.#fill > 0.5;
  }

  get #fill(): number {
    return Math.max(this.#hosts.length / this.#namesMax, this.#arenaUsed / this.#arena.length);
  }

  /**
   * Keeps the marked names and their domains and gives each a new id. Returns a map from old ids to new ones, -1 for
   * removed names.
   */
  sweep(marks: Uint8Array): Int32Array {
    const hosts = this.#hosts;
    const renumbered = new Int32Array(hosts.length).fill(-1);
    const domains = this.#domains;
    for (let id = 0; id < hosts.length; id += 1)
      if (marks[id] === 1 && domains[id]! >= 0) marks[domains[id]!] = 1;
    this.#hosts = [];
    this.#domains = [];
    this.#index.fill(0);
    const source = this.#arena.slice(0, this.#arenaUsed);
    const starts = this.#starts.slice(0, hosts.length + 1);
    this.#arenaUsed = 0;
    for (let id = 0; id < hosts.length; id += 1) {
      if (marks[id] !== 1) continue;
      const length = starts[id + 1]! - starts[id]!;
      this.#index[this.#probe(source, starts[id]!, length)] = this.#hosts.length + 1;
      this.#arena.set(source.subarray(starts[id], starts[id + 1]), this.#arenaUsed);
      this.#arenaUsed += length;
      renumbered[id] = this.#hosts.length;
      this.#hosts.push(hosts[id]!);
      this.#domains.push(domains[id]!);
      this.#starts[this.#hosts.length] = this.#arenaUsed;
    }
    this.#domains = this.#domains.map((domain) => (domain < 0 ? -1 : renumbered[domain]!));
    this.isPressed = this.hasGrown = false;
    this.#sweepAt = Math.max(lookedUpPart - sweepPart, this.#fill + sweepPart);
    return renumbered;
  }

  /** Number of names; the length of the marks for a sweep. */
  get count(): number {
    return this.#hosts.length;
  }

  #internDomain(host: string, id: number): number {
    const domain = this.#registrableDomain(host);
    if (domain === null || domain === host) return domain === null ? -1 : id;
    for (let i = 0; i < domain.length; i += 1) nameScratch[i] = domain.charCodeAt(i);
    return this.intern(domain.length);
  }

  #probe(bytes: Uint8Array, from: number, length: number): number {
    let hash = this.#seed ^ length;
    const wholeWords = from + (length & ~3);
    let next = from;
    for (; next < wholeWords; next += 4)
      hash = mixHash(
        hash,
        bytes[next]! | (bytes[next + 1]! << 8) | (bytes[next + 2]! << 16) | (bytes[next + 3]! << 24),
      );
    let rest = 0;
    for (; next < from + length; next += 1) rest = (rest << 8) | bytes[next]!;
    hash = mixHash(hash, rest);
    const mask = this.#index.length - 1;
    let at = hash - 1;
    for (;;) {
      // Step before the comparison, not after it: this path is taken from the first name on and compiled once.
      at = (at + 1) & mask;
      const id = this.#index[at]! - 1;
      if (id < 0) return at;
      const start = this.#starts[id]!;
      if (this.#starts[id + 1]! - start === length) {
        let i = 0;
        while (i < length && this.#arena[start + i] === bytes[from + i]) i += 1;
        if (i === length) return at;
      }
    }
  }
}

/**
 * Writes a host from the wire into the scratch: lower case, no port, no final dot, no brackets. Returns its length, or
 * 0 when it is not a host: empty, too long, with an empty label, or with an invalid byte.
 */
export function normalizeHost(bytes: Uint8Array, from: number, end: number): number {
  let start = from;
  let stop = end;
  if (bytes[start] === 0x5b) {
    start += 1;
    const close = indexOfByte(bytes, 0x5d, start, stop);
    if (close < 0) return 0;
    stop = close;
  } else {
    const colon = indexOfByte(bytes, 0x3a, start, stop);
    // A second colon means an IPv6 address without a port.
    if (colon >= 0 && indexOfByte(bytes, 0x3a, colon + 1, stop) < 0) stop = colon;
  }
  if (stop > start && bytes[stop - 1] === 0x2e) stop -= 1;
  const length = stop - start;
  if (length <= 0 || length > nameBytesMax) return 0;
  let labelLength = 0;
  let hasColon = false;
  let isHex = true;
  for (let i = 0; i < length; i += 1) {
    const small = hostBytes[bytes[start + i]!]!;
    if (small === 0) return 0;
    if (small === 0x2e) {
      if (labelLength === 0) return 0;
      labelLength = 0;
    } else labelLength += 1;
    if (labelLength > labelBytesMax) return 0;
    if (small === 0x3a) hasColon = true;
    else if (small > 0x66 || small === 0x2d || small === 0x5f) isHex = false;
    nameScratch[i] = small;
  }
  // A colon remains only in an IPv6 address.
  return hasColon && !isHex ? 0 : length;
}

/** The lower-case form of each byte that is valid in a host, and 0 for all others. */
const hostBytes = new Uint8Array(256).map((_, byte) => {
  const small = byte >= 0x41 && byte <= 0x5a ? byte + 0x20 : byte;
  return isHostByte(small) ? small : 0;
});

/** Small letters, digits, `-`, `.`, `_` and `:` (of IPv6 addresses). */
function isHostByte(byte: number): boolean {
  return (byte >= 0x61 && byte <= 0x7a) || (byte >= 0x2d && byte <= 0x3a && byte !== 0x2f) || byte === 0x5f;
}

function indexOfByte(bytes: Uint8Array, byte: number, from: number, end: number): number {
  for (let at = from; at < end; at += 1) if (bytes[at] === byte) return at;
  return -1;
}

// Removes names that nothing uses any more, and gives the others new numbers everywhere.

/** Everything that has numbers of names. */
export interface NameUsers {
  flows: FlowTable;
  names: NameTable;
  classifier: FlowClassifier;
  usage: Ledger['usage'];
  /** The second of the current frame. */
  now: number;
}

export function sweepNames({ flows, names, classifier, usage, now }: NameUsers): void {
  const { words, highWater } = flows;
  const marks = new Uint8Array(names.count);
  classifier.markNames(marks, now);
  usage.markNames(marks);
  for (let base = 0; base < highWater; base += flowWords) {
    const name = words[base + Field.name]! - 1;
    if ((words[base + Field.flags]! & Flag.alive) !== 0 && name >= 0) marks[name] = 1;
  }
  const renumbered = names.sweep(marks);
  classifier.renumberNames(renumbered);
  usage.renumberNames(renumbered);
  for (let base = 0; base < highWater; base += flowWords) {
    const name = words[base + Field.name]! - 1;
    if ((words[base + Field.flags]! & Flag.alive) !== 0 && name >= 0)
      words[base + Field.name] = renumbered[name]! + 1;
  }
}
