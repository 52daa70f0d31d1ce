/**
 * Live windows: differences between two moments of the open minute. Nothing is flushed, so the minutes are not
 * affected.
 *
 * An address's traffic in this minute is its entry in the ledger plus what open flows have not accounted yet. A window
 * is that sum minus the sum at the previous window. The sum is a walk over the flows every ten seconds; packets cost
 * nothing extra.
 */

import { formatWords } from '../address-words.ts';
import { type CaptureTotals, emptyTotals } from '../capture.ts';
import type { Engine } from '../engine.ts';
import { Field, Flag, flowWords, isOwnScan } from '../flows/flow-record.ts';
import { KeyedTable } from '../keyed-table.ts';
import type { NameTable } from '../names/name-table.ts';
import type { WindowApplication, WindowHost, WindowReport } from './minute-report.ts';
import { protocolLabel } from './row-store.ts';

const hostKeyWords = 5;
const hostSums = 3;
/** Local addresses in a window; a scan of unused addresses finds no more room. */
const hostsMax = 16_384;

export type WindowCounters = Omit<WindowReport, 'startedAtMs' | 'observedMs'>;

export class LiveWindows {
  readonly #engine: Engine;
  readonly #names: NameTable;
  readonly #applicationsMax: number;
  #before: KeyedTable;
  #now: KeyedTable;
  #totals: CaptureTotals = emptyTotals();
  #applications = new Map<string, WindowApplication>();

  constructor(engine: Engine, names: NameTable, seed: number, applicationsMax: number) {
    this.#engine = engine;
    this.#names = names;
    this.#applicationsMax = applicationsMax;
    const shape = { keyWords: hostKeyWords, wordCount: 0, sumCount: hostSums, recordsMax: hostsMax };
    this.#before = new KeyedTable(shape, seed);
    this.#now = new KeyedTable(shape, seed);
  }

  /** Counters since the last call, or since the minute began. */
  take(): WindowCounters {
    this.#sumUp();
    const totals = emptyTotals();
    const counted = this.#engine.totals;
    for (const field of Object.keys(totals) as (keyof CaptureTotals)[]) {
      totals[field] = counted[field] - this.#totals[field];
    }
    this.#totals = { ...counted };
    const window = {
      totals,
      hosts: this.#hostDifferences(),
      applications: this.#applicationDifferences(),
      spoofed: this.#engine.ledger.spoofed.addresses(),
    };
    const spare = this.#before;
    this.#before = this.#now;
    this.#now = spare;
    return window;
  }

  /** The engine's counters were cleared: the next window begins at zero. */
  restart(): void {
    this.#before.clear();
    this.#totals = emptyTotals();
    this.#applications.clear();
  }

  /** Fills `#now` with each local address's traffic so far in this minute. */
  #sumUp(): void {
    this.#now.clear();
    this.#engine.ledger.hosts.eachLocal((keys, at, rxBytes, txBytes, packets) =>
      this.#add(keys, at, keys[at + 4]!, rxBytes, txBytes, packets),
    );
    const { words, sums, highWater } = this.#engine.flows;
    for (let base = 0; base < highWater; base += flowWords) {
      const flags = words[base + Field.flags]!;
      if ((flags & Flag.alive) === 0) continue;
      const packets = words[base + Field.packets]! + words[base + Field.packets + 1]!;
      if (packets === 0) continue;
      const version = (words[base + Field.meta]! >> 8) & 0xff;
      const up = sums[(base + Field.bytes) >> 1]!;
      const down = sums[((base + Field.bytes) >> 1) + 1]!;
      const isLowerLocal = (flags & Flag.lowerIsLocal) !== 0;
      const isHigherLocal = (flags & Flag.higherIsLocal) !== 0;
      const isLoop = isLowerLocal && isHigherLocal && isSameAddress(words, base);
      if (isLowerLocal) {
        this.#add(words, base, version, isLoop ? up + down : down, isLoop ? up + down : up, packets);
      }
      if (isHigherLocal && !isLoop) this.#add(words, base + 4, version, up, down, packets);
    }
  }

  #add(words: Int32Array, at: number, version: number, rx: number, tx: number, packets: number): void {
    const key = this.#now.key;
    for (let word = 0; word < 4; word += 1) key[word] = words[at + word]!;
    key[4] = version;
    const record = this.#now.locate();
    if (record < 0) return;
    const { sums } = this.#now;
    sums[record * hostSums]! += rx;
    sums[record * hostSums + 1]! += tx;
    sums[record * hostSums + 2]! += packets;
  }

  #hostDifferences(): WindowHost[] {
    const hosts: WindowHost[] = [];
    const { keys, sums, count } = this.#now;
    for (let record = 0; record < count; record += 1) {
      for (let word = 0; word < hostKeyWords; word += 1) {
        this.#before.key[word] = keys[record * hostKeyWords + word]!;
      }
      const found = this.#before.find();
      const earlier = (i: number) => (found < 0 ? 0 : this.#before.sums[found * hostSums + i]!);
      const packets = sums[record * hostSums + 2]! - earlier(2);
      if (packets === 0) continue;
      const at = record * hostKeyWords;
      hosts.push({
        address: formatWords(keys[at + 4]!, keys[at]!, keys[at + 1]!, keys[at + 2]!, keys[at + 3]!),
        rxBytes: sums[record * hostSums]! - earlier(0),
        txBytes: sums[record * hostSums + 1]! - earlier(1),
        packets,
      });
    }
    return hosts;
  }

  /** Approximate: a flow that gets its name late moves its bytes to that name, so differences are never below zero. */
  #applicationDifferences(): WindowApplication[] {
    if (this.#applicationsMax === 0) return [];
    const now = new Map<string, WindowApplication>();
    const add = (name: string, protocol: number, port: number, client: number, server: number) => {
      const key = `${name} ${protocol} ${port}`;
      const known = now.get(key);
      if (known) {
        known.clientBytes += client;
        known.serverBytes += server;
      } else {
        const serverPort = port > 0 ? port : null;
        now.set(key, { name, protocol, serverPort, clientBytes: client, serverBytes: server });
      }
    };
    this.#engine.ledger.usage.each(add);
    this.#eachOpenFlow(add);
    const rows: WindowApplication[] = [];
    for (const [key, row] of now) {
      const earlier = this.#applications.get(key);
      const clientBytes = Math.max(0, row.clientBytes - (earlier?.clientBytes ?? 0));
      const serverBytes = Math.max(0, row.serverBytes - (earlier?.serverBytes ?? 0));
      if (clientBytes + serverBytes > 0) rows.push({ ...row, clientBytes, serverBytes });
    }
    this.#applications = now;
    const size = (row: WindowApplication) => row.clientBytes + row.serverBytes;
    return rows.sort((a, b) => size(b) - size(a)).slice(0, this.#applicationsMax);
  }

  #eachOpenFlow(
    add: (name: string, protocol: number, port: number, client: number, server: number) => void,
  ): void {
    const { words, sums, highWater } = this.#engine.flows;
    for (let base = 0; base < highWater; base += flowWords) {
      const flags = words[base + Field.flags]!;
      if ((flags & Flag.alive) === 0) continue;
      const up = sums[(base + Field.bytes) >> 1]!;
      const down = sums[((base + Field.bytes) >> 1) + 1]!;
      if (up + down === 0 || isOwnScan(words, base)) continue;
      const meta = words[base + Field.meta]!;
      const protocol = meta & 0xff;
      const version = (meta >> 8) & 0xff;
      const clientIsHigher = (flags & Flag.clientIsHigher) !== 0;
      const ports = words[base + Field.ports]!;
      const port = clientIsHigher ? ports >>> 16 : ports & 0xffff;
      const serverAt = clientIsHigher ? base : base + 4;
      const clientAt = clientIsHigher ? base + 4 : base;
      const serverIsLocal = (flags & (clientIsHigher ? Flag.lowerIsLocal : Flag.higherIsLocal)) !== 0;
      const clientIsLocal = (flags & (clientIsHigher ? Flag.higherIsLocal : Flag.lowerIsLocal)) !== 0;
      const remoteAt = serverIsLocal && !clientIsLocal ? clientAt : serverAt;
      const id = words[base + Field.name]! - 1;
      const domain = id < 0 ? -1 : this.#names.domain(id);
      const remote = () =>
        formatWords(
          version,
          words[remoteAt]!,
          words[remoteAt + 1]!,
          words[remoteAt + 2]!,
          words[remoteAt + 3]!,
        );
      const name = protocolLabel(protocol, version) ?? (domain < 0 ? remote() : this.#names.host(domain));
      add(name, protocol, port, clientIsHigher ? down : up, clientIsHigher ? up : down);
    }
  }
}

function isSameAddress(words: Int32Array, base: number): boolean {
  for (let word = 0; word < 4; word += 1) if (words[base + word] !== words[base + 4 + word]) return false;
  return true;
}
