/**
 * The filter of one uplink: attaches its programs, finds them there, writes its rules and reads what they did.
 *
 * XDP, native where the driver can, held by a link that is pinned: it stays until the pin goes. It passes everything ten seconds after the
 * last `beat`, so a sensor that dies leaves no filter behind; which pairs of addresses converse is learned on.
 */
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import koffi from 'koffi';
import { CodedError } from '#common/errors/index.ts';
import { filterRulesOfAddress } from '#contracts/sensor-api/filter.ts';
import type { DroppedCounters } from '#contracts/sensor-api/telemetry.ts';
import { findFiltered, hang, type Interface, isHung, isKnown, takeOff, unhang, unpin } from './attachment.ts';
import { keptMinutes, steadyOffset } from './counter.ts';
import {
  countBytes,
  droppedBytes,
  type FilterCounts,
  type FilterMap,
  type FilterRule,
  filterAddress,
  filterAddressBytes,
  filteredAddress,
  filterMaps,
  filterSettingsBytes,
  lessCounts,
  noCounts,
  rulesValue,
  slots,
  sumCounts,
  sumDropped,
} from './filter-layout.ts';
import { closeAll, kernelError, libbpf, must, openObject } from './libbpf.ts';

const objectFile = fileURLToPath(new URL('./filter.bpf.o', import.meta.url));
const what = 'the filter';
/** Type of a link of XDP, and the flag of its generic mode. */
const xdpLink = 37;
const genericMode = 2;
const linkInfoBytes = 64;
const first = Buffer.alloc(4);
const isThere = -koffi.os.errno.EEXIST!;
const taken = new Set([-koffi.os.errno.EBUSY!, isThere]);

export interface LoadedFilter {
  filter: KernelFilter;
  maps: Record<FilterMap, number>;
  programs: { filter: number; learn: number };
  /** The maps are closed by the filter; the programs are gone unless they are attached. */
  unload(): void;
}

/**
 * Loads the programs; `pinFolder`: the maps are taken from there, or pinned there. Throws a `CodedError` (`kernel.…`). `file`: another
 * object, for tests.
 */
export function loadFilterPrograms(pinFolder: string | null, file = objectFile): LoadedFilter {
  const bpf = libbpf();
  const object = openObject(readFileSync(file), what);
  try {
    const findMap = (name: FilterMap): unknown => bpf.findMap(object.handle, name);
    if (pinFolder !== null)
      for (const name of filterMaps)
        must(bpf.setPinPath(findMap(name), `${pinFolder}/${name}`), `pin ${name}`);
    object.load();
    const fds = filterMaps.map((name) => [name, bpf.mapFd(findMap(name)) as number]);
    const maps = Object.fromEntries(fds) as Record<FilterMap, number>;
    const fdOf = (name: string): number => bpf.programFd(bpf.findProgram(object.handle, name));
    return {
      filter: new KernelFilter(maps),
      maps,
      programs: { filter: fdOf('filter'), learn: fdOf('learn') },
      unload: () => object.close(),
    };
  } catch (error) {
    object.close();
    throw error;
  }
}

/** Attaches the filter to this interface, in place of one that is there. Needs CAP_BPF and CAP_NET_ADMIN. */
export function attachFilter(name: string): void {
  const one = findFiltered(name);
  if (!one.isEthernet)
    throw new CodedError('kernel.link_type', `The frames of interface ${name} are not Ethernet.`);
  // Pins without programs are of a filter that was taken off.
  if (!isAttached(one)) unpin(one);
  const { filter, programs, unload } = loadFilterPrograms(one.pinFolder);
  try {
    filter.beat();
    // Before a counting program that is there: what is dropped on the way out is not counted as sent.
    takeOff(one);
    hang(one, programs.learn);
    hold(one, programs.filter);
  } catch (error) {
    detachFilter(name);
    throw error;
  } finally {
    unload();
  }
}

/** Takes the filter off an interface. True where there was one. */
export function detachFilter(name: string): boolean {
  const one = findFiltered(name);
  const wasThere = existsSync(linkPin(one));
  const wasHung = unhang(one);
  unpin(one);
  return wasThere || wasHung;
}

/** The same for these interfaces, or for every one of this network namespace; returns the names of those that had one. */
export function removeFilters(names: readonly string[] | null): string[] {
  return (names ?? readdirSync('/sys/class/net')).filter((name) => {
    if (!isKnown(name)) return false;
    const isRemoved = detachFilter(name);
    rmSync(findFiltered(name).pinFolder, { recursive: true, force: true });
    return isRemoved;
  });
}

export interface AttachedFilter {
  filter: KernelFilter;
  /** False once the interface is gone, or the filter was taken off. */
  isAttached(): boolean;
}

/** The filter that `attachFilter` has left at an interface. Throws a `CodedError` where there is none. */
export function openFilter(name: string): AttachedFilter {
  const one = findFiltered(name);
  if (!isAttached(one)) throw new CodedError('kernel.not_attached', `No filter is attached to ${name}.`);
  const open = (map: string) =>
    must(libbpf().openPinned(`${one.pinFolder}/${map}`), `open the filter of ${name}`);
  const maps = filterMaps.map((map) => [map, open(map)]);
  return {
    filter: new KernelFilter(Object.fromEntries(maps) as Record<FilterMap, number>),
    isAttached: () => isAttached(one),
  };
}

const linkPin = ({ pinFolder }: Interface) => `${pinFolder}/link`;

/** Puts the program at the hook of XDP, and keeps it there. */
function hold(one: Interface, program: number): void {
  const bpf = libbpf();
  if (existsSync(linkPin(one))) {
    const link = must(bpf.openPinned(linkPin(one)), 'open the filter');
    must(bpf.linkUpdate(link, program, null), 'replace the filter');
    closeAll([link]);
    return;
  }
  const options = Buffer.alloc(16);
  options.writeBigUInt64LE(16n, 0);
  let link: number = bpf.linkCreate(program, one.index, xdpLink, options);
  if (link < 0 && !taken.has(link)) {
    // The driver refuses: its queues or its MTU don't fit.
    options.writeUInt32LE(genericMode, 8);
    link = bpf.linkCreate(program, one.index, xdpLink, options);
  }
  if (taken.has(link))
    throw new CodedError('kernel.hook_taken', `Interface ${one.name} has another XDP program.`);
  must(link, `attach the filter to ${one.name}`);
  const pinned: number = bpf.pin(link, linkPin(one));
  closeAll([link]);
  must(pinned, 'keep the filter');
}

function isAttached(one: Interface): boolean {
  if (!existsSync(linkPin(one)) || !isHung(one)) return false;
  const link: number = libbpf().openPinned(linkPin(one));
  if (link < 0) throw kernelError(`open the filter of ${one.name}`, link);
  const [info, length] = [Buffer.alloc(linkInfoBytes), Buffer.from([linkInfoBytes, 0, 0, 0])];
  const result: number = libbpf().mapInfo(link, info, length);
  closeAll([link]);
  return result === 0 && info.readUInt32LE(16) === one.index;
}

/** The rules of an uplink's filter. */
export class KernelFilter {
  readonly #maps: Record<FilterMap, number>;
  readonly #bpf = libbpf();
  readonly #cpus = libbpf().cpus() as number;
  /** The place of each rule among the counters. */
  #slots = new Map<string, { rule: FilterRule; slot: number; taken: FilterCounts }>();

  constructor(maps: Record<FilterMap, number>) {
    this.#maps = maps;
  }

  /** The filter works for ten seconds after the last call. */
  beat(atNs = process.hrtime.bigint()): void {
    const value = this.#settings();
    value.writeBigInt64LE(atNs, 0);
    if (value.readBigInt64LE(8) === 0n) value.writeBigInt64LE(atNs, 8);
    value.writeBigInt64LE(steadyOffset(value.readBigInt64LE(16)), 16);
    must(this.#bpf.update(this.#maps.settings, first, value, 0n), 'give the filter a sign of life');
  }

  /** Since when it learns who converses, unix milliseconds. */
  learnsSinceMs(): number {
    const sinceNs = this.#settings().readBigInt64LE(8);
    return Date.now() - Number((process.hrtime.bigint() - sinceNs) / 1_000_000n);
  }

  #settings(): Buffer {
    const value = Buffer.alloc(filterSettingsBytes);
    must(this.#bpf.lookup(this.#maps.settings, first, value), 'read the settings of the filter');
    return value;
  }

  /** Works by these rules from now on; one that stays keeps its counters. Returns the rules that found no room. */
  setRules(rules: readonly FilterRule[]): FilterRule[] {
    const byTarget = Map.groupBy(rules, ({ target }) => target);
    const counted = this.#countTargets([...byTarget.keys()]);
    const found = [...byTarget].flatMap(([target, list]) =>
      counted.has(target) ? list.slice(0, filterRulesOfAddress) : [],
    );
    const kept = found.slice(0, slots);
    const keys = kept.map(keyOf);
    const before = this.#slots;
    const used = new Set(keys.flatMap((key) => before.get(key)?.slot ?? []));
    const free = Array.from({ length: slots }, (_, slot) => slot).filter((slot) => !used.has(slot));
    this.#slots = new Map(
      kept.map((rule, i) => {
        const { slot, taken } = before.get(keys[i]!) ?? { slot: this.#clear(free.shift()!), taken: noCounts };
        return [keys[i]!, { rule, slot, taken }];
      }),
    );
    const offsetNs = process.hrtime.bigint() - BigInt(Math.round(Date.now())) * 1_000_000n;
    const toMonotonic = (ms: number) => {
      const ns = BigInt(Math.round(ms)) * 1_000_000n + offsetNs;
      return ns > 0n ? ns : 0n;
    };
    const values = Map.groupBy(this.#slots.values(), ({ rule }) => rule.target);
    for (const target of this.#keysOf('rules'))
      if (![...values.keys()].some((one) => filterAddress(one).equals(target)))
        this.#bpf.remove(this.#maps.rules, target);
    for (const [target, own] of values) {
      const value = rulesValue(own, toMonotonic);
      must(this.#bpf.update(this.#maps.rules, filterAddress(target), value, 0n), 'add a rule to the filter');
    }
    return rules.filter((rule) => !kept.includes(rule));
  }

  /** What each rule did since the last call. */
  takeCounts(): { rule: FilterRule; counts: FilterCounts }[] {
    return [...this.#slots.values()].map((entry) => {
      const values = Buffer.alloc(countBytes * this.#cpus);
      const key = slotKey(entry.slot);
      must(this.#bpf.lookup(this.#maps.counts, key, values), 'read the counters of the filter');
      const before = entry.taken;
      entry.taken = sumCounts(values);
      return { rule: entry.rule, counts: lessCounts(entry.taken, before) };
    });
  }

  /** What was dropped in a minute (seconds since 1970) of the last four, by address. */
  readDropped(minute: number): Map<string, DroppedCounters> {
    const values = Buffer.alloc(droppedBytes * this.#cpus);
    const found = new Map<string, DroppedCounters>();
    for (const key of this.#keysOf('dropped')) {
      must(this.#bpf.lookup(this.#maps.dropped, key, values), 'read what the filter dropped');
      const dropped = sumDropped(values, minute);
      if (dropped) found.set(filteredAddress(key), dropped);
    }
    return found;
  }

  close(): void {
    closeAll(Object.values(this.#maps));
  }

  /** Makes counters for addresses, in place of those that are idle where there is no room; returns the addresses that have some. */
  #countTargets(targets: readonly string[]): Set<string> {
    const none = Buffer.alloc(droppedBytes * this.#cpus);
    // Those that are there stay.
    const isCounted = (target: string) =>
      [0, isThere].includes(this.#bpf.update(this.#maps.dropped, filterAddress(target), none, 1n) as number);
    if (targets.every(isCounted)) return new Set(targets);
    const values = Buffer.alloc(droppedBytes * this.#cpus);
    const minutes = keptMinutes(Math.floor(Date.now() / 60_000) * 60);
    for (const key of this.#keysOf('dropped')) {
      if (targets.includes(filteredAddress(key))) continue;
      must(this.#bpf.lookup(this.#maps.dropped, key, values), 'read what the filter dropped');
      if (minutes.every((minute) => sumDropped(values, minute) === null))
        this.#bpf.remove(this.#maps.dropped, key);
    }
    return new Set(targets.filter(isCounted));
  }

  #clear(slot: number): number {
    const none = Buffer.alloc(countBytes * this.#cpus);
    must(this.#bpf.update(this.#maps.counts, slotKey(slot), none, 0n), 'clear a counter of the filter');
    return slot;
  }

  #keysOf(map: 'rules' | 'dropped'): Buffer[] {
    const found: Buffer[] = [];
    for (let key: Buffer | null = null; ; ) {
      const next = Buffer.alloc(filterAddressBytes);
      if (this.#bpf.nextKey(this.#maps[map], key, next) < 0) return found;
      found.push(next);
      key = next;
    }
  }
}

function slotKey(slot: number): Buffer {
  const key = Buffer.alloc(4);
  key.writeUInt32LE(slot);
  return key;
}

/** The same rule has the same key, also when it begins to drop. */
const keyOf = ({ dropsAtMs, endsAtMs, ...rest }: FilterRule) => JSON.stringify(rest);
