/**
 * Decides by the kernel's counters whose packets the ring has to tell apart.
 *
 * The kernel counts every packet by what it is without what is known of its flow. What may be an attack is never more than that, so an
 * address that is far below every threshold by these counters needs no closer look: its packets cost the engine nothing. Of all others
 * the ring tells which packets belong to conversations, and from where they come; where it saw only a part of them, that part stands for
 * all (`merged-counters.ts`).
 *
 * Addresses and prefixes are looked at from the quarter of a second in which they have much traffic until nothing of it might have been
 * an attack for ninety seconds. Then as much as they had at the least since counts as nothing, for half an hour: a server that is always
 * busy costs no more than others, and a flood at it is seen by what it adds.
 */
import {
  Direction,
  Kind,
  type KindReading,
  kindCount,
  type MemberSecond,
  Read,
  RowBit,
  readLength,
  type WatchedScope,
} from '#sensor/attack-counters/index.ts';
import { compileLocalScope, formatWords, type LocalRanges } from '#sensor/capture/index.ts';
import { type LimitedRates, limitedRates } from './heat.ts';
import type { DetectionOrder } from './live-detector.ts';
import type { Amount } from './traffic.ts';

/** What may be no attack for so long is let go; what had much traffic is looked at again after the other time. */
const watchedSeconds = 90;
const ordinarySeconds = 1800;
/** Part of a threshold which, if it may be an attack, is not ordinary. */
const ordinaryRatio = 0.2;
/** Seconds are judged no later. */
const lateSeconds = 5;
/** Two readings with a second between them are at most so much more or less apart. */
const intervalErrorMs = 250;
/** Addresses with traffic that the detector has room for. */
const countedMax = 4096;
/** Part of a second's smallest limit that packets of a quarter of a second have to exceed the usual by, to be looked at at once. */
const surgePart = 0.25;
/** Traffic of a quarter of a second varies by as much. */
const surgeFactor = 1.1;

/** How the ring's part of a second counts: not at all, as it is, or as a share of what the kernel counted. */
export const Watched = { not: 0, wholly: 1, partly: 2 } as const;
/** Where it is in a row's version. */
export const watchedShift = 8;

/** Sums of a direction of an address, or of a prefix: packets by kind, then these. */
const Sum = {
  opened: kindCount,
  bytes: kindCount + 1,
  udpBytes: kindCount + 2,
  packets: kindCount + 3,
} as const;
const sumLength = kindCount + 4;

/** The second in which it began, and the last one of the whole capture. */
interface Watch {
  since: number;
  until: number;
}

/** An address or a prefix. */
interface Target {
  watch: Watch | null;
  /** The last second in which a part of a threshold may have been an attack. */
  loudAt: number;
  /** What was found ordinary, by direction as `sumLength` says, and until when. */
  ordinary: Float64Array | null;
  ordinaryUntil: number;
}

const newTarget = (): Target => ({ watch: null, loudAt: 0, ordinary: null, ordinaryUntil: 0 });

/** What is known of an address of the kernel. */
interface Known extends Target {
  /** Version and words. */
  address: readonly [number, number, number, number, number];
  text: string;
  isProtected: boolean;
  /** It is a server's, so what it sends is not made up. */
  isOwn: boolean;
  group: number;
  prefix: number;
}

interface KnownPrefix extends Target {
  text: string;
  limits: readonly LimitedRates[];
}

export interface AddressNames {
  addressOf(slot: number): readonly [number, number, number, number, number];
}

/** What else decides. */
interface Capture {
  /** True when the traffic of all addresses together may become too much. */
  isNear(received: Amount): boolean;
  /** How far the latest second of an address or a prefix exceeds its thresholds at the most, and which it was. */
  largestRatioOf(target: string): { ratio: number; second: number } | null;
}

export class KernelWatch {
  readonly #names: AddressNames;
  readonly #capture: Capture;
  #order: DetectionOrder;
  #protected: LocalRanges;
  #own: LocalRanges;
  #hosts: LimitedRates[][] = [];
  #known: (Known | undefined)[] = [];
  #prefixes: KnownPrefix[] = [];
  readonly #prefixOf = new Map<string, number>();
  #sums = new Float64Array(0);
  /** Of one address: inbound, then outbound. */
  readonly #ofOne = new Float64Array(2 * sumLength);
  /** Where the rows of a second are written. */
  #rowRoom = new Float64Array(0);
  #everything: Watch | null = { since: 0, until: Number.POSITIVE_INFINITY };
  #senders: Watch | null = null;
  #hasChanged = true;
  /** What all addresses had in the second before, and what is much for one. */
  #usual = { packets: 0, bytes: 0 };
  #least = { packets: 0, bytes: 0 };

  constructor(names: AddressNames, order: DetectionOrder, capture: Capture) {
    this.#names = names;
    this.#capture = capture;
    this.#order = order;
    this.#protected = this.#own = compileLocalScope(order.scope);
    this.follow(order);
  }

  /** Protects something else, or by other thresholds. */
  follow(order: DetectionOrder): void {
    this.#order = order;
    const { prefixes, addresses, owners = [] } = order.scope;
    this.#protected = compileLocalScope({ prefixes, addresses });
    const owned = owners.map(({ address }) => address);
    this.#own = compileLocalScope({ prefixes, addresses: [...new Set([...addresses, ...owned])] });
    this.#hosts = order.book.sets.map(({ host, hostLimits }) => limitedRates(host, hostLimits));
    const limits = this.#hosts.flat();
    this.#least = {
      packets: Math.min(...limits.map(({ leastPackets }) => leastPackets)),
      bytes: Math.min(...limits.map(({ leastBytes }) => leastBytes)),
    };
    this.#forget();
  }

  /** Nothing is known any more: time was set, or the counters are others. */
  #forget(): void {
    this.#known = [];
    this.#prefixes = [];
    this.#prefixOf.clear();
    this.#senders = null;
    this.#everything = { since: 0, until: Number.POSITIVE_INFINITY };
    this.#hasChanged = true;
  }

  /** Whose packets are to be told apart from now on, if that has changed; null: everyone's. */
  takeChange(): { scope: WatchedScope } | null {
    if (!this.#hasChanged) return null;
    this.#hasChanged = false;
    if (this.#everything) return { scope: null };
    const prefixes = this.#prefixes.filter(({ watch }) => watch).map(({ text }) => text);
    const addresses = this.#known.flatMap((one) => (one?.watch ? [one.text] : []));
    return { scope: { prefixes, addresses, senders: this.#senders !== null } };
  }

  /** True when so much more than usual came in this part of the second (0 to 1) that it is worth a look before its end. */
  isSurge(seen: Amount, part: number): boolean {
    const usual = part * surgeFactor;
    const { packets, bytes } = this.#least;
    return (
      seen.packets > this.#usual.packets * usual + packets * surgePart ||
      seen.bytes > this.#usual.bytes * usual + bytes * surgePart
    );
  }

  /** Looks at an open second before its end: who has much traffic already is looked at from now on. */
  look(reading: KindReading, second: number): void {
    this.#judge(reading, second, false);
  }

  /** A second is over: decides what is looked at, and returns it as a thread does. */
  close(reading: KindReading, second: number): MemberSecond {
    const isWhole = reading.sinceMs !== null && Math.abs(reading.sinceMs - 1000) < intervalErrorMs;
    const wasEverything = this.#everything !== null && this.#everything.since < second;
    const counted = this.#judge(reading, second, true);
    this.#usual = { packets: reading.packets, bytes: reading.bytes };
    const hasRoom = reading.leftOut === 0 && counted <= countedMax;
    const counts = hasRoom && isWhole;
    if (!hasRoom) this.#everything = this.#began(this.#everything, second + 1);
    if (counts) this.#end(second);
    return {
      ...{ second, order: this.#order.number, packets: 0, dropped: 0, overflowed: 0, mergedFrames: 0 },
      ...{ prefixes: none, senders: none, details: [], earlier: [] },
      isWhole: counts || wasEverything,
      hosts: counts ? this.#rows(reading, second) : none,
      kernel: counts ? 'counts' : 'leaves',
    };
  }

  /** Who has much traffic is looked at, from the next second on if this one is over. Returns how many protected addresses had traffic. */
  #judge(reading: KindReading, second: number, isClosing: boolean): number {
    const from = isClosing ? second + 1 : second;
    for (const slot of reading.vacated) this.#known[slot] = undefined;
    const { numbers, slots } = reading;
    this.#sums.fill(0);
    const received = { packets: 0, bytes: 0 };
    let [addresses, foreign, foreignBytes] = [0, reading.foreignPackets, reading.foreignBytes];
    for (let i = 0; i < reading.count; i += 1) {
      const known = this.#known[slots[i]!] ?? this.#learn(slots[i]!);
      const inbound = i * 2 * readLength;
      const outbound = inbound + readLength;
      if (!known.isProtected) {
        if (known.isOwn) continue;
        for (let kind = 0; kind < kindCount; kind += 1) foreign += numbers[outbound + kind]!;
        foreignBytes += numbers[outbound + Read.bytes]!;
        continue;
      }
      addresses += 1;
      const [into, out] = this.#hosts[known.group]!;
      const own = this.#ofOne;
      sumUp(numbers, inbound, outbound, own, 0);
      sumUp(numbers, outbound, inbound, own, sumLength);
      received.packets += own[Sum.packets]!;
      received.bytes += own[Sum.bytes]!;
      if (isClosing) this.#note(known, own, 0, second);
      const { ordinary } = known;
      const isHot = isOver(own, 0, into!, ordinary) || isOver(own, sumLength, out!, ordinary);
      if (isHot) known.watch = this.#began(known.watch, from);
      // A prefix has to be looked at for those of its addresses that are not looked at by themselves.
      if (known.watch !== null || own[Sum.packets] === 0) continue;
      const sum = known.prefix * sumLength;
      for (let i = 0; i < sumLength; i += 1)
        this.#sums[sum + i]! += Math.max(0, own[i]! - (ordinary === null ? 0 : ordinary[i]!));
    }
    for (const [i, prefix] of this.#prefixes.entries()) {
      if (isClosing) this.#note(prefix, this.#sums, i * sumLength, second);
      const isHot = isOver(this.#sums, i * sumLength, prefix.limits[Direction.inbound]!, prefix.ordinary, 0);
      if (isHot) prefix.watch = this.#began(prefix.watch, from);
    }
    const [, sent] = this.#hosts[0]!;
    if (foreign >= sent!.leastPackets || foreignBytes >= sent!.leastBytes)
      this.#senders = this.#began(this.#senders, from);
    if (this.#capture.isNear(received) && this.#everything === null)
      this.#everything = this.#began(null, from);
    return addresses;
  }

  /** Lets go what is ordinary, and keeps the least of what was. */
  #note(target: Target & { text: string }, sums: Float64Array, at: number, second: number): void {
    const { ordinary } = target;
    if (ordinary !== null) {
      for (let i = 0; i < ordinary.length; i += 1)
        if (sums[at + i]! < ordinary[i]!) ordinary[i] = sums[at + i]!;
      if (second >= target.ordinaryUntil) target.ordinary = null;
    }
    if (target.watch === null) return;
    const latest = this.#capture.largestRatioOf(target.text);
    if (latest === null || latest.ratio >= ordinaryRatio || latest.second < second - lateSeconds)
      target.loudAt = second;
    if (second - Math.max(target.watch.since, target.loudAt) < watchedSeconds) return;
    const length = 'limits' in target ? sumLength : 2 * sumLength;
    target.ordinary = sums.slice(at, at + length);
    target.ordinaryUntil = second + ordinarySeconds;
    target.watch = null;
    this.#hasChanged = true;
  }

  #began(watch: Watch | null, from: number): Watch {
    const until = from + watchedSeconds;
    if (watch) return { since: watch.since, until };
    this.#hasChanged = true;
    return { since: from, until };
  }

  /** The whole capture is not looked at any more without a reason. */
  #end(second: number): void {
    const kept = (watch: Watch | null) => {
      if (watch === null || watch.until >= second) return watch;
      this.#hasChanged = true;
      return null;
    };
    this.#senders = kept(this.#senders);
    if (this.#everything?.until === Number.POSITIVE_INFINITY) {
      this.#everything = null;
      this.#hasChanged = true;
    } else this.#everything = kept(this.#everything);
  }

  #learn(slot: number): Known {
    const address = this.#names.addressOf(slot);
    const [version, w0, w1, w2, w3] = address;
    const words = Int32Array.of(w0, w1, w2, w3, 0, 0, 0, 0);
    const is = (ranges: LocalRanges) => (ranges.sides(version, words, 0) & 1) !== 0;
    const isProtected = is(this.#protected);
    const known: Known = {
      address,
      text: formatWords(version, w0, w1, w2, w3),
      isProtected,
      isOwn: is(this.#own),
      ...newTarget(),
      group: this.#order.book.groups.of(version, w0, w1, w2, w3),
      prefix: isProtected ? this.#prefixOfWords(version, w0, w1, w3) : -1,
    };
    this.#known[slot] = known;
    return known;
  }

  #prefixOfWords(version: number, w0: number, w1: number, w3: number): number {
    const words: [number, number, number, number] =
      version === 4 ? [0, 0, 0, w3 & ~255] : [w0, w1 & ~65_535, 0, 0];
    const text = `${formatWords(version, ...words)}/${version === 4 ? 24 : 48}`;
    const found = this.#prefixOf.get(text);
    if (found !== undefined) return found;
    const { groups, sets } = this.#order.book;
    const set = sets[groups.of(version, ...words, version === 4 ? 24 : 48)]!;
    // A network of IPv6 that one customer has is judged as one address.
    const limits =
      version === 4 ? limitedRates(set.prefix, set.prefixLimits) : limitedRates(set.host, set.hostLimits);
    const prefix = this.#prefixes.push({ ...newTarget(), text, limits }) - 1;
    this.#prefixOf.set(text, prefix);
    const sums = this.#sums;
    if (this.#prefixes.length * sumLength > sums.length) {
      this.#sums = new Float64Array(Math.max(64, this.#prefixes.length * 2) * sumLength);
      this.#sums.set(sums);
    }
    return prefix;
  }

  /** The rows of `second-rows.ts`, with `Watched` above the version. */
  #rows(reading: KindReading, second: number): Float64Array {
    const { count, slots, numbers } = reading;
    if (this.#rowRoom.length < count * rowMax) this.#rowRoom = new Float64Array(2 * count * rowMax);
    const rows = this.#rowRoom;
    let at = 0;
    for (let i = 0; i < count; i += 1) {
      const slot = slots[i]!;
      const known = this.#known[slot]!;
      if (!known.isProtected) continue;
      const { address } = known;
      const state = this.#stateOf(known, second);
      rows[at] = address[0] | (state << watchedShift);
      for (let i = 1; i < 5; i += 1) rows[at + i] = address[i]!;
      const inbound = i * 2 * readLength;
      const outbound = inbound + readLength;
      const head = at;
      if (state === Watched.not && (known.ordinary ?? this.#prefixes[known.prefix]!.ordinary) !== null) {
        at = writeOrdinary(numbers, inbound, rows, head + 5, head + 7);
        at = writeOrdinary(numbers, outbound, rows, head + 6, at);
        continue;
      }
      at = writeKinds(numbers, inbound, openedIn(numbers, inbound, outbound), rows, head + 5, head + 7);
      at = writeKinds(numbers, outbound, openedIn(numbers, outbound, inbound), rows, head + 6, at);
    }
    return rows.slice(0, at);
  }

  #stateOf({ watch, prefix }: Known, second: number): number {
    const ofPrefix = this.#prefixes[prefix]!.watch;
    let since = Number.POSITIVE_INFINITY;
    for (const one of [watch, ofPrefix, this.#everything])
      if (one !== null && one.since < since) since = one.since;
    if (since === Number.POSITIVE_INFINITY) return Watched.not;
    // The threads know of it a moment later.
    return since < second - 1 ? Watched.wholly : Watched.partly;
  }
}

const none = new Float64Array(0);
const rowMax = 7 + 2 * (2 * kindCount + 1);

/** Connections that may have been opened: openings that may have been answered. */
function openedIn(numbers: Float64Array, at: number, opposite: number): number {
  return Math.min(numbers[at + Kind.opening]!, numbers[opposite + Kind.openingAnswer]!);
}

/** Writes the sums of a direction. */
function sumUp(numbers: Float64Array, at: number, opposite: number, into: Float64Array, sum: number): void {
  let packets = 0;
  for (let kind = 0; kind < kindCount; kind += 1) {
    const own = numbers[at + kind]!;
    into[sum + kind] = own;
    packets += own;
  }
  into[sum + Sum.opened] = openedIn(numbers, at, opposite);
  into[sum + Sum.bytes] = numbers[at + Read.bytes]!;
  into[sum + Sum.udpBytes] = numbers[at + Read.reflectedBytes]! + numbers[at + Read.datagramBytes]!;
  into[sum + Sum.packets] = packets;
}

/** True when sums reach a limit, without what is ordinary of them. */
function isOver(
  sums: Float64Array,
  at: number,
  limits: LimitedRates,
  ordinary: Float64Array | null,
  ordinaryAt = at,
): boolean {
  if (sums[at + Sum.packets]! < limits.leastPackets && sums[at + Sum.bytes]! < limits.leastBytes)
    return false;
  const over = (i: number) => sums[at + i]! - (ordinary === null ? 0 : ordinary[ordinaryAt + i]!);
  if (over(Sum.packets) >= limits.allPackets || over(Sum.bytes) >= limits.bytes) return true;
  if (over(Sum.udpBytes) >= limits.udpBytes || over(Sum.opened) >= limits.opened) return true;
  for (let kind = 0; kind < kindCount; kind += 1) if (over(kind) >= limits.packets[kind]!) return true;
  return false;
}

/** Kinds to which bytes are assigned that are not kept by kind; the first with packets has them. */
const otherKinds = [
  ...[Kind.segment, Kind.twoWayDatagram, Kind.protocol, Kind.fragment, Kind.icmp, Kind.icmpAnswer],
  ...[Kind.reset, Kind.openingAnswer, Kind.opening],
];

function holderOf(numbers: Float64Array, from: number): number {
  for (const kind of otherKinds) if (numbers[from + kind]! > 0) return kind;
  return -1;
}

/** Writes a direction of what was found ordinary: all of it as part of conversations. */
function writeOrdinary(
  numbers: Float64Array,
  from: number,
  rows: Float64Array,
  bitsAt: number,
  first: number,
) {
  let packets = 0;
  for (let kind = 0; kind < kindCount; kind += 1) packets += numbers[from + kind]!;
  rows[bitsAt] = packets === 0 ? 0 : 1 << Kind.twoWayDatagram;
  if (packets === 0) return first;
  rows[first] = packets;
  rows[first + 1] = numbers[from + Read.bytes]!;
  return first + 2;
}

/** Writes one direction of a row from `first` on, and its bits. Returns the position after it. */
function writeKinds(
  numbers: Float64Array,
  from: number,
  opened: number,
  rows: Float64Array,
  bitsAt: number,
  first: number,
): number {
  let bits = 0;
  let at = first;
  let others =
    numbers[from + Read.bytes]! - numbers[from + Read.reflectedBytes]! - numbers[from + Read.datagramBytes]!;
  const holder = others > 0 ? holderOf(numbers, from) : -1;
  for (let kind = 0; kind < kindCount; kind += 1) {
    const packets = numbers[from + kind]!;
    if (packets === 0) continue;
    bits |= 1 << kind;
    rows[at] = packets;
    if (kind === Kind.reflection) rows[at + 1] = numbers[from + Read.reflectedBytes]!;
    else if (kind === Kind.datagram) rows[at + 1] = numbers[from + Read.datagramBytes]!;
    else if (kind === holder) {
      rows[at + 1] = others;
      others = 0;
    } else rows[at + 1] = 0;
    at += 2;
  }
  if (opened > 0) {
    bits |= RowBit.opened;
    rows[at++] = opened;
  }
  rows[bitsAt] = bits;
  return at;
}
