/**
 * Tells pairs of addresses that converse from one-way traffic: what an established pair carries is ordinary.
 *
 * A pair is two addresses and an IP protocol. It is established when each end has sent payload and the first one sent again
 * after the answer, in a later second: the third leg. Ports have no influence, so tunnels with source ports of each direction's own,
 * fragments and ESP converse like everything else. A spoofed source never makes the third leg; refusals (TCP resets, ICMP errors)
 * are no leg.
 *
 * Pairs begin with a packet of a protected address, or of a flow whose other end has sent. So an inbound flood from random sources costs
 * one look-up for each packet and no room. The table is a fixed set of buckets of eight: in a full one, one-way pairs make room first,
 * then those that were only answered, the least recently used of each.
 *
 * What a pair carried in the second in which it is established, and in the second before, is moved to the two-way kinds when the second
 * ends. From then on its packets count as two-way at once, and what is too much of them is moved back.
 */
import { mixHash, Protocol } from '#sensor/capture/index.ts';
import { Direction } from './direction.ts';
import { Entry, entryWords, kindShift, Noted, type PacketBatch, wideWords } from './packet-batch.ts';
import { Kind, plainKindOf } from './packet-kind.ts';
import { PairCounts } from './pair-counts.ts';
import {
  Before,
  establishedKindOf,
  hasSaid,
  isSourceLower,
  type Move,
  Place,
  plainOf,
  Role,
  recordWords,
  roleOf,
  State,
  Sum,
  sumMax,
  twoWayKinds,
  Word,
} from './pair-record.ts';
import { WordFilter } from './protected-scope.ts';

/** The hosts whose open connections are looked up, and since when: only while they have much traffic. */
class LookedUpHosts {
  /** By host: the last second in which its connections were looked up, and since when without a break. */
  readonly #last = new Int32Array(Place.prefix).fill(-1);
  readonly #since = new Int32Array(Place.prefix);

  note(place: number, second: number): void {
    const slot = place - Place.host;
    if (slot < 0 || place >= Place.prefix || this.#last[slot] === second) return;
    if (this.#last[slot] !== second - 1) this.#since[slot] = second;
    this.#last[slot] = second;
  }

  /** True when an end of a pair was looked up in the second before too: of the first one a part may be missing. */
  isKnownWhole(places: number, second: number): boolean {
    for (const place of [places >>> 16, places & 0xffff]) {
      const slot = place - Place.host;
      if (this.#last[slot] === second && this.#since[slot]! < second) return true;
    }
    return false;
  }
}

export const pairsMax = 16_384;
const ways = 8;
const bucketMask = pairsMax / ways - 1;

/** A side is ordinary without a limit while the other end sends so many packets for each of its own. */
const answeredMin = 0.003;
/** Otherwise up to this multiple of its mean of the last minute, or up to the floor, in packets and bytes a second; with more, none of it. */
const meanFactor = 8;
const meanSeconds = 60;
const floorPackets = 8;
const floorBytes = 8192;
const pingsMax = 32;
/** Seconds since the last answer after which a remote address only sends; TCP acknowledges at once. */
const silentSecondsMax = 8;
const unacknowledgedSecondsMax = 2;

export class PairTable {
  /** Pairs that had to make room, of those that had not and had been answered; and established ones. */
  readonly evicted = { unestablished: 0, established: 0 };
  /** Those with traffic in the second that was closed last. */
  readonly counts = new PairCounts();
  readonly #batch: PacketBatch;
  readonly #move: (one: Move) => void;
  readonly #key: number;
  /** Two words that identify each record; all ids of a bucket are in one line of the cache. */
  readonly #ids = new Int32Array(pairsMax * 2);
  readonly #records = new Int32Array(pairsMax * recordWords);
  readonly #means = new Float32Array(this.#records.buffer);
  /** Records with packets in the open second. */
  readonly #active = new Int32Array(pairsMax);
  #activeCount = 0;
  readonly #lookedUp = new LookedUpHosts();
  /** Last words of the protected addresses that have had a pair. */
  readonly #havePairs = new WordFilter();
  /** One more than the second, which may be zero. */
  #second = 1;

  constructor(batch: PacketBatch, key: number, move: (one: Move) => void) {
    this.#batch = batch;
    this.#key = key;
    this.#move = move;
  }

  /** Packets belong to this second from now on. */
  open(second: number): void {
    this.#second = second + 1;
    this.counts.clear();
  }

  /**
   * Adds the waiting packet at `at` to its pair. Returns the kind by which it counts. `source` and `target`: where its ends count,
   * by `Place`. `isBusy`: the protected end has much traffic. Only then it matters whether segments of open connections are answered.
   */
  note(at: number, source: number, target: number, isBusy: boolean): number {
    const { words } = this.#batch;
    const meta = words[at + Entry.meta]!;
    const kind = (meta >> kindShift) & 15;
    const role = roleOf[kind]!;
    if (role === Role.none || ((meta >> Noted.refusal) & 1) === 1) return kind;
    if (kind === Kind.twoWaySegment) {
      // The segment that completes a handshake needs no answer.
      const isOpening = ((meta >> Noted.opened) & 1) === 1 && words[at + Entry.packets] === 1;
      if (!isBusy || isOpening) return kind;
      this.#lookedUp.note(source, this.#second);
      this.#lookedUp.note(target, this.#second);
    }
    const isTwoWay = ((twoWayKinds >> kind) & 1) === 1;
    const [from, to] = [words[at]!, words[at + Entry.target]!];
    // A receiver without any pair needs no look-up: most of those of a flood over a prefix.
    if (source === Place.none && !isTwoWay && !this.#havePairs.has(to)) return kind;
    const isIpv6 = ((meta >> 8) & 0xff) !== 4;
    const protocol = meta & 0xff;
    let isLower: boolean;
    let id0: number;
    let id1: number;
    if (isIpv6) {
      const { wide } = this.#batch;
      const first = (at / entryWords) * wideWords;
      isLower = isSourceLower(wide, first);
      const lower = isLower ? first : first + 4;
      const higher = isLower ? first + 4 : first;
      id0 = mixHash(this.#key, protocol);
      id1 = ~this.#key;
      for (let word = 0; word < 4; word += 1) {
        id0 = mixHash(mixHash(id0, wide[lower + word]!), wide[higher + word]!);
        id1 = mixHash(mixHash(id1, wide[higher + word]!), wide[lower + word]!);
      }
    } else {
      isLower = from < to;
      id0 = isLower ? from : to;
      id1 = (isLower ? to : from) ^ Math.imul(protocol, 0x9e3779b1);
    }
    const bucket = mixHash(mixHash(this.#key, id0), id1) & bucketMask;
    const ids = this.#ids;
    let record = -1;
    for (let one = bucket * ways; one < (bucket + 1) * ways; one += 1) {
      if (ids[one * 2] === id0 && ids[one * 2 + 1] === id1) record = one;
    }
    const records = this.#records;
    if (record < 0) {
      const isAnswer = isTwoWay || (kind === Kind.icmpAnswer && source !== Place.none);
      if (source === Place.none && !isAnswer) return kind;
      if (source !== Place.none) this.#havePairs.add(from);
      if (target !== Place.none) this.#havePairs.add(to);
      record = this.#begin(bucket);
      ids[record * 2] = id0;
      ids[record * 2 + 1] = id1;
      // The end that is answered was the first.
      const first = isLower === isAnswer ? 1 : 0;
      records[record * recordWords] =
        protocol | (isIpv6 ? State.isIpv6 : 0) | (first === 0 ? 0 : State.firstIsHigher);
      if (isAnswer && source !== Place.none) records[record * recordWords + Word.said + first] = this.#second;
    }
    const base = record * recordWords;
    if (records[base + Word.open] !== this.#second) this.#turn(record);
    records[base + Word.places] = isLower ? (source << 16) | target : (target << 16) | source;
    const sum = base + Word.sums + (isLower ? 0 : Sum.side);
    const packets = words[at + Entry.packets]!;
    const bytes = words[at + Entry.bytes]!;
    this.#add(sum, packets, bytes);
    if (role === Role.apart) {
      this.#add(sum + Sum.apart, packets, bytes);
      return kind;
    }
    if (role === Role.fragment) this.#add(sum + Sum.fragments, packets, bytes);
    // How many pings are ordinary is known when their second ends.
    if ((records[base]! & State.isEstablished) === 0 || kind === Kind.icmp) return kind;
    return establishedKindOf(kind);
  }

  /** The open second is over: moves what was counted by another kind than it is. `isCounting`: `counts` is wanted. */
  close(isCounting = false): void {
    for (let i = 0; i < this.#activeCount; i += 1) {
      const base = this.#active[i]! * recordWords;
      this.#close(base);
      if (isCounting) this.counts.note(this.#records, base);
    }
    this.#activeCount = 0;
  }

  #add(at: number, packets: number, bytes: number): void {
    const records = this.#records;
    records[at]! += packets;
    records[at + 1] = Math.min(sumMax, records[at + 1]! + bytes);
  }

  /** Finds room for a new pair in a bucket. */
  #begin(bucket: number): number {
    const records = this.#records;
    let chosen = -1;
    let rank = Number.POSITIVE_INFINITY;
    for (let one = bucket * ways; one < (bucket + 1) * ways; one += 1) {
      const base = one * recordWords;
      const open = records[base + Word.open]!;
      const isEstablished = (records[base]! & State.isEstablished) !== 0;
      const kept = isEstablished ? 2 : records[base + Word.answered]! > 0 ? 1 : 0;
      // Seconds have 31 bits.
      const own = open === 0 ? -1 : kept * 2 ** 31 + open;
      if (own >= rank) continue;
      rank = own;
      chosen = one;
    }
    const base = chosen * recordWords;
    if (rank >= 2 * 2 ** 31) this.evicted.established += 1;
    else if (rank >= 0) this.evicted.unestablished += 1;
    const open = records[base + Word.open]!;
    // Loops over so few words take less than calls of `fill`.
    for (let word = base; word < base + recordWords; word += 1) records[word] = 0;
    records[base + Word.born] = this.#second;
    // One that was active in this second is among the active ones already.
    if (open === this.#second) records[base + Word.open] = open;
    return chosen;
  }

  /** The pair has its first packet in the open second. */
  #turn(record: number): void {
    const records = this.#records;
    const base = record * recordWords;
    const before = records[base + Word.open]!;
    const idle = this.#second - before - 1;
    records[base + Word.open] = this.#second;
    this.#active[this.#activeCount] = record;
    this.#activeCount += 1;
    if (before === 0) return;
    if ((records[base]! & State.isEstablished) === 0) this.#keepBefore(base, idle === 0);
    else if (idle > 0) {
      const kept = Math.max(0, 1 - idle / meanSeconds);
      for (let mean = 0; mean < 4; mean += 1) this.#means[base + Word.before + mean]! *= kept;
    }
    for (let word = base + Word.sums; word < base + Word.before; word += 1) records[word] = 0;
  }

  #keepBefore(base: number, isNext: boolean): void {
    const records = this.#records;
    for (let side = 0; side < 2; side += 1) {
      const before = base + Word.before + side * Before.side;
      const sum = base + Word.sums + side * Sum.side;
      records[before] = isNext ? plainOf(records, sum, 0) : 0;
      records[before + 1] = isNext ? plainOf(records, sum, 1) : 0;
      records[before + 2] = isNext ? records[sum + Sum.fragments]! : 0;
      records[before + 3] = isNext ? records[sum + Sum.fragmentBytes]! : 0;
    }
  }

  #close(base: number): void {
    const records = this.#records;
    for (let side = 0; side < 2; side += 1)
      if (hasSaid(records, base, side)) records[base + Word.said + side] = this.#second;
    const wasEstablished = (records[base]! & State.isEstablished) !== 0;
    const isNew = !wasEstablished && this.#isThirdLeg(base);
    const protocol = records[base]! & 0xff;
    if (isNew) this.#establish(base);
    else if (protocol === Protocol.icmp || protocol === Protocol.icmp6) {
      if (wasEstablished) this.#allowPings(base);
    } else if (
      protocol === Protocol.tcp
        ? this.#lookedUp.isKnownWhole(records[base + Word.places]!, this.#second)
        : wasEstablished
    )
      for (let side = 0; side < 2; side += 1) this.#limit(base, side, wasEstablished);
  }

  #isThirdLeg(base: number): boolean {
    const records = this.#records;
    const first = (records[base]! & State.firstIsHigher) === 0 ? 0 : 1;
    const answered = records[base + Word.answered]!;
    const now = this.#second;
    if (answered > 0) return now > answered && records[base + Word.said + first] === now;
    if (records[base + Word.said + first]! > 0 && records[base + Word.said + 1 - first] === now)
      records[base + Word.answered] = now;
    return false;
  }

  #establish(base: number): void {
    const records = this.#records;
    records[base]! |= State.isEstablished;
    const isPing = plainKindOf(records[base]! & 0xff) === Kind.icmp;
    for (let side = 0; side < 2; side += 1) {
      const sum = base + Word.sums + side * Sum.side;
      const before = records.subarray(base + Word.before + side * Before.side).subarray(0, Before.side);
      if (isPing) {
        const part = Math.min(1, pingsMax / Math.max(1, before[0]!));
        this.#shift(base, side, 1, true, [before[0]! * part, before[1]! * part, 0, 0]);
        continue;
      }
      const now = [
        plainOf(records, sum, 0),
        plainOf(records, sum, 1),
        ...records.subarray(sum + Sum.fragments, sum + Sum.apart),
      ];
      this.#shift(base, side, 0, true, now);
      this.#shift(base, side, 1, true, before);
    }
    for (let side = 0; side < 2; side += 1)
      for (let unit = 0; unit < 2; unit += 1)
        this.#means[base + Word.before + side * 2 + unit] =
          records[base + Word.sums + side * Sum.side + unit]!;
    if (isPing) this.#allowPings(base);
  }

  /** A host answers every ping by itself, so they are ordinary up to a number only; and so are as many answers. */
  #allowPings(base: number): void {
    const records = this.#records;
    for (let side = 0; side < 2; side += 1) {
      const sum = base + Word.sums + side * Sum.side;
      const packets = plainOf(records, sum, 0);
      if (packets === 0) continue;
      const allowed = Math.min(packets, pingsMax);
      this.#shift(base, side, 0, true, [allowed, (plainOf(records, sum, 1) * allowed) / packets, 0, 0]);
      const other = base + Word.sums + (1 - side) * Sum.side;
      const answers = Math.min(allowed, records[other + Sum.apart]!);
      const bytes = (records[other + Sum.apartBytes]! * answers) / Math.max(1, records[other + Sum.apart]!);
      this.#shift(base, 1 - side, 0, true, [answers, bytes, 0, 0], Kind.icmpAnswer);
    }
  }

  /** Moves back what one side sent, where it is too much to be ordinary. */
  #limit(base: number, side: number, isEstablished: boolean): void {
    const records = this.#records;
    const sum = base + Word.sums + side * Sum.side;
    const packets = records[sum]!;
    if (packets === 0) return;
    if (this.#isOrdinary(base, side, isEstablished)) {
      if (isEstablished) this.#learn(base, side);
      return;
    }
    // Of a connection that is open, segments count as two-way by themselves.
    const isTcp = (records[base]! & 0xff) === Protocol.tcp;
    const plain = (unit: number) =>
      (isEstablished ? plainOf(records, sum, unit) : 0) + (isTcp ? records[sum + Sum.apart + unit]! : 0);
    const fragment = (unit: number) => (isEstablished ? records[sum + Sum.fragments + unit]! : 0);
    this.#shift(base, side, 0, false, [plain(0), plain(1), fragment(0), fragment(1)]);
  }

  /** True when what a side sent in the open second is ordinary. */
  #isOrdinary(base: number, side: number, isEstablished: boolean): boolean {
    const records = this.#records;
    const sum = base + Word.sums + side * Sum.side;
    const packets = records[sum]!;
    const bytes = records[sum + Sum.bytes]!;
    if (records[base + Word.sums + (1 - side) * Sum.side]! >= packets * answeredMin) return true;
    const silent = this.#second - records[base + Word.said + 1 - side]!;
    const isTcp = (records[base]! & 0xff) === Protocol.tcp;
    const places = records[base + Word.places]!;
    const isRemote = (side === 0 ? places >>> 16 : places & 0xffff) === Place.none;
    const isHeard = isTcp ? silent < unacknowledgedSecondsMax : !isRemote || silent <= silentSecondsMax;
    if (isHeard && (isTcp || isEstablished)) {
      const mean = base + Word.before + side * 2;
      const packetsMax = Math.max(floorPackets, isEstablished ? this.#means[mean]! * meanFactor : 0);
      const bytesMax = Math.max(floorBytes, isEstablished ? this.#means[mean + 1]! * meanFactor : 0);
      return packets <= packetsMax && bytes <= bytesMax;
    }
    return false;
  }

  /** What is too much is not learnt, and of a sudden rise little, so that a flood never becomes usual. */
  #learn(base: number, side: number): void {
    const seconds = Math.min(meanSeconds, this.#second - this.#records[base + Word.born]! + 1);
    for (let unit = 0; unit < 2; unit += 1) {
      const mean = base + Word.before + side * 2 + unit;
      const value = this.#records[base + Word.sums + side * Sum.side + unit]!;
      const most = 2 * this.#means[mean]! + (unit === 0 ? floorPackets : floorBytes) / meanFactor;
      this.#means[mean]! += (Math.min(value, most) - this.#means[mean]!) / seconds;
    }
  }

  /**
   * Moves what a side sent to two-way kinds or back, at both ends. `ago`: seconds before the open one. `counts`: packets and bytes that
   * are whole, then those of fragments.
   */
  #shift(
    base: number,
    side: number,
    ago: number,
    isToTwoWay: boolean,
    counts: ArrayLike<number>,
    plainKind = plainKindOf(this.#records[base]! & 0xff),
  ): void {
    const places = this.#records[base + Word.places]!;
    const second = this.#second - 1 - ago;
    for (let direction = 0; direction < 2; direction += 1) {
      const isLower = (direction === Direction.outbound) === (side === 0);
      const place = isLower ? places >>> 16 : places & 0xffff;
      if (place === Place.none || place === Place.uncounted) continue;
      for (let part = 0; part < 2; part += 1) {
        const packets = Math.round(counts[part * 2]!);
        const bytes = Math.round(counts[part * 2 + 1]!);
        if (packets === 0) continue;
        const kind = part === 0 ? plainKind : Kind.fragment;
        const twoWay = establishedKindOf(kind);
        const [from, to] = isToTwoWay ? [kind, twoWay] : [twoWay, kind];
        this.#move({ place, direction, second, from, to, packets, bytes });
      }
    }
  }
}
