/**
 * Conversations between two sockets: who is the client, what it is called, and what it moved since the last flush.
 *
 * `locate` runs once per packet, so a flow is a fixed record of 128 bytes in one buffer behind an index of one word for
 * each place: small enough for the processor's cache, because a flood looks everywhere in it. Under pressure the flows that matter least make room: TCP attempts that nobody answered have
 * an eighth of the table to themselves, then closed flows, then single UDP packets, then idle ones. A flow that makes
 * room is flushed first, so no byte is lost; a packet that finds no room is for the caller to count.
 */
import { mixHash } from './keyed-table.ts';
import { type Packet, Protocol } from './packet.ts';

/** Words of a record; a side is 0 for the lower socket, 1 for the higher. */
export const flowWords = 32;
/**
 * Positions of values in a record, in words. The first half, one line of the processor's cache, is what finding a flow
 * and counting need.
 */
export const Field = {
  lower: 0,
  higher: 4,
  ports: 8,
  /** Protocol, version and tunnel. */
  meta: 9,
  /** Two doubles, at these positions divided by two. */
  bytes: 10,
  packets: 14,
  /** Milliseconds after the minute's start plus one, 0 for never. */
  lastSent: 16,
  lastSeen: 18,
  flags: 19,
  name: 20,
  /** Three words for each side: expected sequence, mode and consumed bytes, lent buffer. */
  stream: 21,
  initialSequence: 27,
  /** Two words for each side. */
  mac: 28,
} as const;

/** Where the evidence of a flow's name lies in its flags. */
const evidenceShift = 20;
const evidenceMask = 7 << evidenceShift;

/** What a flow's name rests on. */
export function evidenceOf(words: Int32Array, base: number): number {
  return (words[base + Field.flags]! & evidenceMask) >>> evidenceShift;
}

/** Names a flow. `name` is an id, -1 for none. */
export function setName(words: Int32Array, base: number, name: number, evidence: number): void {
  words[base + Field.name] = name + 1;
  words[base + Field.flags] = (words[base + Field.flags]! & ~evidenceMask) | (evidence << evidenceShift);
}

/** Bits of `Field.flags`. */
export const Flag = {
  alive: 1,
  clientIsHigher: 2,
  /** The client is known, not assumed. */
  clientIsSure: 4,
  /** Both sides have sent. */
  answered: 8,
  /** Of the two `fin` bits, the second is for the higher side. */
  fin: 16,
  reset: 64,
  unanswered: 128,
  lowerIsLocal: 256,
  higherIsLocal: 512,
  /** Of the two, the second is for the higher side. */
  macConflict: 1024,
  inner: 4096,
  /** Of the two, the second is for the higher side. */
  sent: 8192,
  /** The start of a TCP connection was seen; `initialSequence` is its client's. */
  handshakeSeen: 32768,
  /** Whoever opened the TCP connection sent more than the opening. */
  confirmed: 65536,
} as const;

/**
 * A word of the index: the record's number plus one, how far the place is from where its hash belongs, and some bits of
 * the hash that spare a look at most other records. 0 is a free place.
 */
const recordMask = 0x3ffff;
const distanceShift = 18;
/** A distance that means "this much or more". */
const distanceMax = 0x7f;
const distanceMask = distanceMax << distanceShift;
const tagMask = ~(recordMask | distanceMask);

const sampleSize = 32;
/** Seconds of silence after which a flow makes room while the table is full: TCP and the rest, unanswered or not. */
const emergency = { halfOpen: 5, established: 100, unanswered: 10, answered: 100 } as const;

export interface FlowTableOptions {
  flowsMax: number;
  key: readonly [number, number];
  /** Remember in which order flows began (files only). */
  keepsOrder?: boolean;
  /** Called with the record's base before a flow leaves the table. */
  onRemove(base: number): void;
}

export class FlowTable {
  readonly words: Int32Array;
  readonly sums: Float64Array;
  /** After `locate`: the side that sent the packet, and whether the flow is new. */
  side = 0;
  isNew = false;
  /** Records that were ever used; a walk over all flows goes from 0 to here. */
  highWater = 0;
  count = 0;

  /** Number of the flow in the order in which they began, one for each record. */
  readonly serials: Int32Array;

  readonly #options: FlowTableOptions;
  readonly #key0: number;
  readonly #key1: number;
  readonly #index: Int32Array;
  readonly #mask: number;
  /** Attempts that nobody answered, oldest first, as a ring. */
  readonly #attempts: Int32Array;
  #attemptAt = 0;
  /** A ring like that of flows that began under pressure: few, so that a flood stays in the processor's cache. */
  readonly #late: Int32Array;
  #lateAt = 0;
  #isFull = false;
  #free = -1;
  #hand = 0;
  #serial = 0;

  constructor(options: FlowTableOptions) {
    this.#options = options;
    this.#key0 = options.key[0];
    this.#key1 = options.key[1];
    this.serials = new Int32Array(options.keepsOrder ? options.flowsMax : 0);
    const buffer = new ArrayBuffer(options.flowsMax * flowWords * 4);
    this.words = new Int32Array(buffer);
    this.sums = new Float64Array(buffer);
    if (options.flowsMax >= recordMask) throw new RangeError(`at most ${recordMask - 1} flows`);
    const places = 1 << Math.ceil(Math.log2(options.flowsMax * 2));
    this.#index = new Int32Array(places);
    this.#mask = places - 1;
    this.#late = new Int32Array(Math.max(1, options.flowsMax >> 4)).fill(-1);
    this.#attempts = new Int32Array(Math.max(1, options.flowsMax >> 3)).fill(-1);
  }

  /** Base of the packet's flow in `words`, made if need be; -1 when there is no room. */
  locate(p: Packet, tunnel: number, now: number): number {
    const isLower = sourceIsLower(p);
    this.side = isLower ? 0 : 1;
    const ports = isLower ? (p.sourcePort << 16) | p.targetPort : (p.targetPort << 16) | p.sourcePort;
    const meta = p.protocol | (p.version << 8) | (tunnel << 16);
    const hash = hashPacket(p, isLower, ports, meta, this.#key0, this.#key1);
    const index = this.#index;
    const words = this.words;
    const tag = hash & tagMask;
    let at = hash & this.#mask;
    for (;;) {
      const place = index[at]!;
      if (place === 0) break;
      if ((place & tagMask) === tag) {
        const base = ((place & recordMask) - 1) * flowWords;
        if (
          words[base + Field.ports] === ports &&
          words[base + Field.meta] === meta &&
          isSamePair(words, base, p, isLower)
        ) {
          this.isNew = false;
          return base;
        }
      }
      at = (at + 1) & this.#mask;
    }
    return this.#insert(p, isLower, ports, meta, hash, now);
  }

  /** Takes the flow out of the table, after a flush. */
  remove(base: number): void {
    this.#options.onRemove(base);
    this.#unlink(base);
    this.words[base + Field.flags] = 0;
    // A free record's first word leads to the next one.
    this.words[base] = this.#free;
    this.#free = base;
    this.count -= 1;
  }

  /** Removes what has been silent for longer than its kind may be. */
  removeIdle(now: number): void {
    for (let base = 0; base < this.highWater; base += flowWords) {
      if ((this.words[base + Field.flags]! & Flag.alive) === 0) continue;
      if (now - this.words[base + Field.lastSeen]! > this.#idleSeconds(base)) this.remove(base);
    }
  }

  #insert(p: Packet, isLower: boolean, ports: number, meta: number, hash: number, now: number): number {
    const isAttempt = p.protocol === Protocol.tcp && (p.tcpFlags & 0x12) === 0x02;
    if (isAttempt) this.#retireAttempt();
    const base = this.#take(now);
    if (base < 0) return -1;
    const { words, sums } = this;
    // A loop of our own, two words at a time: a call of `fill` costs more than so few.
    for (let pair = (base + Field.bytes) >> 1; pair < (base + flowWords) >> 1; pair += 1) sums[pair] = 0;
    const source = isLower ? base : base + 4;
    const target = isLower ? base + 4 : base;
    words[source] = p.source0;
    words[source + 1] = p.source1;
    words[source + 2] = p.source2;
    words[source + 3] = p.source3;
    words[target] = p.target0;
    words[target + 1] = p.target1;
    words[target + 2] = p.target2;
    words[target + 3] = p.target3;
    words[base + Field.ports] = ports;
    words[base + Field.meta] = meta;
    words[base + Field.flags] = Flag.alive;
    if (this.serials.length > 0) this.serials[base / flowWords] = this.#serial;
    this.#serial += 1;
    this.#link(base, hash);
    this.count += 1;
    this.isNew = true;
    if (isAttempt) this.#addAttempt(base);
    else if (this.#isFull) this.#addLate(base);
    return base;
  }

  /** The oldest attempt makes room for the next one, once the ring is full, if it is still unanswered. */
  #retireAttempt(): void {
    const oldest = this.#attempts[this.#attemptAt]!;
    if (oldest >= 0 && (this.words[oldest + Field.flags]! & Flag.unanswered) !== 0) this.remove(oldest);
  }

  #addAttempt(base: number): void {
    this.words[base + Field.flags]! |= Flag.unanswered;
    this.#attempts[this.#attemptAt] = base;
    this.#attemptAt = this.#attemptAt + 1 === this.#attempts.length ? 0 : this.#attemptAt + 1;
  }

  /** Flows that began while the table was full; those that stay single packets make room first. */
  #addLate(base: number): void {
    this.#late[this.#lateAt] = base;
    this.#lateAt = this.#lateAt + 1 === this.#late.length ? 0 : this.#lateAt + 1;
  }

  #take(now: number): number {
    this.#isFull = this.#free < 0 && this.highWater >= this.words.length;
    if (this.#isFull) {
      const late = this.#late[this.#lateAt]!;
      const victim = late >= 0 && this.#isNoise(late) ? late : this.#findVictim(now);
      if (victim < 0) return -1;
      this.remove(victim);
    }
    if (this.#free >= 0) {
      const base = this.#free;
      this.#free = this.words[base]!;
      return base;
    }
    const base = this.highWater;
    this.highWater += flowWords;
    return base;
  }

  /** True for a flow of one packet that nobody answered and nothing names. */
  #isNoise(base: number): boolean {
    const words = this.words;
    const flags = words[base + Field.flags]!;
    if ((flags & (Flag.alive | Flag.answered)) !== Flag.alive || words[base + Field.name] !== 0) return false;
    return words[base + Field.packets]! + words[base + Field.packets + 1]! <= 1;
  }

  /** Looks at a few records from the clock hand on and takes the least worth keeping; -1 when all are at work. */
  #findVictim(now: number): number {
    let victim = -1;
    let best = 0;
    for (let i = 0; i < sampleSize; i += 1) {
      const base = this.#hand;
      this.#hand = this.#hand + flowWords >= this.highWater ? 0 : this.#hand + flowWords;
      const worth = this.#uselessness(base, now);
      if (worth >= 1_000_000) return base;
      if (worth > best) {
        best = worth;
        victim = base;
      }
    }
    return victim;
  }

  #uselessness(base: number, now: number): number {
    const words = this.words;
    const flags = words[base + Field.flags]!;
    if ((flags & Flag.alive) === 0) return 0;
    const idle = now - words[base + Field.lastSeen]!;
    if (isClosed(flags)) return 3_000_000;
    if ((flags & Flag.unanswered) !== 0) return 2_000_000;
    if (this.#isNoise(base)) return 1_000_000;
    const limit = this.#emergencySeconds(base, flags);
    // Among those that may go, whoever is furthest beyond its limit goes first.
    return idle > limit ? idle - limit : 0;
  }

  #emergencySeconds(base: number, flags: number): number {
    const isTcp = (this.words[base + Field.meta]! & 0xff) === Protocol.tcp;
    if (isTcp) return isHalfOpen(flags) ? emergency.halfOpen : emergency.established;
    return (flags & Flag.answered) === 0 ? emergency.unanswered : emergency.answered;
  }

  #idleSeconds(base: number): number {
    const flags = this.words[base + Field.flags]!;
    const protocol = this.words[base + Field.meta]! & 0xff;
    if (protocol === Protocol.tcp) {
      return isClosed(flags) || isHalfOpen(flags) ? 60 : 600;
    }
    return (flags & Flag.answered) === 0 ? 60 : 300;
  }

  #link(base: number, hash: number): void {
    const mask = this.#mask;
    let at = hash & mask;
    let distance = 0;
    while (this.#index[at] !== 0) {
      at = (at + 1) & mask;
      distance += 1;
    }
    this.#index[at] = placeWord(base / flowWords + 1, distance, hash);
  }

  /** Takes the record out of the index and moves followers up, so that probing never meets a hole. */
  #unlink(base: number): void {
    const index = this.#index;
    const mask = this.#mask;
    const record = base / flowWords + 1;
    let hole = hashRecord(this.words, base, this.#key0, this.#key1) & mask;
    while ((index[hole]! & recordMask) !== record) hole = (hole + 1) & mask;
    let at = hole;
    for (;;) {
      at = (at + 1) & mask;
      const place = index[at]!;
      if (place === 0) break;
      const distance = this.#distance(place, at);
      const step = (at - hole) & mask;
      if (distance < step) continue;
      index[hole] = placeWord(place & recordMask, distance - step, place);
      hole = at;
    }
    index[hole] = 0;
  }

  /** How far a place is from where its record's hash belongs. */
  #distance(place: number, at: number): number {
    const distance = (place & distanceMask) >>> distanceShift;
    if (distance < distanceMax) return distance;
    const base = ((place & recordMask) - 1) * flowWords;
    return (at - hashRecord(this.words, base, this.#key0, this.#key1)) & this.#mask;
  }
}

function placeWord(record: number, distance: number, hash: number): number {
  return record | (Math.min(distance, distanceMax) << distanceShift) | (hash & tagMask);
}

/** True when a reset or both ends' FIN were seen. */
export function isClosed(flags: number): boolean {
  return (flags & Flag.reset) !== 0 || (flags & (Flag.fin * 3)) === Flag.fin * 3;
}

/** True while a TCP connection has one side only, or a handshake that its client has not confirmed. */
function isHalfOpen(flags: number): boolean {
  if ((flags & Flag.answered) === 0) return true;
  return (flags & Flag.handshakeSeen) !== 0 && (flags & Flag.confirmed) === 0;
}

function sourceIsLower(p: Packet): boolean {
  if (p.source3 !== p.target3) return p.source3 < p.target3;
  if (p.source2 !== p.target2) return p.source2 < p.target2;
  if (p.source1 !== p.target1) return p.source1 < p.target1;
  if (p.source0 !== p.target0) return p.source0 < p.target0;
  return p.sourcePort <= p.targetPort;
}

function isSamePair(words: Int32Array, base: number, p: Packet, isLower: boolean): boolean {
  const source = isLower ? base : base + 4;
  const target = isLower ? base + 4 : base;
  if (words[source + 3] !== p.source3 || words[target + 3] !== p.target3) return false;
  // An IPv4 address is all in its last word, and the version was compared.
  if (p.version === 4) return true;
  return (
    words[source] === p.source0 &&
    words[target] === p.target0 &&
    words[source + 1] === p.source1 &&
    words[source + 2] === p.source2 &&
    words[target + 1] === p.target1 &&
    words[target + 2] === p.target2
  );
}

/** Both directions hash alike because the lower socket goes first; the key enters at both ends. */
export function hashPacket(
  p: Packet,
  isLower: boolean,
  ports: number,
  meta: number,
  key0: number,
  key1: number,
): number {
  let hash = mixPair(isLower ? p.source3 : p.target3, isLower ? p.target3 : p.source3, key0);
  if (p.version === 6) {
    hash = isLower
      ? mixSix(hash, p.source0, p.source1, p.source2, p.target0, p.target1, p.target2)
      : mixSix(hash, p.target0, p.target1, p.target2, p.source0, p.source1, p.source2);
  }
  return mixEnd(hash, ports, meta, key1);
}

/** The same hash out of a record. */
function hashRecord(words: Int32Array, base: number, key0: number, key1: number): number {
  let hash = mixPair(words[base + 3]!, words[base + 7]!, key0);
  const meta = words[base + Field.meta]!;
  if (((meta >> 8) & 0xff) === 6) {
    const w = words;
    hash = mixSix(hash, w[base]!, w[base + 1]!, w[base + 2]!, w[base + 4]!, w[base + 5]!, w[base + 6]!);
  }
  return mixEnd(hash, words[base + Field.ports]!, meta, key1);
}

function mixPair(lower: number, higher: number, key: number): number {
  let hash = Math.imul(lower ^ key, 0x9e3779b1);
  hash ^= hash >>> 15;
  return Math.imul(hash ^ higher, 0x85ebca6b);
}

function mixSix(hash: number, a: number, b: number, c: number, d: number, e: number, f: number): number {
  return mixHash(mixHash(mixHash(mixHash(mixHash(mixHash(hash, a), b), c), d), e), f);
}

function mixEnd(start: number, ports: number, meta: number, key: number): number {
  let hash = start ^ (start >>> 13);
  hash = Math.imul(hash ^ ports, 0xc2b2ae35);
  hash ^= hash >>> 16;
  hash = Math.imul(hash ^ meta ^ key, 0x27d4eb2d);
  return hash ^ (hash >>> 15);
}
