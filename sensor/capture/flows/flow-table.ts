/**
 * Conversations between two sockets: the client, the name, and the counters since the last flush.
 *
 * `locate` runs once per packet, so a flow is a fixed record of 128 bytes in one buffer, behind an index of one word
 * per slot. Both stay small, because under a flood probes hit random slots and should hit the processor's cache. There
 * is always room: finished exchanges and closed connections leave after a while. Under pressure the least valuable flow
 * leaves: the least recently used of its kind, named TCP connections last. A flow is flushed before it leaves, so no
 * byte is lost.
 */
import { type Packet, Protocol } from '../decode/packet.ts';
import { hashPacket, hashRecord, isSamePair, mixEnd, mixPair, mixSix, sourceIsLower } from './flow-hash.ts';
import { Field, Flag, flowWords, isClosed, isExchange, isHalfOpen } from './flow-record.ts';

/**
 * A word of the index: the record's number plus one, the distance of the slot from where its hash belongs, and some
 * bits of the hash that avoid comparing most other records. 0 is a free slot.
 */
const recordMask = 0x3ffff;
const distanceShift = 18;
/** This distance or more. */
const distanceMax = 0x7f;
const distanceMask = distanceMax << distanceShift;
const tagMask = ~(recordMask | distanceMask);

/**
 * Parts of the table, as powers of two. The bound limits finished flows, closed flows and unanswered TCP openings at
 * any time, and single packets under pressure. The floor is what each keeps when others need room.
 */
const boundShift = 3;
const floorShift = 4;
/** The part of the table that must be free before pressure ends. */
const reliefShift = 2;
/** How many used flows are skipped in search of an unused one, before the least recently used of them leaves. */
const passesMax = 16;
/** How many flows are examined when a queue exceeds its bound. */
const trimmedMax = 4;

export interface FlowTableOptions {
  flowsMax: number;
  key: readonly [number, number];
  /** Keep the order in which flows began (files only). */
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
  /** Number of records that were ever used; a walk over all flows goes from 0 to here. */
  highWater = 0;
  count = 0;

  /** Serial number of each record's flow, in the order in which flows began. */
  readonly serials: Int32Array;

  readonly #options: FlowTableOptions;
  readonly #key0: number;
  readonly #key1: number;
  readonly #index: Int32Array;
  readonly #mask: number;
  readonly #queues: FlowQueues;
  readonly #bound: number;
  readonly #floor: number;
  /** The table was full recently: single packets get a part of it only, which also keeps a flood in the cache. */
  #isPressed = false;
  #free = -1;
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
    this.#queues = new FlowQueues(options.flowsMax);
    this.#bound = Math.max(1, options.flowsMax >> boundShift);
    this.#floor = options.flowsMax >> floorShift;
  }

  /** Base of the packet's flow in `words`, created if needed. Another flow may be removed for it. */
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

  /** Base of an IPv4 flow outside of tunnels, -1 when there is none; `ports` has the source's in its upper half. */
  find4(source: number, target: number, ports: number, protocol: number): number {
    const isLower = source === target ? ports >>> 16 <= (ports & 0xffff) : source < target;
    const lower = isLower ? source : target;
    const higher = isLower ? target : source;
    const ordered = isLower ? ports : (ports << 16) | (ports >>> 16);
    const meta = protocol | 0x400;
    const hash = mixEnd(mixPair(lower, higher, this.#key0), ordered, meta, this.#key1);
    const index = this.#index;
    const words = this.words;
    const mask = this.#mask;
    let at = hash - 1;
    for (;;) {
      // Step before the comparison, not after it: the first packets take this path too, so it is compiled once.
      at = (at + 1) & mask;
      const place = index[at]!;
      if (place === 0) return -1;
      if (((place ^ hash) & tagMask) === 0) {
        const base = ((place & recordMask) - 1) * flowWords;
        if (
          words[base + Field.ports] === ordered &&
          words[base + 3] === lower &&
          words[base + 7] === higher &&
          words[base + Field.meta] === meta
        ) {
          this.side = isLower ? 0 : 1;
          return base;
        }
      }
    }
  }

  /** The same for IPv6; source and target lie one behind the other at `at`. */
  find6(view: DataView, at: number, ports: number, protocol: number): number {
    const isLower = sourceIsLower6(view, at, ports);
    const lower = isLower ? at : at + 16;
    const higher = isLower ? at + 16 : at;
    const ordered = isLower ? ports : (ports << 16) | (ports >>> 16);
    const meta = protocol | 0x600;
    const a0 = view.getInt32(lower);
    const a1 = view.getInt32(lower + 4);
    const a2 = view.getInt32(lower + 8);
    const a3 = view.getInt32(lower + 12);
    const b0 = view.getInt32(higher);
    const b1 = view.getInt32(higher + 4);
    const b2 = view.getInt32(higher + 8);
    const b3 = view.getInt32(higher + 12);
    const hash = mixEnd(
      mixSix(mixPair(a3, b3, this.#key0), a0, a1, a2, b0, b1, b2),
      ordered,
      meta,
      this.#key1,
    );
    const index = this.#index;
    const words = this.words;
    const mask = this.#mask;
    let place = hash - 1;
    for (;;) {
      place = (place + 1) & mask;
      const word = index[place]!;
      if (word === 0) return -1;
      if (((word ^ hash) & tagMask) === 0) {
        const base = ((word & recordMask) - 1) * flowWords;
        if (
          words[base + Field.ports] === ordered &&
          words[base + 3] === a3 &&
          words[base + 7] === b3 &&
          words[base] === a0 &&
          words[base + 4] === b0 &&
          words[base + 1] === a1 &&
          words[base + 2] === a2 &&
          words[base + 5] === b1 &&
          words[base + 6] === b2 &&
          words[base + Field.meta] === meta
        ) {
          this.side = isLower ? 0 : 1;
          return base;
        }
      }
    }
  }

  /** The flow is most likely finished: it leaves after a while. */
  noteEnd(base: number, now: number): void {
    const queue = isClosed(this.words[base + Field.flags]!) ? Queue.closed : Queue.over;
    this.#queues.append(base / flowWords, queue, now);
    if (this.#queues.counts[queue]! > this.#bound) this.#trim(queue, now);
  }

  /** Removes the flow from the table; it was flushed before. */
  remove(base: number): void {
    this.#options.onRemove(base);
    this.#queues.remove(base / flowWords);
    this.#unlink(base);
    this.words[base + Field.flags] = 0;
    // The first word of a free record is the number of the next free one.
    this.words[base] = this.#free;
    this.#free = base;
    this.count -= 1;
  }

  /** Removes flows that were idle for longer than their kind allows. */
  removeIdle(now: number): void {
    for (let base = 0; base < this.highWater; base += flowWords) {
      if ((this.words[base + Field.flags]! & Flag.alive) === 0) continue;
      if (now - this.words[base + Field.lastSeen]! > this.#idleSeconds(base)) this.remove(base);
    }
    const flowsMax = this.words.length / flowWords;
    if (this.count <= flowsMax - (flowsMax >> reliefShift)) this.#isPressed = false;
  }

  #insert(p: Packet, isLower: boolean, ports: number, meta: number, hash: number, now: number): number {
    const isAttempt = p.protocol === Protocol.tcp && (p.tcpFlags & 0x12) === 0x02;
    const queue = isAttempt ? Queue.attempts : Queue.singles;
    const isBounded = isAttempt || this.#isPressed;
    if (isBounded && this.#queues.counts[queue]! >= this.#bound) this.#trim(queue, now);
    const base = this.#take(now);
    const { words, sums } = this;
    // A loop over two words at a time: calling `fill` costs more for so few.
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
    words[base + Field.flags] = isAttempt ? Flag.alive | Flag.unanswered : Flag.alive;
    if (this.serials.length > 0) this.serials[base / flowWords] = this.#serial;
    this.#serial += 1;
    this.#link(base, hash);
    this.count += 1;
    this.isNew = true;
    this.#queues.append(base / flowWords, queue, now);
    return base;
  }

  #take(now: number): number {
    if (this.#free < 0 && this.highWater >= this.words.length) {
      this.#isPressed = true;
      this.remove(this.#leastValuable(now));
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

  /**
   * Removes the oldest flows of a queue above its bound. A flow whose kind has changed moves to its own queue instead.
   */
  #trim(queue: number, now: number): void {
    for (let i = 0; i < trimmedMax; i += 1) {
      const record = this.#queues.first(queue);
      if (record < 0) return;
      const wanted = queueFor(this.words, record * flowWords);
      if (wanted === queue || wanted <= Queue.closed) {
        this.remove(record * flowWords);
        if (this.#queues.counts[queue]! < this.#bound) return;
      } else this.#queues.append(record, wanted, now);
    }
  }

  /** The flow to remove for a new one. */
  #leastValuable(now: number): number {
    const { counts } = this.#queues;
    for (let queue: number = Queue.over; queue <= Queue.namedConnections; queue += 1) {
      const floor = queue <= Queue.singles ? this.#floor : 0;
      while (counts[queue]! > floor) {
        const base = this.#leastValuableOf(queue, now);
        if (base >= 0) return base;
      }
    }
    // In a very small table the floors alone fill it.
    for (let queue: number = Queue.over; ; queue += 1)
      if (counts[queue]! > 0) return this.#queues.first(queue) * flowWords;
  }

  /**
   * The first flow of a queue that still has this kind and was not used since it joined, or -1 at the queue's end. A
   * flow whose kind has changed moves to its own queue, which costs once per change.
   */
  #leastValuableOf(queue: number, now: number): number {
    const queues = this.#queues;
    let passes = 0;
    let oldest = -1;
    for (;;) {
      const record = queues.first(queue);
      if (record < 0) return -1;
      const base = record * flowWords;
      const wanted = queueFor(this.words, base);
      if (wanted !== queue && wanted > Queue.closed) {
        queues.append(record, wanted, now);
        continue;
      }
      const lastSeen = this.words[base + Field.lastSeen]!;
      if (queue <= Queue.singles || lastSeen <= queues.since[record]!) return base;
      if (oldest < 0 || lastSeen < this.words[oldest + Field.lastSeen]!) oldest = base;
      passes += 1;
      if (passes > passesMax) return oldest;
      queues.append(record, queue, now);
    }
  }

  #idleSeconds(base: number): number {
    const flags = this.words[base + Field.flags]!;
    const protocol = this.words[base + Field.meta]! & 0xff;
    if (protocol === Protocol.tcp) {
      return isClosed(flags) || isHalfOpen(flags) ? 60 : 600;
    }
    return (flags & Flag.answered) === 0 || isExchange(flags) ? 60 : 300;
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

  /**
   * Removes the record from the index and moves its followers up, so that probing never meets a free slot too early.
   */
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

  /** Distance of a slot from where its record's hash belongs. */
  #distance(place: number, at: number): number {
    const distance = (place & distanceMask) >>> distanceShift;
    if (distance < distanceMax) return distance;
    const base = ((place & recordMask) - 1) * flowWords;
    return (at - hashRecord(this.words, base, this.#key0, this.#key1)) & this.#mask;
  }
}

/** Like `sourceIsLower`, for two adjacent addresses. */
function sourceIsLower6(view: DataView, at: number, ports: number): boolean {
  for (let word = 16; word > 0; ) {
    word -= 4;
    const source = view.getInt32(at + word);
    const target = view.getInt32(at + 16 + word);
    const isLower = source < target;
    if (source !== target) return isLower;
  }
  return ports >>> 16 <= (ports & 0xffff);
}

function placeWord(record: number, distance: number, hash: number): number {
  return record | (Math.min(distance, distanceMax) << distanceShift) | (hash & tagMask);
}

// Queues of flow records, one for each kind of flow, so that the least valuable flow is found without a search.
//
// Links are indexes in typed arrays; a record is in one queue or in none. A packet of a known flow does not touch the
// queues: a record moves when room is needed and its kind has changed.

/** Kinds of flows, in the order in which they are removed under pressure. */
const Queue = {
  /** Exchanges of one request and one answer, most likely finished. */
  over: 0,
  /** TCP connections that were closed or reset. */
  closed: 1,
  /** TCP openings without an answer. */
  attempts: 2,
  /** Packets without an answer, and openings that were answered but not confirmed. */
  singles: 3,
  /** Traffic in both directions without a name, except TCP. */
  bidirectional: 4,
  namedBidirectional: 5,
  /** Established TCP connections without a name. */
  connections: 6,
  namedConnections: 7,
} as const;

export const queueCount = 8;
const none = 255;

/** The queue for a flow in its present state. */
function queueFor(words: Int32Array, base: number): number {
  const flags = words[base + Field.flags]!;
  const isNamed = words[base + Field.name] !== 0;
  if ((words[base + Field.meta]! & 0xff) === Protocol.tcp) {
    if (isClosed(flags)) return Queue.closed;
    if ((flags & Flag.unanswered) !== 0) return Queue.attempts;
    if (isHalfOpen(flags)) return isNamed ? Queue.bidirectional : Queue.singles;
    return isNamed ? Queue.namedConnections : Queue.connections;
  }
  if ((flags & Flag.answered) === 0) return Queue.singles;
  if (isExchange(flags)) return Queue.over;
  return isNamed ? Queue.namedBidirectional : Queue.bidirectional;
}

class FlowQueues {
  /** Records in each queue. */
  readonly counts = new Int32Array(queueCount);
  /** The second at which each record joined its queue. */
  readonly since: Int32Array;

  // After the records there is one sentinel for each queue, so that the ends of a queue need no special case.
  readonly #next: Int32Array;
  readonly #previous: Int32Array;
  readonly #queueOf: Uint8Array;
  readonly #recordsMax: number;

  constructor(recordsMax: number) {
    this.#recordsMax = recordsMax;
    this.since = new Int32Array(recordsMax);
    this.#next = new Int32Array(recordsMax + queueCount);
    this.#previous = new Int32Array(recordsMax + queueCount);
    this.#queueOf = new Uint8Array(recordsMax).fill(none);
    for (let end = recordsMax; end < recordsMax + queueCount; end += 1)
      this.#next[end] = this.#previous[end] = end;
  }

  /** The record that has been in the queue longest, or -1. */
  first(queue: number): number {
    const record = this.#next[this.#recordsMax + queue]!;
    return record < this.#recordsMax ? record : -1;
  }

  /** Moves a record to the end of a queue. */
  append(record: number, queue: number, now: number): void {
    this.remove(record);
    const end = this.#recordsMax + queue;
    const last = this.#previous[end]!;
    this.#next[last] = record;
    this.#previous[record] = last;
    this.#next[record] = end;
    this.#previous[end] = record;
    this.#queueOf[record] = queue;
    this.since[record] = now;
    this.counts[queue]! += 1;
  }

  /** Removes a record from its queue, if any. */
  remove(record: number): void {
    const queue = this.#queueOf[record]!;
    if (queue === none) return;
    const next = this.#next[record]!;
    const previous = this.#previous[record]!;
    this.#next[previous] = next;
    this.#previous[next] = previous;
    this.#queueOf[record] = none;
    this.counts[queue]! -= 1;
  }
}
