/**
 * Queues of flow records, one for each kind of flow, so that whichever matters least makes room without a search.
 *
 * Links are numbers in typed arrays; a record is in exactly one queue or in none. Nothing here is touched for a packet
 * of a known flow: a record moves when it is looked at for room and turns out to have become something else.
 */

import { Field, Flag, isClosed, isExchange, isHalfOpen } from './flow-record.ts';
import { Protocol } from './packet.ts';

/** Kinds of flows, those that make room first in front. */
export const Queue = {
  /** Exchanges of one request and one answer: over, as far as anyone can tell. */
  over: 0,
  /** TCP connections that were closed or reset. */
  closed: 1,
  /** TCP openings that nobody answered. */
  attempts: 2,
  /** Packets that nobody answered, and openings that were answered but not confirmed. */
  singles: 3,
  /** Traffic both ways without a name, but for TCP. */
  talks: 4,
  namedTalks: 5,
  /** Established TCP connections without a name. */
  connections: 6,
  namedConnections: 7,
} as const;

export const queueCount = 8;
const none = 255;

/** The queue in which a flow belongs, by what it has become. */
export function queueFor(words: Int32Array, base: number): number {
  const flags = words[base + Field.flags]!;
  const isNamed = words[base + Field.name] !== 0;
  if ((words[base + Field.meta]! & 0xff) === Protocol.tcp) {
    if (isClosed(flags)) return Queue.closed;
    if ((flags & Flag.unanswered) !== 0) return Queue.attempts;
    if (isHalfOpen(flags)) return isNamed ? Queue.talks : Queue.singles;
    return isNamed ? Queue.namedConnections : Queue.connections;
  }
  if ((flags & Flag.answered) === 0) return Queue.singles;
  if (isExchange(flags)) return Queue.over;
  return isNamed ? Queue.namedTalks : Queue.talks;
}

export class FlowQueues {
  /** Records in each queue. */
  readonly counts = new Int32Array(queueCount);
  /** The second at which each record joined its queue. */
  readonly since: Int32Array;

  // Behind the records stands one sentinel for each queue, so that no end of a queue is a special case.
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

  /** The record that has been longest in a queue, -1 when it is empty. */
  first(queue: number): number {
    const record = this.#next[this.#recordsMax + queue]!;
    return record < this.#recordsMax ? record : -1;
  }

  /** Puts a record at a queue's end, out of the queue it may be in. */
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

  /** Takes a record out of its queue, if it is in one. */
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
