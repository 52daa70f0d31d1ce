/**
 * Decides by the kernel's counters whose packets the ring has to tell apart.
 *
 * The kernel counts every packet by what it is without what is known of its flow. What may be an attack is never more than that, so an
 * address that is far below every threshold by these counters needs no closer look: its packets cost the engine nothing. Of all others
 * the ring tells which packets belong to conversations, and from where they come; where it saw only a part of them, that part stands for
 * all (`merged-counters.ts`).
 *
 * Addresses are looked at from the quarter of a second in which they have much traffic until they had little for ninety seconds.
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
} from '#sensor/attack-counters/index.ts';
import { compileLocalScope, formatWords, type LocalRanges, type LocalScope } from '#sensor/capture/index.ts';
import { type LimitedRates, limitedRates } from './heat.ts';
import type { DetectionOrder } from './live-detector.ts';
import type { Amount } from './traffic.ts';

const watchedSeconds = 90;
/** Two readings with a second between them are at most so much more or less apart. */
const intervalErrorMs = 250;
/** Addresses with traffic that the detector has room for. */
const countedMax = 4096;
/** Part of a second's smallest limit that packets of a quarter of a second have to exceed the usual by, to be looked at at once. */
const surgePart = 0.25;

/** How the ring's part of a second counts: not at all, as it is, or as a share of what the kernel counted. */
export const Watched = { not: 0, wholly: 1, partly: 2 } as const;
/** Where it is in a row's version. */
export const watchedShift = 8;

/** Sums of a prefix: packets by kind, opened connections, bytes, bytes of UDP. */
const sumLength = kindCount + 3;

interface Watch {
  /** The second in which it began, and the last one. */
  since: number;
  until: number;
}

/** What is known of an address of the kernel. */
interface Known {
  text: string;
  isProtected: boolean;
  /** It is a server's, so what it sends is not made up. */
  isOwn: boolean;
  group: number;
  prefix: number;
  watch: Watch | null;
}

interface KnownPrefix {
  text: string;
  limits: readonly LimitedRates[];
  watch: Watch | null;
}

export interface AddressNames {
  addressOf(slot: number): readonly [number, number, number, number, number];
}

/** What else decides. */
interface Capture {
  /** True when the traffic of all addresses together may become too much. */
  isNear(received: Amount): boolean;
}

export class KernelWatch {
  readonly #names: AddressNames;
  readonly #capture: Capture;
  #order: DetectionOrder;
  #protected: LocalRanges;
  #own: LocalRanges;
  #hosts: LimitedRates[][] = [];
  #known: (Known | undefined)[] = [];
  #generation = -1;
  #prefixes: KnownPrefix[] = [];
  readonly #prefixOf = new Map<string, number>();
  #sums = new Float64Array(0);
  #everything: Watch | null = { since: 0, until: Number.POSITIVE_INFINITY };
  #senders: Watch | null = null;
  #hasChanged = true;
  #usual = { packets: 0, bytes: 0 };

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
  takeChange(): { scope: LocalScope | null } | null {
    if (!this.#hasChanged) return null;
    this.#hasChanged = false;
    if (this.#everything || this.#senders) return { scope: null };
    const prefixes = this.#prefixes.filter(({ watch }) => watch).map(({ text }) => text);
    const addresses = this.#known.flatMap((one) => (one?.watch ? [one.text] : []));
    return { scope: { prefixes, addresses } };
  }

  /** True when so much more than usual came in this part of the second (0 to 1) that it is worth a look before its end. */
  isSurge(seen: Amount, part: number): boolean {
    const least = this.#hosts
      .flat()
      .reduce((min, one) => Math.min(min, one.leastPackets), Number.POSITIVE_INFINITY);
    const leastBytes = this.#hosts
      .flat()
      .reduce((min, one) => Math.min(min, one.udpBytes, one.bytes), Number.POSITIVE_INFINITY);
    const { packets, bytes } = this.#usual;
    return (
      seen.packets > packets * part + least * surgePart || seen.bytes > bytes * part + leastBytes * surgePart
    );
  }

  /** Looks at an open second before its end: who has much traffic already is looked at from now on. */
  look(reading: KindReading, second: number): void {
    this.#judge(reading, second);
  }

  /** A second is over: decides what is looked at, and returns it as a thread does. */
  close(reading: KindReading, second: number): MemberSecond {
    const isWhole = reading.sinceMs !== null && Math.abs(reading.sinceMs - 1000) < intervalErrorMs;
    const wasEverything = this.#everything !== null && this.#everything.since < second;
    const counted = this.#judge(reading, second + 1);
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

  /** Who has much traffic is looked at. `from`: the second in which that begins. Returns how many protected addresses had traffic. */
  #judge(reading: KindReading, from: number): number {
    if (reading.generation !== this.#generation) {
      this.#generation = reading.generation;
      this.#known = [];
    }
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
      const limits = this.#hosts[known.group]!;
      const opened = openedIn(numbers, inbound, outbound);
      const isHot =
        isOver(numbers, inbound, opened, limits[Direction.inbound]!) ||
        isOver(numbers, outbound, openedIn(numbers, outbound, inbound), limits[Direction.outbound]!);
      let packets = 0;
      for (let kind = 0; kind < kindCount; kind += 1) packets += numbers[inbound + kind]!;
      received.packets += packets;
      received.bytes += numbers[inbound + Read.bytes]!;
      // A prefix has to be looked at for those of its addresses that are not looked at by themselves.
      if (isHot) known.watch = this.#began(known.watch, from);
      else if (packets > 0) this.#addTo(known.prefix, numbers, inbound, opened);
    }
    for (const [i, prefix] of this.#prefixes.entries())
      if (isSumOver(this.#sums, i * sumLength, prefix.limits[Direction.inbound]!))
        prefix.watch = this.#began(prefix.watch, from);
    const [, sent] = this.#hosts[0]!;
    if (foreign >= sent!.leastPackets || foreignBytes >= Math.min(sent!.bytes, sent!.udpBytes))
      this.#senders = this.#began(this.#senders, from);
    if (this.#capture.isNear(received) && this.#everything === null)
      this.#everything = this.#began(null, from);
    return addresses;
  }

  #addTo(prefix: number, numbers: Float64Array, at: number, opened: number): void {
    const sums = this.#sums;
    const sum = prefix * sumLength;
    for (let kind = 0; kind < kindCount; kind += 1) sums[sum + kind]! += numbers[at + kind]!;
    sums[sum + kindCount]! += opened;
    sums[sum + kindCount + 1]! += numbers[at + Read.bytes]!;
    sums[sum + kindCount + 2]! += numbers[at + Read.reflectedBytes]! + numbers[at + Read.datagramBytes]!;
  }

  #began(watch: Watch | null, from: number): Watch {
    const until = from + watchedSeconds;
    if (watch) return { since: watch.since, until };
    this.#hasChanged = true;
    return { since: from, until };
  }

  /** What had little traffic for long is not looked at any more. */
  #end(second: number): void {
    const kept = (watch: Watch | null) => {
      if (watch === null || watch.until >= second) return watch;
      this.#hasChanged = true;
      return null;
    };
    for (const one of [...this.#known, ...this.#prefixes]) if (one?.watch) one.watch = kept(one.watch);
    this.#senders = kept(this.#senders);
    if (this.#everything?.until === Number.POSITIVE_INFINITY) {
      this.#everything = null;
      this.#hasChanged = true;
    } else this.#everything = kept(this.#everything);
  }

  #learn(slot: number): Known {
    const [version, w0, w1, w2, w3] = this.#names.addressOf(slot);
    const words = Int32Array.of(w0, w1, w2, w3, 0, 0, 0, 0);
    const is = (ranges: LocalRanges) => (ranges.sides(version, words, 0) & 1) !== 0;
    const isProtected = is(this.#protected);
    const known: Known = {
      text: formatWords(version, w0, w1, w2, w3),
      isProtected,
      isOwn: is(this.#own),
      group: this.#order.book.groups.of(version, w0, w1, w2, w3),
      prefix: isProtected ? this.#prefixOfWords(version, w0, w1, w3) : -1,
      watch: null,
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
    const prefix = this.#prefixes.push({ text, limits, watch: null }) - 1;
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
    const rows = new Float64Array(count * rowMax);
    let at = 0;
    for (let i = 0; i < count; i += 1) {
      const slot = slots[i]!;
      const known = this.#known[slot]!;
      if (!known.isProtected) continue;
      const [version, w0, w1, w2, w3] = this.#names.addressOf(slot);
      rows[at] = version | (this.#stateOf(known, second) << watchedShift);
      rows[at + 1] = w0;
      rows[at + 2] = w1;
      rows[at + 3] = w2;
      rows[at + 4] = w3;
      const inbound = i * 2 * readLength;
      const outbound = inbound + readLength;
      const head = at;
      at = writeKinds(numbers, inbound, openedIn(numbers, inbound, outbound), rows, head + 5, head + 7);
      at = writeKinds(numbers, outbound, openedIn(numbers, outbound, inbound), rows, head + 6, at);
    }
    return rows.subarray(0, at);
  }

  #stateOf({ watch, prefix }: Known, second: number): number {
    const ofPrefix = this.#prefixes[prefix]!.watch;
    let since = Number.POSITIVE_INFINITY;
    for (const one of [watch, ofPrefix, this.#everything, this.#senders])
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

function isOver(numbers: Float64Array, at: number, opened: number, limits: LimitedRates): boolean {
  const bytes = numbers[at + Read.bytes]!;
  const udpBytes = numbers[at + Read.reflectedBytes]! + numbers[at + Read.datagramBytes]!;
  if (bytes >= limits.bytes || udpBytes >= limits.udpBytes || opened >= limits.opened) return true;
  let all = 0;
  for (let kind = 0; kind < kindCount; kind += 1) {
    const packets = numbers[at + kind]!;
    if (packets >= limits.packets[kind]!) return true;
    all += packets;
  }
  return all >= limits.allPackets;
}

function isSumOver(sums: Float64Array, at: number, limits: LimitedRates): boolean {
  if (sums[at + kindCount]! >= limits.opened) return true;
  if (sums[at + kindCount + 1]! >= limits.bytes || sums[at + kindCount + 2]! >= limits.udpBytes) return true;
  let all = 0;
  for (let kind = 0; kind < kindCount; kind += 1) {
    if (sums[at + kind]! >= limits.packets[kind]!) return true;
    all += sums[at + kind]!;
  }
  return all >= limits.allPackets;
}

/** Kinds to which bytes are assigned that are not kept by kind; the first with packets has them. */
const otherKinds = [
  ...[Kind.segment, Kind.twoWayDatagram, Kind.protocol, Kind.fragment, Kind.icmp, Kind.icmpAnswer],
  ...[Kind.reset, Kind.openingAnswer, Kind.opening],
];

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
  const holder = others > 0 ? otherKinds.find((kind) => numbers[from + kind]! > 0) : undefined;
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
