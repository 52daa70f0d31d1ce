/**
 * Stores which client asked for which name, and which addresses the answers gave.
 *
 * An answer counts only when the same client asked that question before (same addresses, ports, transport, id, name and
 * type), so that an attacker can not plant a name for another client. Both tables are set-associative with a few ways: an entry
 * is found or overwritten without a search. One client can displace at most 256 names, its own or those of a few other
 * clients.
 */

import { lowerCaseByte, readInt32, readUint16, readUint32 } from '#common/bytes/index.ts';
import { mixHash } from '../keyed-table.ts';

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

// Parses one DNS message: its question and, for an answer, the CNAME chain from the asked name and the addresses on it.
//
// Strict, because leniency would allow a forged name: compression pointers must point backwards, labels and names keep
// their limits, records outside the chain are ignored, and of a truncated message (TC, RFC 2181 9) no record is used.

const recordsMax = 64;
const chainMax = 16;
const nameMax = 256;
const ttlMax = 0x7fffffff;

/** Result of `readDnsMessage`; one object, overwritten by each call. Names are in `dnsNames`. */
export const dnsMessage = {
  id: 0,
  isResponse: false,
  responseCode: 0,
  questionType: 0,
  /** Index of the asked name, 0 when there is one. */
  nameLength: 0,
  /** A, AAAA and CNAME records in the answer section, on the chain or not. */
  usefulRecords: 0,
  /** Names on the chain, the asked one first: indexes into `dnsNames`. */
  chainLength: 0,
  addressCount: 0,
};

/** Names of the last message, 256 bytes each, lower case, without final dot; the asked name is the first. */
export const dnsNames = new Uint8Array((recordsMax * 2 + 1) * nameMax);
/** Lengths of these names. */
export const dnsNameLengths = new Int32Array(recordsMax * 2 + 1);
/** Indexes of the names on the chain. */
export const dnsChain = new Int32Array(chainMax);
/** Addresses on the chain: version and four words each. */
export const dnsAddresses = new Int32Array(recordsMax * 5);
/** Their TTLs in seconds, as on the wire. */
export const dnsAddressTtls = new Float64Array(recordsMax);
/** The TTLs, limited by those of the CNAME records between the asked name and the address. */
export const dnsChainTtls = new Float64Array(recordsMax);

const typeA = 1;
const typeCname = 5;
const typeAaaa = 28;

const recordTypes = new Int32Array(recordsMax);
const recordAt = new Int32Array(recordsMax);
const recordTtls = new Float64Array(recordsMax);
/** For each name on the chain: the lowest TTL of the CNAME records before it. */
const chainTtls = new Float64Array(chainMax);

/** True when the bytes are a DNS query or answer of opcode 0 with one question; the result is in `dnsMessage`. */
export function readDnsMessage(bytes: Uint8Array, from: number, end: number): boolean {
  if (end - from < 17) return false;
  const flags = readUint16(bytes, from + 2);
  if ((flags & 0x7800) !== 0 || readUint16(bytes, from + 4) !== 1) return false;
  dnsMessage.id = readUint16(bytes, from);
  dnsMessage.isResponse = (flags & 0x8000) !== 0;
  dnsMessage.responseCode = flags & 15;
  dnsMessage.usefulRecords = dnsMessage.addressCount = dnsMessage.chainLength = 0;
  const questionEnd = readName(bytes, from, from + 12, end, 0);
  if (questionEnd < 0 || questionEnd + 4 > end || readUint16(bytes, questionEnd + 2) !== 1) return false;
  dnsMessage.questionType = readUint16(bytes, questionEnd);
  dnsMessage.nameLength = dnsNameLengths[0]!;
  const isTruncated = (flags & 0x0200) !== 0;
  if (dnsMessage.isResponse && !isTruncated) {
    const count = readRecords(bytes, from, questionEnd + 4, end, readUint16(bytes, from + 6));
    if (count < 0) return false;
    followChain(bytes, count);
  }
  return true;
}

/**
 * Keeps A, AAAA and CNAME records of class IN. Owners are names 1, 3, 5, …; each CNAME target is the name after its
 * owner. Returns -1 when truncated.
 */
function readRecords(bytes: Uint8Array, from: number, start: number, end: number, declared: number): number {
  let at = start;
  let kept = 0;
  for (let i = 0; i < declared && kept < recordsMax; i += 1) {
    const fixed = readName(bytes, from, at, end, kept * 2 + 1);
    if (fixed < 0 || fixed + 10 > end) return -1;
    const type = readUint16(bytes, fixed);
    const length = readUint16(bytes, fixed + 8);
    const data = fixed + 10;
    if (data + length > end) return -1;
    at = data + length;
    if (readUint16(bytes, fixed + 2) !== 1) continue;
    const isAddress = (type === typeA && length === 4) || (type === typeAaaa && length === 16);
    const isCname = type === typeCname && readName(bytes, from, data, end, kept * 2 + 2) >= 0;
    if (!isAddress && !isCname) continue;
    recordTypes[kept] = type;
    recordAt[kept] = data;
    recordTtls[kept] = readUint32(bytes, fixed + 4);
    kept += 1;
  }
  dnsMessage.usefulRecords = kept;
  return kept;
}

/**
 * Follows the CNAME records from the asked name, in any order of the records, and collects the addresses on the chain.
 */
function followChain(bytes: Uint8Array, count: number): void {
  let current = 0;
  dnsChain[0] = 0;
  chainTtls[0] = ttlMax;
  dnsMessage.chainLength = 1;
  for (let hop = 1; hop < chainMax; hop += 1) {
    const record = findCname(current, count);
    if (record < 0) break;
    current = record * 2 + 2;
    if (chainPosition(current) >= 0) break;
    dnsChain[hop] = current;
    chainTtls[hop] = Math.min(chainTtls[hop - 1]!, lifeOf(recordTtls[record]!));
    dnsMessage.chainLength = hop + 1;
  }
  for (let record = 0; record < count; record += 1) {
    const position = recordTypes[record] === typeCname ? -1 : chainPosition(record * 2 + 1);
    if (position >= 0) addAddress(bytes, record, chainTtls[position]!);
  }
}

function findCname(owner: number, count: number): number {
  for (let record = 0; record < count; record += 1) {
    if (recordTypes[record] === typeCname && isSameName(record * 2 + 1, owner)) return record;
  }
  return -1;
}

function chainPosition(name: number): number {
  for (let i = 0; i < dnsMessage.chainLength; i += 1) if (isSameName(dnsChain[i]!, name)) return i;
  return -1;
}

/** A TTL with the top bit set means zero (RFC 2181). */
function lifeOf(ttl: number): number {
  return ttl > ttlMax ? 0 : ttl;
}

function addAddress(bytes: Uint8Array, record: number, chainTtl: number): void {
  const at = recordAt[record]!;
  const slot = dnsMessage.addressCount;
  const base = slot * 5;
  const isIpv4 = recordTypes[record] === typeA;
  dnsAddresses[base] = isIpv4 ? 4 : 6;
  for (let word = 0; word < 4; word += 1) {
    dnsAddresses[base + 1 + word] = isIpv4 ? 0 : readInt32(bytes, at + word * 4);
  }
  if (isIpv4) dnsAddresses[base + 4] = readInt32(bytes, at);
  dnsAddressTtls[slot] = recordTtls[record]!;
  dnsChainTtls[slot] = Math.min(chainTtl, lifeOf(recordTtls[record]!));
  dnsMessage.addressCount = slot + 1;
}

function isSameName(a: number, b: number): boolean {
  const length = dnsNameLengths[a]!;
  if (length !== dnsNameLengths[b]) return false;
  for (let i = 0; i < length; i += 1)
    if (dnsNames[a * nameMax + i] !== dnsNames[b * nameMax + i]) return false;
  return true;
}

/**
 * Expands the name at `at` into slot `name`. Returns the index after it, or -1 when it is malformed. Each pointer must
 * point before the previous one, so a loop ends.
 */
function readName(bytes: Uint8Array, from: number, at: number, end: number, name: number): number {
  const base = name * nameMax;
  let length = 0;
  let position = at;
  let after = -1;
  let lowest = at;
  for (;;) {
    if (position >= end) return -1;
    const size = bytes[position]!;
    if (size === 0) break;
    if (size >= 0xc0) {
      if (position + 2 > end) return -1;
      const target = from + (readUint16(bytes, position) & 0x3fff);
      if (target >= lowest) return -1;
      if (after < 0) after = position + 2;
      lowest = position = target;
      continue;
    }
    if (size > 63 || position + 1 + size > end || length + size + 1 > 254) return -1;
    if (length > 0) {
      dnsNames[base + length] = 0x2e;
      length += 1;
    }
    for (let i = 1; i <= size; i += 1) {
      dnsNames[base + length] = lowerCaseByte(bytes[position + i]!);
      length += 1;
    }
    position += 1 + size;
  }
  dnsNameLengths[name] = length;
  return after < 0 ? position + 1 : after;
}
