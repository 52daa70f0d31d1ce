/**
 * The counters of a minute, filled when flows are flushed: exact counters per address, and rows per client, server,
 * service and name.
 *
 * Local addresses always find room (up to a million). Remote addresses are bounded; without room the call returns
 * `false`, and the caller counts it. Rows are bounded too: the least valuable ones are removed for new ones.
 */

import { formatWords } from '../address-words.ts';
import { Protocol } from '../decode/packet.ts';
import { KeyedTable, mixHash } from '../keyed-table.ts';
import type { NameTable } from '../names/name-table.ts';
import { Evidence } from '../names/stream-units.ts';
import { deviceKey, hostKeyWords, hostWords, macOfKey, Owner, routerMacs } from './address-owners.ts';
import type { HostCounters, NameEvidence, UsageDirection, UsageRow } from './minute-report.ts';

/** Input of `addUsage`: one flow's part of a minute. One object, filled before each call. */
export const usageInput = {
  version: 4,
  protocol: 0,
  client: new Int32Array(4),
  server: new Int32Array(4),
  serverPort: 0,
  clientIsLocal: false,
  serverIsLocal: false,
  /** Id of the host name on the wire, -1 for none. */
  name: -1,
  evidence: Evidence.none as number,
  clientBytes: 0,
  serverBytes: 0,
  packets: 0,
  /** Milliseconds after the minute's start plus one, 0 for never. */
  clientLastSent: 0,
  serverLastSent: 0,
};

/**
 * Bits per remote address, and in all, of a filter that rules out most addresses without a record. It fits into the L1
 * cache.
 */
const seenBitsOfHost = 8;
const seenBitsMax = 1 << 16;
const usageKeyWords = 11;
const usageWords = 4;
/** Bits of a byte count as a float that are compared: the exponent and three bits after it. */
const sizeBits = 11;
const float = new Float32Array(1);
const floatBits = new Uint32Array(float.buffer);

const labels = new Map<number, string>([
  [Protocol.gre, 'GRE'],
  [Protocol.esp, 'IPsec ESP'],
  [Protocol.ipip, 'IP-in-IP'],
  [Protocol.ipv6, 'IPv6-in-IP'],
  [Protocol.igmp, 'IGMP'],
  [Protocol.ospf, 'OSPF'],
  [Protocol.sctp, 'SCTP'],
]);

/** Label of an IP protocol (NET-2.2.4), or null. AH has one over IPv4 only. */
export function protocolLabel(protocol: number, version: number): string | null {
  if (protocol === Protocol.ah) return version === 4 ? 'IPsec AH' : null;
  return labels.get(protocol) ?? null;
}

export class Ledger {
  readonly #localHosts: KeyedTable;
  readonly #remoteHosts: KeyedTable;
  readonly #usage: KeyedTable;
  readonly #names: NameTable;

  readonly #noiseRowsMax: number;
  readonly #seed: number;
  readonly #seen: Int32Array;
  readonly #seenMask: number;
  /** Packets of rows that were removed for others in this minute. */
  #leftOutPackets = 0;

  constructor(
    names: NameTable,
    seed: number,
    remoteHostsMax: number,
    usageRowsMax: number,
    noiseRowsMax: number,
  ) {
    this.#noiseRowsMax = noiseRowsMax;
    this.#seed = seed;
    this.#names = names;
    const wanted = Math.min(seenBitsMax, Math.max(32, remoteHostsMax * seenBitsOfHost));
    const seenBits = 2 ** Math.ceil(Math.log2(wanted));
    this.#seen = new Int32Array(seenBits >> 5);
    this.#seenMask = seenBits - 1;
    const host = { keyWords: hostKeyWords, wordCount: hostWords, sumCount: 3 };
    this.#localHosts = new KeyedTable({ ...host, recordsMax: 1 << 20 }, seed);
    this.#remoteHosts = new KeyedTable({ ...host, recordsMax: remoteHostsMax }, seed);
    const usage = { keyWords: usageKeyWords, wordCount: usageWords, sumCount: 3 };
    this.#usage = new KeyedTable({ ...usage, recordsMax: usageRowsMax }, seed);
  }

  /**
   * Adds to an address; its words are in `source` from `at` on. Returns false when there was no room. Once there are
   * many remote addresses, noise gets no room for new ones.
   */
  addHost(
    isLocal: boolean,
    version: number,
    source: Int32Array,
    at: number,
    rxBytes: number,
    txBytes: number,
    packets: number,
    isNoise: boolean,
  ): boolean {
    const mayAdd = isLocal || !isNoise || this.#remoteHosts.count < this.#noiseRowsMax;
    const record = this.#hostRecord(isLocal, version, source, at, mayAdd);
    if (record < 0) return false;
    const { sums } = this.#hosts(isLocal);
    sums[record * 3]! += rxBytes;
    sums[record * 3 + 1]! += txBytes;
    sums[record * 3 + 2]! += packets;
    return true;
  }

  /** Records the source MAC of an address; `isConflict` when one flow already saw several. */
  noteOwner(
    isLocal: boolean,
    version: number,
    source: Int32Array,
    at: number,
    macHigh: number,
    macLow: number,
    isConflict: boolean,
  ): void {
    const record = this.#hostRecord(isLocal, version, source, at, true);
    if (record < 0) return;
    const { words } = this.#hosts(isLocal);
    const base = record * hostWords;
    if (words[base + 2] === Owner.unknown && !isConflict) {
      words[base] = macHigh;
      words[base + 1] = macLow;
      words[base + 2] = Owner.one;
    } else if (isConflict || words[base] !== macHigh || words[base + 1] !== macLow)
      words[base + 2] = Owner.conflict;
  }

  /** Adds `usageInput` to its row. When the table is full, the less valuable half of the rows is removed. */
  addUsage(): void {
    const key = this.#usage.key;
    const name = usageInput.name < 0 ? -1 : this.#names.domain(usageInput.name);
    for (let word = 0; word < 4; word += 1) {
      key[word] = usageInput.client[word]!;
      key[4 + word] = usageInput.server[word]!;
    }
    key[8] = usageInput.version | (usageInput.protocol << 8);
    key[9] = usageInput.serverPort;
    key[10] = name;
    let record = this.#usage.locate();
    if (record < 0) {
      this.#leaveOut();
      record = this.#usage.locate();
    }
    const { words, sums } = this.#usage;
    const base = record * usageWords;
    if (name >= 0 && usageInput.evidence > words[base]!) words[base] = usageInput.evidence;
    words[base + 1] = (usageInput.clientIsLocal ? 1 : 0) | (usageInput.serverIsLocal ? 2 : 0);
    if (usageInput.clientLastSent > words[base + 2]!) words[base + 2] = usageInput.clientLastSent;
    if (usageInput.serverLastSent > words[base + 3]!) words[base + 3] = usageInput.serverLastSent;
    sums[record * 3]! += usageInput.clientBytes;
    sums[record * 3 + 1]! += usageInput.serverBytes;
    sums[record * 3 + 2]! += usageInput.packets;
  }

  /** Number of rows, so that the caller can keep noise from taking the last ones. */
  get usageCount(): number {
    return this.#usage.count;
  }

  /** Every local address with its accounted counters of this minute. */
  eachLocalHost(
    visit: (keys: Int32Array, at: number, rxBytes: number, txBytes: number, packets: number) => void,
  ): void {
    const { keys, sums, count } = this.#localHosts;
    for (let record = 0; record < count; record += 1) {
      const at = record * 3;
      visit(keys, record * hostKeyWords, sums[at]!, sums[at + 1]!, sums[at + 2]!);
    }
  }

  /** Every row's name, protocol, server port (0 for none) and accounted bytes. */
  eachUsage(
    visit: (name: string, protocol: number, port: number, clientBytes: number, serverBytes: number) => void,
  ): void {
    for (let record = 0; record < this.#usage.count; record += 1) {
      const { name, protocol, serverPort, clientBytes, serverBytes } = this.#usageRow(record, 0);
      visit(name, protocol, serverPort ?? 0, clientBytes, serverBytes);
    }
  }

  /** Every address, local ones first. */
  hostRows(segment: string, withOwners: boolean): { rows: HostCounters[]; routerMacs: string[] } {
    const routers = withOwners ? routerMacs(this.#remoteHosts) : new Set<string>();
    const rows: HostCounters[] = [];
    for (const isLocal of [true, false]) {
      const table = this.#hosts(isLocal);
      for (let record = 0; record < table.count; record += 1) {
        rows.push({
          address: addressText(table.keys, record * hostKeyWords),
          isLocal,
          rxBytes: table.sums[record * 3]!,
          txBytes: table.sums[record * 3 + 1]!,
          packets: table.sums[record * 3 + 2]!,
          deviceKey: isLocal && withOwners ? deviceKey(table, record, segment, routers) : '',
          isContested: withOwners && table.words[record * hostWords + 2] === Owner.conflict,
        });
      }
    }
    return { rows, routerMacs: [...routers].map(macOfKey) };
  }

  /**
   * At most `rowsMax` rows: traffic in both directions first, then named traffic, then by size, so that floods and
   * scans displace no real traffic. `minuteMs` is the minute's start in unix milliseconds. `leftOutPackets` counts the
   * packets of all rows that are not reported.
   */
  usageRows(minuteMs: number, rowsMax: number): { rows: UsageRow[]; leftOutPackets: number } {
    const { sums, count } = this.#usage;
    let chosen = Array.from({ length: count }, (_, record) => record);
    let leftOutPackets = this.#leftOutPackets;
    if (count > rowsMax) {
      const rank = chosen.map(
        (record) =>
          this.#rank(record) * 2 ** 50 + Math.min(2 ** 50 - 1, sums[record * 3]! + sums[record * 3 + 1]!),
      );
      chosen.sort((a, b) => rank[b]! - rank[a]!);
      for (const record of chosen.slice(rowsMax)) leftOutPackets += sums[record * 3 + 2]!;
      chosen = chosen.slice(0, rowsMax);
    }
    return { rows: chosen.map((record) => this.#usageRow(record, minuteMs)), leftOutPackets };
  }

  /**
   * Keeps half of the rows, as many as are reported at most. Byte counts are compared by their first bits, which avoids
   * sorting; within a minute the sums are not final anyway.
   */
  #leaveOut(): void {
    const { sums, count } = this.#usage;
    const grades = new Int32Array(count);
    const sizes = new Int32Array(6 << sizeBits);
    for (let record = 0; record < count; record += 1) {
      float[0] = sums[record * 3]! + sums[record * 3 + 1]!;
      grades[record] = (this.#rank(record) << sizeBits) | (floatBits[0]! >>> (31 - sizeBits));
      sizes[grades[record]!]! += 1;
    }
    const kept = count >> 1;
    let least = sizes.length - 1;
    let better = 0;
    for (; better + sizes[least]! <= kept && least > 0; least -= 1) better += sizes[least]!;
    let ties = kept - better;
    const stay = new Int32Array(kept);
    let stayed = 0;
    for (let record = 0; record < count; record += 1) {
      const isTie = grades[record] === least;
      if (isTie) ties -= 1;
      if (isTie ? ties >= 0 : grades[record]! > least) {
        stay[stayed] = record;
        stayed += 1;
      } else this.#leftOutPackets += sums[record * 3 + 2]!;
    }
    this.#usage.keepOnly(stay.subarray(0, stayed));
  }

  /** Rank of a row before its bytes, 0 to 5: traffic in both directions, then a spoken name, then a looked-up name. */
  #rank(record: number): number {
    const { sums, words } = this.#usage;
    const isBothWays = sums[record * 3]! > 0 && sums[record * 3 + 1]! > 0;
    const evidence = words[record * usageWords]!;
    return (isBothWays ? 3 : 0) + (evidence > Evidence.dns ? 2 : evidence === Evidence.dns ? 1 : 0);
  }

  /** Marks the names of rows before a sweep. */
  markNames(marks: Uint8Array): void {
    for (let record = 0; record < this.#usage.count; record += 1) {
      const name = this.#usage.keys[record * usageKeyWords + 10]!;
      if (name >= 0) marks[name] = 1;
    }
  }

  /** Applies the new ids of a sweep. */
  renumberNames(renumbered: Int32Array): void {
    const { keys, count } = this.#usage;
    for (let record = 0; record < count; record += 1) {
      const name = keys[record * usageKeyWords + 10]!;
      if (name >= 0) keys[record * usageKeyWords + 10] = renumbered[name]!;
    }
    this.#usage.reindex();
  }

  /** Starts a new minute. */
  clear(): void {
    this.#localHosts.clear();
    this.#remoteHosts.clear();
    this.#usage.clear();
    this.#leftOutPackets = 0;
    this.#seen.fill(0);
  }

  /** True for a remote address that certainly has no record, while noise gets no new one. */
  isUnheard(source: Int32Array, at: number): boolean {
    if (this.#remoteHosts.count < this.#noiseRowsMax) return false;
    const bit = this.#seenBit(source, at);
    return (this.#seen[bit >> 5]! & (1 << (bit & 31))) === 0;
  }

  #seenBit(source: Int32Array, at: number): number {
    const words = source[at]! ^ Math.imul(source[at + 1]!, 3) ^ Math.imul(source[at + 2]!, 5);
    return mixHash(this.#seed ^ words, source[at + 3]!) & this.#seenMask;
  }

  #usageRow(record: number, minuteMs: number): UsageRow {
    const { keys, words, sums } = this.#usage;
    const key = record * usageKeyWords;
    const value = record * usageWords;
    const version = keys[key + 8]! & 0xff;
    const protocol = keys[key + 8]! >> 8;
    const client = formatWords(version, keys[key]!, keys[key + 1]!, keys[key + 2]!, keys[key + 3]!);
    const server = formatWords(version, keys[key + 4]!, keys[key + 5]!, keys[key + 6]!, keys[key + 7]!);
    const direction = directions[words[value + 1]!]!;
    const label = protocolLabel(protocol, version);
    const remote = direction === 'inbound' ? client : server;
    const domain = keys[key + 10]! < 0 ? remote : this.#names.host(keys[key + 10]!);
    return {
      client,
      server,
      protocol,
      serverPort: keys[key + 9]! > 0 ? keys[key + 9]! : null,
      direction,
      name: label ?? domain,
      evidence: label === null ? evidenceText[words[value]!]! : 'ip_protocol',
      clientBytes: sums[record * 3]!,
      serverBytes: sums[record * 3 + 1]!,
      packets: sums[record * 3 + 2]!,
      clientLastSentMs: sentMs(minuteMs, words[value + 2]!),
      serverLastSentMs: sentMs(minuteMs, words[value + 3]!),
    };
  }

  #hosts(isLocal: boolean): KeyedTable {
    return isLocal ? this.#localHosts : this.#remoteHosts;
  }

  #hostRecord(isLocal: boolean, version: number, source: Int32Array, at: number, mayAdd: boolean): number {
    const table = this.#hosts(isLocal);
    const key = table.key;
    key[0] = source[at]!;
    key[1] = source[at + 1]!;
    key[2] = source[at + 2]!;
    key[3] = source[at + 3]!;
    key[4] = version;
    if (!mayAdd) return table.find();
    const record = table.locate();
    if (!isLocal && record >= 0) {
      const bit = this.#seenBit(source, at);
      this.#seen[bit >> 5]! |= 1 << (bit & 31);
    }
    return record;
  }
}

/** Names of the kinds of evidence, by their number in a flow record. */
export const evidenceText: readonly NameEvidence[] = [
  'none',
  'dns',
  'tls_outer',
  'http_connect',
  'http_host',
  'tls_sni',
];

const directions: readonly UsageDirection[] = ['transit', 'outbound', 'inbound', 'internal'];

function sentMs(minuteMs: number, offset: number): number {
  return offset === 0 ? 0 : minuteMs + offset - 1;
}

function addressText(keys: Int32Array, at: number): string {
  return formatWords(keys[at + 4]!, keys[at]!, keys[at + 1]!, keys[at + 2]!, keys[at + 3]!);
}
