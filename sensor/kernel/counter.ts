/**
 * One interface's counters in the kernel: says which addresses are local, and reads minutes.
 *
 * The maps outlive the process where they are pinned. So nothing is cleared here: a sensor that takes them up finds the minutes
 * that its predecessor left, and counting went on in between.
 */
import koffi from 'koffi';
import { compileLocalScope, type LocalRanges, type LocalScope } from '#sensor/capture/index.ts';
import { clockStepMs } from '#sensor/host-time/index.ts';
import {
  addressBytes,
  addressKey,
  addressOf,
  claimBytes,
  type KernelSettings,
  type KernelTotals,
  type MapName,
  macsMax,
  markNear,
  nearBytes,
  ownerValue,
  prefixBytes,
  prefixKey,
  readSettings,
  type SeenTotals,
  type SpoofedCounts,
  senderBytes,
  senderKey,
  settingsBytes,
  settingsValue,
  spoofedBytes,
  sumSeen,
  sumSpoofed,
  sumTotals,
  totalBytes,
} from './layout.ts';
import { closeAll, libbpf, must } from './libbpf.ts';
import { type HostCounts, SharedMap, Slots } from './slots.ts';

/** With more addresses the idle ones are removed. */
const crowdedAddresses = 4096;
const first = Buffer.alloc(4);
/** `BEAT_PATIENCE` of the program. */
const beatPatienceNs = 3_600_000_000_000n;
/** A larger change of the clock is a step, as for the captures; below the other it is how exactly it can be read. */
const stepNs = BigInt(clockStepMs) * 1_000_000n;
const offsetToleranceNs = 2_000_000n;
/** A reading of the clock that took longer is repeated: the process may have waited for a processor in between. */
const readingNs = 100_000n;
const readingsMax = 10;

/** What the detector asks to be counted beside local addresses. */
export interface DetectedAddresses {
  prefixes: readonly string[];
}

/** What the kernel counted in one minute. */
export interface KernelMinute {
  totals: KernelTotals;
  /** Local addresses with traffic. */
  hosts: Map<string, HostCounts>;
  /** False for an address that is local no more, and where one found no room: then one without counters may have had traffic. */
  countedAll(address: string): boolean;
  /** What servers claimed that is not theirs. */
  spoofed: SpoofedCounts[];
}

export class KernelCounter {
  readonly #maps: Record<MapName, number>;
  readonly #bpf = libbpf();
  #local: LocalRanges | null = null;
  /** The local addresses, and those that only the detector asks for. */
  #counted: LocalRanges | null = null;
  #slots: Slots | null = null;
  #near: SharedMap | null = null;
  /** Addresses that are not of a prefix. */
  #named: ReadonlySet<string> = new Set();

  constructor(maps: Record<MapName, number>) {
    this.#maps = maps;
  }

  /** Before the program is attached; counters that are there stay. */
  prepare(isEthernet: boolean, slots: number): void {
    const isNew = this.#settings().slots === 0;
    if (isNew) Slots.prepare(this.#maps, slots);
    this.change({ isEthernet, slots });
  }

  /** The addresses with their counters. */
  get slots(): Slots {
    this.#slots ??= new Slots(this.#maps, this.#settings().slots);
    return this.#slots;
  }

  /**
   * Says which addresses are local, and on a bridge who may send from them. What is known already stays as it is. `detected`: counts
   * kinds of packets for the detector, of these prefixes too.
   */
  setLocal(local: LocalScope, isBridge: boolean, detected: DetectedAddresses | null = null): void {
    const prefixes = [...local.prefixes, ...(detected?.prefixes ?? [])].map((prefix) => prefixKey(prefix));
    const addresses = local.addresses.map(addressKey);
    const owners = (isBridge ? (local.owners ?? []) : []).filter(({ macs }) => macs.length <= macsMax);
    const ownerKeys = owners.map(({ address }) => addressKey(address));
    const near = Buffer.alloc(nearBytes);
    for (const key of [...addresses, ...ownerKeys]) markNear(near, key, 128);
    for (const key of prefixes) markNear(near, key.subarray(4), key.readUInt32LE(0) - 32);
    this.#near ??= new SharedMap(this.#maps.near, nearBytes);
    const { bytes } = this.#near;
    for (const [i, byte] of near.entries()) bytes[i]! |= byte;
    for (const [i, { macs }] of owners.entries()) this.#put('owners', ownerKeys[i]!, ownerValue(macs));
    const one = Buffer.from([1, 0, 0, 0]);
    for (const prefix of prefixes) this.#put('prefixes', prefix, one);
    const senders = [...new Set(owners.flatMap(({ macs }) => macs))].map(senderKey);
    for (const sender of senders) this.#put('senders', sender, one);
    this.#keepOnly('prefixes', prefixBytes, prefixes);
    this.#keepOnly('senders', senderBytes, senders);
    this.#keepOnly('owners', addressBytes, ownerKeys);
    this.#local = compileLocalScope(local);
    const isWider = detected !== null && detected.prefixes.length > 0;
    this.#counted = isWider
      ? compileLocalScope({ ...local, prefixes: [...local.prefixes, ...detected.prefixes] })
      : this.#local;
    this.#named = new Set(local.addresses);
    const { slots } = this;
    slots.vacate();
    const taken = slots.taken();
    const known = new Set(taken.map((slot) => slots.keyOf(slot).toString('latin1')));
    for (const key of addresses) if (!known.has(key.toString('latin1'))) slots.add(key);
    for (const slot of taken) if (!isIn(this.#counted, slots.keyOf(slot))) slots.remove(slot);
    near.copy(bytes);
    this.change({
      hasPrefixes4: prefixes.some((key) => key.readUInt32LE(4) === 4),
      hasPrefixes6: prefixes.some((key) => key.readUInt32LE(4) === 6),
      hasOwners: owners.length > 0,
      countsKinds: detected !== null,
      ...(this.#settings().since === 0n && { since: process.hrtime.bigint() }),
    });
  }

  /**
   * Counting goes on for an hour after the last call. `wallOffset`: wall time minus the monotonic clock, in nanoseconds. Where the
   * clock was set, or counting had ended, minutes are whole again from now on.
   */
  beat(wallOffset = readWallOffset()): void {
    this.#slots?.vacate();
    const before = this.#settings();
    const beat = process.hrtime.bigint();
    const step = wallOffset - before.wallOffset;
    const wentOn = step < stepNs && step > -stepNs && beat - before.beat < beatPatienceNs;
    this.change({
      beat,
      wallOffset: steadyOffset(before.wallOffset, wallOffset),
      since: wentOn || before.since === 0n ? before.since : beat,
    });
  }

  /**
   * Wall time since which every frame was counted by local address, unix milliseconds; infinite before the first addresses, and where
   * the clock was set since the last beat.
   */
  wholeSinceMs(): number {
    const { since, wallOffset } = this.#settings();
    const step = readWallOffset() - wallOffset;
    if (since === 0n || step >= stepNs || step <= -stepNs) return Number.POSITIVE_INFINITY;
    return Number((since + wallOffset) / 1_000_000n);
  }

  #settings(): KernelSettings {
    const value = Buffer.alloc(settingsBytes);
    must(this.#bpf.lookup(this.#maps.settings, first, value), 'read the settings of the kernel’s counters');
    return readSettings(value);
  }

  /** Reads a minute (seconds since 1970) of the last four. */
  readMinute(minute: number): KernelMinute {
    const values = this.#readTotals();
    const hosts = new Map<string, HostCounts>();
    const { slots } = this;
    slots.vacate();
    const taken = slots.taken();
    for (const slot of taken) {
      const counts = slots.sumMinute(slot, minute);
      if (!counts) continue;
      const key = slots.keyOf(slot);
      if (this.#local === this.#counted || isIn(this.#local!, key)) hosts.set(addressOf(key), counts);
    }
    if (taken.length > crowdedAddresses) this.#removeIdle(taken, minute);
    const totals = sumTotals(values, this.cpus, minute);
    const local = this.#local;
    return {
      totals,
      hosts,
      countedAll: (address) => totals.withoutRoom === 0 && local !== null && isIn(local, addressKey(address)),
      spoofed: this.#readSpoofed(minute),
    };
  }

  /** Those of this minute. Rows that are idle make room. */
  #readSpoofed(minute: number): SpoofedCounts[] {
    const found: SpoofedCounts[] = [];
    const value = Buffer.alloc(spoofedBytes * this.cpus);
    const keys = this.#keysOf('spoofed', claimBytes);
    for (const key of keys) {
      if (this.#bpf.lookup(this.#maps.spoofed, key, value) < 0) continue;
      const countsOf = (one: number) => sumSpoofed(key, value, this.cpus, one);
      const counts = countsOf(minute);
      if (counts) found.push(counts);
      else if (keptMinutes(minute).every((one) => countsOf(one) === null))
        this.#bpf.remove(this.#maps.spoofed, key);
    }
    return found;
  }

  close(): void {
    this.#slots?.close();
    this.#near?.close();
    closeAll(Object.values(this.#maps));
  }

  /** Makes room: addresses of prefixes without traffic in the minutes that are kept. */
  #removeIdle(taken: readonly number[], minute: number): void {
    const { slots } = this;
    for (const slot of taken) {
      const isIdle = keptMinutes(minute).every((one) => slots.sumMinute(slot, one) === null);
      if (isIdle && !this.#named.has(addressOf(slots.keyOf(slot)))) slots.remove(slot);
    }
  }

  /** What was counted since the program was attached. */
  readSeen(): SeenTotals {
    return sumSeen(this.#readTotals(), this.cpus);
  }

  get cpus(): number {
    return this.#bpf.cpus() as number;
  }

  #readTotals(): Buffer {
    const values = Buffer.alloc(totalBytes * this.cpus);
    must(this.#bpf.lookup(this.#maps.totals, first, values), 'read the totals of the kernel');
    return values;
  }

  #put(map: MapName, key: Buffer, value: Buffer): void {
    must(this.#bpf.update(this.#maps[map], key, value, 0n), `add to the map ${map}`);
  }

  #keepOnly(map: MapName, keyBytes: number, kept: readonly Buffer[]): void {
    const names = new Set(kept.map((key) => key.toString('hex')));
    for (const key of this.#keysOf(map, keyBytes))
      if (!names.has(key.toString('hex'))) this.#bpf.remove(this.#maps[map], key);
  }

  #keysOf(map: MapName, keyBytes: number): Buffer[] {
    const found: Buffer[] = [];
    for (let key: Buffer | null = null; ; ) {
      const next = Buffer.alloc(keyBytes);
      if (this.#bpf.nextKey(this.#maps[map], key, next) < 0) return found;
      found.push(next);
      key = next;
    }
  }

  /** Changes settings of the program. */
  change(changed: Partial<KernelSettings>): void {
    this.#put('settings', first, settingsValue({ ...this.#settings(), ...changed }));
  }
}

/** Those that the kernel may have beside this one, which it has. */
export const keptMinutes = (minute: number) =>
  [-180, -120, -60, 0, 60, 120, 180].map((seconds) => minute + seconds);

function isIn(ranges: LocalRanges, key: Buffer): boolean {
  const words = Int32Array.from({ length: 8 }, (_, i) => (i < 4 ? key.readInt32BE(4 + i * 4) : 0));
  return (ranges.sides(key.readUInt32LE(0), words, 0) & 1) !== 0;
}

const system = koffi.load(null);
const getTime: (clock: number, time: Buffer) => number = system.func(
  'int clock_gettime(int clock, void *time)',
);
const realTime = 0;

/** The offset of before, unless the present one differs by more than how exactly it can be read. */
export function steadyOffset(before: bigint, present = readWallOffset()): bigint {
  const step = present - before;
  return step < offsetToleranceNs && step > -offsetToleranceNs ? before : present;
}

/** Wall time minus the monotonic clock, nanoseconds: the reading that took the least time of several. */
function readWallOffset(): bigint {
  const time = Buffer.alloc(16);
  let best = { tookNs: 1n << 62n, offset: 0n };
  for (let i = 0; i < readingsMax && best.tookNs > readingNs; i += 1) {
    const before = process.hrtime.bigint();
    getTime(realTime, time);
    const after = process.hrtime.bigint();
    const tookNs = after - before;
    const wall = time.readBigInt64LE(0) * 1_000_000_000n + time.readBigInt64LE(8);
    if (tookNs < best.tookNs) best = { tookNs, offset: wall - (before + after) / 2n };
  }
  return best.offset;
}
