/**
 * Where a target's traffic comes from and which ports it uses, in fixed memory: the heaviest remote prefixes (/24,
 * /48), the heaviest ports of each kind, and about how many remote addresses there are.
 *
 * Heavy entries are found by the space-saving algorithm: a new entry takes the place of the lightest one with its count,
 * which is then the new entry's possible error.
 */
import { formatWords, mixHash } from '#sensor/capture/index.ts';
import { Kind } from './packet-kind.ts';
import type { PairCount } from './pair-counts.ts';

const prefixesMax = 64;
const portsMax = 64;
const sourcePortsMax = 16;
const openersMax = 16;
/** Bits that addresses are hashed to; with more addresses than bits, "many" is all that is known. */
const addressBits = 1024;
/** Seconds after which the address bits begin again, and counts of ports and openers are halved. */
const secondsPerCount = 8;

/** A share of the sampled packets. */
export interface HeavyPrefix {
  prefix: string;
  share: number;
}

/** What a detail holds, for another thread. */
export interface DetailSummary {
  version: number;
  weight: number;
  prefixes: HeavySummary;
  ports: HeavySummary;
  sourcePorts: HeavySummary;
  openers: HeavySummary;
  completed: number;
  addresses: Int32Array;
  pairs: PairCount | null;
}

interface HeavySummary {
  first: Int32Array;
  second: Int32Array;
  counts: Float64Array;
  errors: Float64Array;
}

/** Places of a filter that shows that a key is not there: most keys of a flood are not. */
const filterPlaces = 256;

/** Space saving over keys of two words. */
class HeavyKeys {
  readonly first: Int32Array;
  readonly second: Int32Array;
  readonly counts: Float64Array;
  readonly errors: Float64Array;
  used = 0;
  #hit = 0;
  /** How many keys have this hash. */
  readonly #filter = new Uint8Array(filterPlaces);
  /** The least count when it was last looked for, and the first entry that may still have it. */
  #least = 0;
  #leastAt = 0;

  constructor(max: number) {
    this.first = new Int32Array(max);
    this.second = new Int32Array(max);
    this.counts = new Float64Array(max);
    this.errors = new Float64Array(max);
  }

  add(a: number, b: number, weight: number): void {
    const { first, second, counts } = this;
    const hit = this.#hit;
    if (hit < this.used && first[hit] === a && second[hit] === b) {
      counts[hit]! += weight;
      return;
    }
    const place = filterPlace(a, b);
    if (this.#filter[place]! > 0) {
      for (let i = 0; i < this.used; i += 1) {
        if (first[i] === a && second[i] === b) {
          counts[i]! += weight;
          this.#hit = i;
          return;
        }
      }
    }
    const isNew = this.used < first.length;
    const at = isNew ? this.used : this.#lightest();
    if (isNew) this.used += 1;
    else this.#filter[filterPlace(first[at]!, second[at]!)]! -= 1;
    this.#filter[place]! += 1;
    this.errors[at] = isNew ? 0 : counts[at]!;
    counts[at] = this.errors[at]! + weight;
    first[at] = a;
    second[at] = b;
    this.#hit = at;
  }

  /** Takes weight off a key's entry, as far as it is known to be the key's. Returns the rest. */
  take(a: number, b: number, weight: number): number {
    if (this.#filter[filterPlace(a, b)] === 0) return weight;
    const { first, second, counts, errors } = this;
    for (let i = 0; i < this.used; i += 1) {
      if (first[i] !== a || second[i] !== b) continue;
      const taken = Math.min(weight, counts[i]! - errors[i]!);
      counts[i]! -= taken;
      return weight - taken;
    }
    return weight;
  }

  /** The latest packets have more weight. */
  halve(): void {
    for (let i = 0; i < this.used; i += 1) {
      this.counts[i]! /= 2;
      this.errors[i]! /= 2;
    }
    this.#least /= 2;
  }

  clear(): void {
    this.used = this.#least = this.#leastAt = 0;
    this.#filter.fill(0);
  }

  /** The first of the lightest entries. Most counts grow, so entries that were passed are not looked at again. */
  #lightest(): number {
    const { counts } = this;
    let at = this.#leastAt;
    while (at < counts.length && counts[at] !== this.#least) at += 1;
    if (at === counts.length) {
      at = 0;
      for (let i = 1; i < counts.length; i += 1) if (counts[i]! < counts[at]!) at = i;
      this.#least = counts[at]!;
    }
    this.#leastAt = at;
    return at;
  }

  summary(): HeavySummary {
    const { first, second, counts, errors, used } = this;
    return {
      first: first.slice(0, used),
      second: second.slice(0, used),
      counts: counts.slice(0, used),
      errors: errors.slice(0, used),
    };
  }

  /** Adds the entries of a summary. An entry that takes the place of another keeps that one's count as its error. */
  join(one: HeavySummary): void {
    for (let i = 0; i < one.first.length; i += 1) {
      this.add(one.first[i]!, one.second[i]!, one.counts[i]!);
      this.errors[this.#hit]! += one.errors[i]!;
    }
  }
}

function filterPlace(a: number, b: number): number {
  return mixHash(a, b) & (filterPlaces - 1);
}

export class TrafficDetail {
  /** Pairs of the target with traffic in the second that was closed last; null: not known, as of prefixes. */
  pairs: PairCount | null = null;
  readonly #prefixes = new HeavyKeys(prefixesMax);
  readonly #ports = new HeavyKeys(portsMax);
  readonly #sourcePorts = new HeavyKeys(sourcePortsMax);
  /** By hash, the addresses that open connections, less those that they complete; and completed ones of others. */
  readonly #openers = new HeavyKeys(openersMax);
  #completed = 0;
  readonly #addresses = new Int32Array(addressBits >>> 5);
  readonly #addressesBefore = new Int32Array(addressBits >>> 5);
  #version = 0;
  #weight = 0;
  #countedSince = 0;

  /** Begins for another target. */
  reset(version: number, second: number): void {
    this.#prefixes.clear();
    this.#ports.clear();
    this.#sourcePorts.clear();
    this.#openers.clear();
    this.#addresses.fill(0);
    this.#addressesBefore.fill(0);
    this.#version = version;
    this.#weight = this.#completed = 0;
    this.pairs = null;
    this.#countedSince = second;
  }

  /** How many packets it stands for. */
  get packets(): number {
    return this.#weight;
  }

  /**
   * Adds a packet that stands for `weight` packets, with its remote address. `port` is 0 where there is none. `completed`: the connections
   * whose handshake it completes.
   */
  add(
    kind: number,
    port: number,
    w0: number,
    w1: number,
    w2: number,
    w3: number,
    weight: number,
    second: number,
    completed: number,
  ): void {
    this.#weight += weight;
    if (this.#version === 4) this.#prefixes.add(w3 & ~255, 0, weight);
    else this.#prefixes.add(w0, w1 & ~65_535, weight);
    if (port > 0) this.#ports.add(kind, port, weight);
    if (second - this.#countedSince >= secondsPerCount) {
      this.#countedSince = second;
      this.#addressesBefore.set(this.#addresses);
      this.#addresses.fill(0);
      this.#ports.halve();
      this.#openers.halve();
      this.#completed /= 2;
    }
    const hash = mixHash(mixHash(mixHash(mixHash(0, w0), w1), w2), w3);
    const bit = hash & (addressBits - 1);
    this.#addresses[bit >>> 5]! |= 1 << (bit & 31);
    if (kind === Kind.opening) this.#openers.add(hash, 0, weight);
    if (completed === 0) return;
    this.#ports.take(Kind.opening, port, completed);
    this.#completed += this.#openers.take(hash, 0, completed);
  }

  /** Adds the source port of UDP that comes from no port of amplification. */
  addSourcePort(port: number, weight: number): void {
    this.#sourcePorts.add(port, 0, weight);
  }

  summary(): DetailSummary {
    return {
      version: this.#version,
      weight: this.#weight,
      prefixes: this.#prefixes.summary(),
      ports: this.#ports.summary(),
      sourcePorts: this.#sourcePorts.summary(),
      openers: this.#openers.summary(),
      completed: this.#completed,
      addresses: this.#addresses.map((bits, i) => bits | this.#addressesBefore[i]!),
      pairs: this.pairs,
    };
  }

  /** Adds what another thread saw of the same target. */
  join(one: DetailSummary): void {
    this.#version = one.version;
    this.#weight += one.weight;
    this.#prefixes.join(one.prefixes);
    this.#ports.join(one.ports);
    this.#sourcePorts.join(one.sourcePorts);
    this.#openers.join(one.openers);
    this.#completed += one.completed;
    for (let i = 0; i < this.#addresses.length; i += 1) this.#addresses[i]! |= one.addresses[i]!;
    const { established = 0, others = 0 } = this.pairs ?? {};
    if (one.pairs)
      this.pairs = { established: established + one.pairs.established, others: others + one.pairs.others };
  }

  /** About how many remote addresses sent or received in the last seconds. */
  remotes(): number {
    let set = 0;
    for (let i = 0; i < this.#addresses.length; i += 1) {
      for (let bits = this.#addresses[i]! | this.#addressesBefore[i]!; bits !== 0; bits &= bits - 1) set += 1;
    }
    if (set === addressBits) return addressBits * Math.log(addressBits);
    return Math.round(-addressBits * Math.log(1 - set / addressBits));
  }

  /** The part of the openings without a handshake that the heaviest addresses sent, 0 to 1. */
  openersShare(max: number): number {
    const { counts, errors, used } = this.#openers;
    const known = counts.subarray(0, used).map((count, i) => count - errors[i]!);
    const heaviest = known.sort().subarray(-max);
    const sum = (values: Float64Array) => values.reduce((all, one) => all + one, 0);
    return Math.min(1, sum(heaviest) / Math.max(1, sum(counts.subarray(0, used)) - this.#completed));
  }

  /** The heaviest remote prefixes. */
  prefixes(max: number): HeavyPrefix[] {
    const { first, second, counts, errors, used } = this.#prefixes;
    return Array.from({ length: used }, (_, i) => ({
      prefix:
        this.#version === 4
          ? `${formatWords(4, 0, 0, 0, first[i]!)}/24`
          : `${formatWords(6, first[i]!, second[i]!, 0, 0)}/48`,
      share: (counts[i]! - errors[i]!) / Math.max(1, this.#weight),
    }))
      .filter(({ share }) => share > 0)
      .sort((a, b) => b.share - a.share || (a.prefix < b.prefix ? -1 : 1))
      .slice(0, max);
  }

  /** The source ports that have at least `share` of the UDP packets that come from no port of amplification, heaviest first. */
  sourcePorts(share: number, max: number): number[] {
    const { first, counts, errors, used } = this.#sourcePorts;
    const total = counts.subarray(0, used).reduce((sum, count) => sum + count, 0);
    return Array.from({ length: used }, (_, i) => ({ port: first[i]!, count: counts[i]! - errors[i]! }))
      .filter(({ port, count }) => port > 0 && count > 0 && count >= share * total)
      .sort((a, b) => b.count - a.count || a.port - b.port)
      .slice(0, max)
      .map(({ port }) => port);
  }

  /** The IP protocols that have at least `share` of the packets of that kind, heaviest first. */
  protocols(share: number, max: number): number[] {
    return this.ports([Kind.protocol], share, max).map((marked) => marked & 0xff);
  }

  /** The ports that have at least `share` of the packets of these kinds, heaviest first; of those ports alone that `isCounted` names. */
  ports(kinds: readonly number[], share: number, max: number, isCounted = (_port: number) => true): number[] {
    const { first, second, counts, errors, used } = this.#ports;
    const found = new Map<number, number>();
    let total = 0;
    for (let i = 0; i < used; i += 1) {
      if (!kinds.includes(first[i]!) || !isCounted(second[i]!)) continue;
      // Counts of all entries add up to all packets, errors included.
      total += counts[i]!;
      found.set(second[i]!, (found.get(second[i]!) ?? 0) + counts[i]! - errors[i]!);
    }
    return [...found]
      .filter(([, count]) => count > 0 && count >= share * total)
      .sort((a, b) => b[1] - a[1] || a[0] - b[0])
      .slice(0, max)
      .map(([port]) => port);
  }
}
