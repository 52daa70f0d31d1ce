/**
 * Stores which client asked for which name, and which addresses the answers gave.
 *
 * An answer counts only when the same client asked that question before (same addresses, ports, transport, id, name and
 * type), so that an attacker can not plant a name for another client. Both tables are set-associative with a few ways: an entry
 * is found or overwritten without a search. One client can displace at most 256 names, its own or those of a few other
 * clients.
 */

import { mixHash } from '../keyed-table.ts';
import { dnsMessage, dnsNames } from './dns-message.ts';

const queryWords = 3;
const queryWays = 4;
const querySeconds = 60;
const answerWords = 11;
const answerWays = 8;
/** Smallest number of sets for one client's answers; one thirty-second of the sets of a large table (files). */
const setsPerClientMin = 32;
const ttlMaxSeconds = 86_400;
/** A name with TTL 0 needs some seconds to apply to the connection that it was looked up for. */
const zeroTtlSeconds = 5;

/** The two ends of a DNS exchange, or client and remote end of a flow. The caller fills it before each call. */
export const pair = {
  version: 4,
  protocol: 0,
  client: new Int32Array(4),
  server: new Int32Array(4),
  ports: 0,
};

export class DnsEvidence {
  readonly #seed: number;
  readonly #queries: Int32Array;
  readonly #querySets: number;
  readonly #answers: Int32Array;
  readonly #answerSets: number;
  readonly #setsPerClient: number;
  #hasAnswers = false;

  constructor(queriesMax: number, answersMax: number, seed: number) {
    this.#seed = seed;
    this.#querySets = queriesMax / queryWays;
    this.#queries = new Int32Array(queriesMax * queryWords);
    this.#answerSets = answersMax / answerWays;
    this.#setsPerClient = Math.max(setsPerClientMin, this.#answerSets >> 5);
    this.#answers = new Int32Array(answersMax * answerWords);
  }

  /** True once an answer was stored. Avoids a look-up for each new flow in a capture without DNS. */
  get hasAnswers(): boolean {
    return this.#hasAnswers;
  }

  /** Stores the question in `dnsMessage` for `pair`. */
  rememberQuery(now: number): void {
    const hash = this.#hashQuestion();
    const check = mixHash(hash, 0x51ed270b);
    const base = (hash & (this.#querySets - 1)) * queryWays * queryWords;
    let oldest = base;
    for (let way = 0; way < queryWays; way += 1) {
      const at = base + way * queryWords;
      if (this.#queries[at] === check || this.#queries[at + 2] === 0) {
        oldest = at;
        break;
      }
      if (this.#queries[at + 1]! < this.#queries[oldest + 1]!) oldest = at;
    }
    this.#queries[oldest] = check;
    this.#queries[oldest + 1] = now | 0;
    this.#queries[oldest + 2] = 1;
  }

  /** True when the answer in `dnsMessage` matches a question of the last minute. */
  wasAsked(now: number): boolean {
    const hash = this.#hashQuestion();
    const check = mixHash(hash, 0x51ed270b);
    const base = (hash & (this.#querySets - 1)) * queryWays * queryWords;
    for (let way = 0; way < queryWays; way += 1) {
      const at = base + way * queryWords;
      if (this.#queries[at] !== check || this.#queries[at + 2] === 0) continue;
      return (now | 0) - this.#queries[at + 1]! <= querySeconds;
    }
    return false;
  }

  /**
   * Stores `nameId` for the address in `pair.server`, as looked up by the client in `pair`. Returns false when an
   * unexpired name was displaced.
   */
  rememberAddress(nameId: number, ttlSeconds: number, now: number): boolean {
    const at = this.#place(now);
    const isRoomFree = this.#isPair(at) || this.#answers[at + 9] === 0 || this.#answers[at + 10]! < (now | 0);
    const { client, server } = pair;
    for (let word = 0; word < 4; word += 1) {
      this.#answers[at + word] = client[word]!;
      this.#answers[at + 4 + word] = server[word]!;
    }
    this.#answers[at + 8] = pair.version;
    this.#answers[at + 9] = nameId + 1;
    const ttl = ttlSeconds === 0 ? zeroTtlSeconds : Math.min(ttlSeconds, ttlMaxSeconds);
    this.#answers[at + 10] = (now + ttl) | 0;
    this.#hasAnswers = true;
    return isRoomFree;
  }

  /** Id of the name for which the client in `pair` received the address in `pair.server`, or -1. */
  nameOf(now: number): number {
    const base = this.#setBase();
    for (let way = 0; way < answerWays; way += 1) {
      const at = base + way * answerWords;
      if (!this.#isPair(at)) continue;
      return this.#answers[at + 10]! >= (now | 0) ? this.#answers[at + 9]! - 1 : -1;
    }
    return -1;
  }

  /** Marks the names of unexpired answers before a sweep. */
  markNames(marks: Uint8Array, now: number): void {
    for (let at = 0; at < this.#answers.length; at += answerWords) {
      const name = this.#answers[at + 9]! - 1;
      if (name < 0) continue;
      if (this.#answers[at + 10]! < (now | 0)) this.#answers[at + 9] = 0;
      else marks[name] = 1;
    }
  }

  /** Applies the new ids of a sweep. */
  renumberNames(renumbered: Int32Array): void {
    for (let at = 9; at < this.#answers.length; at += answerWords) {
      const name = this.#answers[at]! - 1;
      if (name >= 0) this.#answers[at] = renumbered[name]! + 1;
    }
  }

  /** The entry of this pair, else a free or expired one, else the one that expires first. */
  #place(now: number): number {
    const base = this.#setBase();
    let best = base;
    let bestExpiry = 0x7fffffff;
    for (let way = 0; way < answerWays; way += 1) {
      const at = base + way * answerWords;
      if (this.#isPair(at)) return at;
      const expiry =
        this.#answers[at + 9] === 0 || this.#answers[at + 10]! < (now | 0) ? 0 : this.#answers[at + 10]!;
      if (expiry < bestExpiry) {
        best = at;
        bestExpiry = expiry;
      }
    }
    return best;
  }

  #isPair(at: number): boolean {
    const { client, server } = pair;
    if (this.#answers[at + 9] === 0 || this.#answers[at + 8] !== pair.version) return false;
    for (let word = 3; word >= 0; word -= 1) {
      if (this.#answers[at + word] !== client[word] || this.#answers[at + 4 + word] !== server[word])
        return false;
    }
    return true;
  }

  #setBase(): number {
    const { client, server } = pair;
    let own = this.#seed;
    for (let word = 0; word < 4; word += 1) own = mixHash(own, client[word]!);
    let other = this.#seed;
    for (let word = 0; word < 4; word += 1) other = mixHash(other, server[word]!);
    const set = (own + (other & (this.#setsPerClient - 1))) & (this.#answerSets - 1);
    return set * answerWays * answerWords;
  }

  #hashQuestion(): number {
    const { client, server } = pair;
    let hash = mixHash(this.#seed, dnsMessage.id | (dnsMessage.questionType << 16));
    hash = mixHash(mixHash(hash, pair.ports), pair.protocol);
    for (let word = 0; word < 4; word += 1) hash = mixHash(mixHash(hash, client[word]!), server[word]!);
    for (let i = 0; i < dnsMessage.nameLength; i += 1) hash = mixHash(hash, dnsNames[i]!);
    return hash;
  }
}
