/**
 * One interface's counters in the kernel: says which addresses are local, and reads minutes.
 *
 * The maps outlive the process where they are pinned. So nothing is cleared here: a sensor that takes them up finds the minutes
 * that its predecessor left, and counting went on in between.
 */
import koffi from 'koffi';
import type { LocalScope } from '#sensor/capture/index.ts';
import {
  addressBytes,
  addressKey,
  addressOf,
  type HostCounts,
  hostBytes,
  type KernelSettings,
  type KernelTotals,
  type MapName,
  macsMax,
  ownerValue,
  prefixBytes,
  prefixKey,
  readSettings,
  settingsBytes,
  settingsValue,
  sumHost,
  sumTotals,
  totalBytes,
} from './layout.ts';
import { kernelError, libbpf, must } from './libbpf.ts';

/** Entries of a map that are read by one call. */
const batchEntries = 1024;
const first = Buffer.alloc(4);
const noEntry = -koffi.os.errno.ENOENT!;

/** What the kernel counted in one minute. */
export interface KernelMinute {
  totals: KernelTotals;
  /** Local addresses with traffic. */
  hosts: Map<string, HostCounts>;
}

export class KernelCounter {
  readonly #maps: Record<MapName, number>;
  readonly #bpf = libbpf();
  readonly #cpus = libbpf().cpus() as number;

  constructor(maps: Record<MapName, number>) {
    this.#maps = maps;
  }

  /** Says which addresses are local, and on a bridge who may send from them. What is known already stays as it is. */
  setLocal(local: LocalScope, isBridge: boolean): void {
    const prefixes = local.prefixes.map((prefix) => prefixKey(prefix));
    const owners = (isBridge ? (local.owners ?? []) : []).filter(({ macs }) => macs.length <= macsMax);
    const ownerKeys = owners.map(({ address }) => addressKey(address));
    for (const [i, { macs }] of owners.entries()) this.#put('owners', ownerKeys[i]!, ownerValue(macs));
    const one = Buffer.from([1, 0, 0, 0]);
    for (const prefix of prefixes) this.#put('prefixes', prefix, one);
    this.#keepOnly('prefixes', prefixBytes, prefixes);
    this.#keepOnly('owners', addressBytes, ownerKeys);
    const hosts = local.addresses.map((address) => addressKey(address));
    const none = Buffer.alloc(hostBytes * this.#cpus);
    // One that is there has counted already.
    for (const host of hosts) this.#bpf.update(this.#maps.hosts, host, none, 1n);
    this.change({
      hasPrefixes4: prefixes.some((key) => key.readUInt32LE(4) === 4),
      hasPrefixes6: prefixes.some((key) => key.readUInt32LE(4) === 6),
      hasOwners: owners.length > 0,
    });
  }

  /** Counting goes on for an hour after the last call; `wallOffset` is wall time minus the monotonic clock, in nanoseconds. */
  beat(wallOffset: bigint): void {
    this.change({ wallOffset, beat: process.hrtime.bigint() });
  }

  settings(): KernelSettings {
    const value = Buffer.alloc(settingsBytes);
    must(this.#bpf.lookup(this.#maps.settings, first, value), 'read the settings of the kernel’s counters');
    return readSettings(value);
  }

  /** Reads a minute (seconds since 1970) of the last four. */
  readMinute(minute: number): KernelMinute {
    const values = Buffer.alloc(totalBytes * this.#cpus);
    must(this.#bpf.lookup(this.#maps.totals, first, values), 'read the totals of the kernel');
    const hosts = new Map<string, HostCounts>();
    this.#eachHost((key, buffer, at) => {
      const counts = sumHost(buffer, at, this.#cpus, minute);
      if (counts) hosts.set(addressOf(key), counts);
    });
    return { totals: sumTotals(values, this.#cpus, minute), hosts };
  }

  close(): void {
    for (const fd of Object.values(this.#maps)) closeFd(fd);
  }

  #eachHost(visit: (key: Buffer, values: Buffer, at: number) => void): void {
    const bytes = hostBytes * this.#cpus;
    const keys = Buffer.alloc(addressBytes * batchEntries);
    const values = Buffer.alloc(bytes * batchEntries);
    const next = Buffer.alloc(8);
    const count = Buffer.alloc(4);
    for (let from: Buffer | null = null; ; from = next) {
      count.writeUInt32LE(batchEntries);
      const result: number = this.#bpf.lookupBatch(this.#maps.hosts, from, next, keys, values, count, null);
      if (result < 0 && result !== noEntry) throw kernelError('read the counters of addresses', result);
      for (let i = 0; i < count.readUInt32LE(); i += 1)
        visit(keys.subarray(i * addressBytes, (i + 1) * addressBytes), values, i * bytes);
      if (result === noEntry) return;
    }
  }

  #put(map: MapName, key: Buffer, value: Buffer): void {
    must(this.#bpf.update(this.#maps[map], key, value, 0n), `add to the map ${map}`);
  }

  #keepOnly(map: MapName, keyBytes: number, kept: readonly Buffer[]): void {
    const names = new Set(kept.map((key) => key.toString('hex')));
    const found: Buffer[] = [];
    for (let key: Buffer | null = null; ; ) {
      const next = Buffer.alloc(keyBytes);
      if (this.#bpf.nextKey(this.#maps[map], key, next) < 0) break;
      found.push(next);
      key = next;
    }
    for (const key of found) if (!names.has(key.toString('hex'))) this.#bpf.remove(this.#maps[map], key);
  }

  /** Changes settings of the program. */
  change(changed: Partial<KernelSettings>): void {
    this.#put('settings', first, settingsValue({ ...this.settings(), ...changed }));
  }
}

const closeFd: (fd: number) => number = koffi.load(null).func('int close(int fd)');
