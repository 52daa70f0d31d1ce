/**
 * Queues of flow records, one for each kind of flow, so that the least valuable flow is found without a search.
 *
 * Links are indexes in typed arrays; a record is in one queue or in none. A packet of a known flow does not touch the
 * queues: a record moves when room is needed and its kind has changed.
 */

import { Protocol } from '../decode/packet.ts';
import { Field, Flag, isClosed, isExchange, isHalfOpen } from './flow-record.ts';

/** Kinds of flows, in the order in which they are removed under pressure. */
export const Queue = {
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
export function queueFor(words: Int32Array, base: number): number {
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

export class FlowQueues {
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
