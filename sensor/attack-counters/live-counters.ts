/**
 * The counters of one capture thread: every second they are handed over as a whole and begin again, so that the seconds of
 * several threads can be added before they are judged.
 *
 * A thread decides by itself whose traffic it looks at more closely: slots with much traffic, until ten quiet seconds.
 */
import type { LocalScope, Packet } from '#sensor/capture/index.ts';
import { AttackCounters } from './attack-counters.ts';
import type { DetailLimits } from './detail-limits.ts';
import { Direction } from './direction.ts';
import { isNetwork } from './network-slots.ts';
import { kindCount } from './packet-kind.ts';
import { type Move, Place } from './pair-record.ts';
import { PrefixGroups } from './prefix-groups.ts';
import { ProtectedScope } from './protected-scope.ts';
import { writeRows } from './second-rows.ts';
import { Bin, binLength, type SlotTable } from './slot-table.ts';
import type { DetailSummary } from './traffic-detail.ts';

/** What the threads of a capture are asked to count. */
export interface CountingOrder {
  /** Its number; seconds carry it. */
  number: number;
  scope: LocalScope;
  /** Canonical prefixes of the addresses with limits of their own. */
  groups: readonly (readonly string[])[];
  /** Of addresses in no group, then of each group. */
  limits: readonly DetailLimits[];
}

/** Whose packets the threads tell apart; null: those of all that is protected. */
export type WatchedScope = (Pick<LocalScope, 'prefixes' | 'addresses'> & { senders: boolean }) | null;

/** One second of one thread. */
export interface MemberSecond {
  /** Unix seconds. */
  second: number;
  /** The number of the order by which all of it was counted. */
  order: number;
  /** False when the thread did not listen, or not by this order, in all of it. */
  isWhole: boolean;
  /** Packets of all addresses, and those that the kernel dropped. */
  packets: number;
  dropped: number;
  overflowed: number;
  mergedFrames: number;
  /** `second-rows.ts`. */
  hosts: Float64Array;
  prefixes: Float64Array;
  senders: Float64Array;
  details: SlotDetail[];
  /** Traffic of the second before that has turned out to be ordinary. */
  earlier: EarlierMove[];
  /**
   * Of the kernel, not of a thread. Either it counts: every address, its packets by what they are without what is known of their flows.
   * Or it leaves the second to the threads.
   */
  kernel?: 'counts' | 'leaves';
}

/** A move of a host's counters. */
export interface EarlierMove {
  version: number;
  words: readonly [number, number, number, number];
  move: Move;
}

/** What a slot stands for. */
export type SlotKind = 'host' | 'prefix' | 'sender';

export interface SlotDetail {
  kind: SlotKind;
  version: number;
  words: readonly [number, number, number, number];
  direction: number;
  summary: DetailSummary;
}

/** Prefixes are looked at from so many times a host's limits on. */
const prefixFactor = 2;
const quietSecondsMax = 10;
/** Seconds without a frame that are handed over one by one; more were not observed. */
const emptySecondsMax = 10;
/** Seconds that wait to be taken. */
const waitingMax = 64;

export class LiveCounters extends AttackCounters {
  readonly #order: number;
  /** Since which second each detail is quiet, by table, slot and direction. */
  readonly #quiet = new Map<string, number>();
  readonly #counts = new Float64Array(binLength);
  #isWhole = false;
  #isBroken = false;
  #packets = 0;
  #dropped = 0;
  #waiting: MemberSecond[] = [];
  #earlier: EarlierMove[] = [];
  /** Whose packets are counted; null: those of every protected address. */
  #watched: ProtectedScope | null = null;

  constructor({ number, scope, groups, limits }: CountingOrder) {
    super({ scope, limits, groups: new PrefixGroups(groups), bins: 1 });
    this.#order = number;
  }

  /** Counts packets of these addresses and with made-up sources from now on, of all protected ones by default. What is known of pairs stays. */
  restrict(scope: WatchedScope): void {
    this.settle();
    this.#watched = scope && new ProtectedScope(scope);
  }

  protected override isWatched(p: Packet): boolean {
    return this.#watched === null || this.#watched.mayHoldPacket(p);
  }

  protected override isFlowWatched(version: number, words: Int32Array, base: number): boolean {
    return this.#watched === null || this.#watched.mayHoldEnds(version, words, base) !== 0;
  }

  /** Packets that the kernel dropped in the open second. */
  noteDropped(packets: number): void {
    this.#dropped += packets;
  }

  /** The clock was set: neither the open second nor the next one is whole, and none lies between them. */
  noteBreak(): void {
    this.#isBroken = true;
  }

  /** The second before was handed over. */
  protected override move(one: Move): void {
    if (one.second === this.second) super.move(one);
    else if (one.place < Place.prefix) {
      const slot = one.place - Place.host;
      this.#earlier.push({ version: this.hosts.version(slot), words: this.hosts.words(slot), move: one });
    }
  }

  override turn(second: number, packets: number): void {
    this.finish();
    this.#packets = packets;
    const ended = this.second;
    if (ended > 0) {
      this.#isWhole &&= !this.#isBroken;
      this.#waiting.push(this.#handOver(ended));
      if (!this.#isBroken && second - ended <= emptySecondsMax)
        for (let one = ended + 1; one < second; one += 1) this.#waiting.push(this.#handOver(one));
      if (this.#waiting.length > waitingMax) this.#waiting.splice(0, this.#waiting.length - waitingMax);
      this.#isWhole = !this.#isBroken;
      this.#isBroken = false;
    }
    this.#packets = 0;
    super.turn(second, 0);
  }

  /** Seconds that have ended, oldest first. */
  takeSeconds(): MemberSecond[] {
    const taken = this.#waiting;
    this.#waiting = [];
    return taken;
  }

  #handOver(second: number): MemberSecond {
    if (second === this.second) this.#watchPrefixes();
    const ended: MemberSecond = {
      second,
      order: this.#order,
      isWhole: this.#isWhole,
      packets: this.#packets,
      dropped: this.#dropped,
      overflowed: this.overflowed,
      mergedFrames: this.mergedFrames,
      hosts: writeRows(this.hosts, 2, second),
      prefixes: writeRows(this.prefixes, 1, second),
      senders: writeRows(this.senders, 1, second),
      details: [
        ...this.#detailsOf('host', [Direction.inbound, Direction.outbound], second),
        ...this.#detailsOf('prefix', [Direction.inbound], second),
        ...this.#detailsOf('sender', [Direction.outbound], second),
      ],
      earlier: this.#earlier,
    };
    this.#earlier = [];
    this.overflowed = this.mergedFrames = this.#packets = this.#dropped = 0;
    this.#isWhole = !this.#isBroken;
    return ended;
  }

  /** The details of slots that have one. A detail of a slot that stays quiet is given back. */
  #detailsOf(kind: SlotKind, directions: readonly number[], second: number): SlotDetail[] {
    const details: SlotDetail[] = [];
    if (!this.hasDetails) return details;
    const table = { host: this.hosts, prefix: this.prefixes, sender: this.senders }[kind];
    for (let slot = 0; slot < table.count; slot += 1) {
      for (const direction of directions) {
        const detail = this.detailOf(table, slot, direction);
        if (!detail) continue;
        const words = table.words(slot);
        const version = table.version(slot);
        details.push({ kind, version, words, direction, summary: detail.summary() });
        const key = `${kind} ${version} ${words.join(' ')} ${direction}`;
        // A sender has the counters of one direction.
        const bin = kind === 'host' ? direction : 0;
        const isBusy =
          kind === 'prefix'
            ? this.#busyPrefixes.has(slot)
            : this.#isBusy(this.#bin(table, slot, bin, second), this.limitsOf(table, slot), direction, 1);
        if (isBusy) this.#quiet.delete(key);
        else if (second - (this.#quiet.get(key) ?? second) < quietSecondsMax)
          this.#quiet.set(key, this.#quiet.get(key) ?? second);
        else {
          this.#quiet.delete(key);
          this.unwatch(table, slot, direction);
        }
      }
    }
    return details;
  }

  readonly #busyPrefixes = new Set<number>();

  /** Looks at prefixes whose hosts have much traffic together. */
  #watchPrefixes(): void {
    const { hosts, prefixes, second } = this;
    this.#busyPrefixes.clear();
    if (hosts.activeSecond !== second && prefixes.activeSecond !== second) return;
    const busy = this.#busyKinds(second);
    if (busy.length === 0) return;
    const sums = new Map<number, Float64Array>();
    const sumOf = (prefix: number) => {
      const sum = sums.get(prefix) ?? new Float64Array(binLength);
      sums.set(prefix, sum);
      return sum;
    };
    const active = hosts.activeSecond === second ? hosts.activeCount : 0;
    for (let i = 0; i < active; i += 1) {
      const slot = hosts.active[i]!;
      const prefix = this.prefixOf(slot);
      if (prefix >= 0) addKinds(hosts, slot, second, busy, sumOf(prefix));
    }
    for (let prefix = 0; prefix < prefixes.count; prefix += 1) {
      if (isNetwork(prefixes, prefix)) continue;
      if (prefixes.lastSecond(prefix) === second) addKinds(prefixes, prefix, second, busy, sumOf(prefix));
      const sum = sums.get(prefix);
      if (!sum || !this.#isBusy(sum, this.limitsOf(prefixes, prefix), Direction.inbound, prefixFactor))
        continue;
      this.#busyPrefixes.add(prefix);
      this.watch(prefixes, prefix, Direction.inbound);
    }
  }

  /** The kinds of which all traffic of the second together would be enough for one prefix; no other one can make it busy. */
  #busyKinds(second: number): number[] {
    const total = this.#counts.fill(0);
    for (const table of [this.hosts, this.prefixes]) {
      const active = table.activeSecond === second ? table.activeCount : 0;
      for (let i = 0; i < active; i += 1) addKinds(table, table.active[i]!, second, allKinds, total);
    }
    return allKinds.filter((kind) =>
      this.limits.some(({ packets, bytes }) => {
        const packetsMin = packets[Direction.inbound]![kind]! * prefixFactor;
        return (
          total[kind]! >= packetsMin || total[Bin.bytes + kind]! >= bytes[Direction.inbound]! * prefixFactor
        );
      }),
    );
  }

  #bin(table: SlotTable, slot: number, direction: number, second: number): Float64Array {
    this.#counts.fill(0);
    table.addBin(slot, direction, second, this.#counts);
    return this.#counts;
  }

  #isBusy(counts: Float64Array, limits: DetailLimits, direction: number, factor: number): boolean {
    const packets = limits.packets[direction]!;
    const bytes = limits.bytes[direction]!;
    for (let kind = 0; kind < Bin.bytes; kind += 1) {
      if (counts[kind]! >= packets[kind]! * factor || counts[Bin.bytes + kind]! >= bytes * factor)
        return true;
    }
    return false;
  }
}

const allKinds = Array.from({ length: kindCount }, (_, kind) => kind);

/** Adds inbound packets and bytes of these kinds in the open second, in which the slot has counted. */
function addKinds(
  table: SlotTable,
  slot: number,
  second: number,
  kinds: readonly number[],
  into: Float64Array,
): void {
  const { counters } = table;
  const { low, isLow } = counters;
  const bin = table.binOf(slot, Direction.inbound, second);
  for (const kind of kinds) {
    const packets = low[bin + kind * 2]!;
    if (packets === 0) continue;
    into[kind]! += packets;
    into[Bin.bytes + kind]! += isLow ? low[bin + kind * 2 + 1]! : counters.get(bin + kind * 2 + 1);
  }
}
