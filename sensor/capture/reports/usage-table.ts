/**
 * Rows per client, server, service and name. Their number is bounded: the least valuable ones are removed for new ones.
 */
import { formatWords } from '../address-words.ts';
import { KeyedTable } from '../keyed-table.ts';
import type { NameTable } from '../names/name-table.ts';
import { Evidence } from '../names/stream-units.ts';
import type { UsageDirection, UsageRow } from './minute-report.ts';
import { evidenceText, protocolLabel } from './row-store.ts';

/** Input of `add`: one flow's part of a minute. One object, filled before each call. */
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

const usageKeyWords = 11;
const usageWords = 4;
/** Bits of a byte count as a float that are compared: the exponent and three bits after it. */
const sizeBits = 11;
const float = new Float32Array(1);
const floatBits = new Uint32Array(float.buffer);

const directions: readonly UsageDirection[] = ['transit', 'outbound', 'inbound', 'internal'];

export class UsageTable {
  readonly #table: KeyedTable;
  readonly #names: NameTable;
  /** Packets of rows that were removed for others in this minute. */
  #leftOutPackets = 0;

  constructor(names: NameTable, seed: number, rowsMax: number) {
    this.#names = names;
    this.#table = new KeyedTable(
      { keyWords: usageKeyWords, wordCount: usageWords, sumCount: 3, recordsMax: rowsMax },
      seed,
    );
  }

  /** Adds `usageInput` to its row. When the table is full, the less valuable half of the rows is removed. */
  add(): void {
    const key = this.#table.key;
    const name = usageInput.name < 0 ? -1 : this.#names.domain(usageInput.name);
    for (let word = 0; word < 4; word += 1) {
      key[word] = usageInput.client[word]!;
      key[4 + word] = usageInput.server[word]!;
    }
    key[8] = usageInput.version | (usageInput.protocol << 8);
    key[9] = usageInput.serverPort;
    key[10] = name;
    let record = this.#table.locate();
    if (record < 0) {
      this.#leaveOut();
      record = this.#table.locate();
    }
    const { words, sums } = this.#table;
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
  get count(): number {
    return this.#table.count;
  }

  /** Every row's name, protocol, server port (0 for none) and accounted bytes. */
  each(
    visit: (name: string, protocol: number, port: number, clientBytes: number, serverBytes: number) => void,
  ): void {
    for (let record = 0; record < this.#table.count; record += 1) {
      const { name, protocol, serverPort, clientBytes, serverBytes } = this.#row(record, 0);
      visit(name, protocol, serverPort ?? 0, clientBytes, serverBytes);
    }
  }

  /**
   * At most `rowsMax` rows: traffic in both directions first, then named traffic, then by size, so that floods and
   * scans displace no real traffic. `minuteMs` is the minute's start in unix milliseconds. `leftOutPackets` counts the
   * packets of all rows that are not reported.
   */
  rows(minuteMs: number, rowsMax: number): { rows: UsageRow[]; leftOutPackets: number } {
    const { sums, count } = this.#table;
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
    return { rows: chosen.map((record) => this.#row(record, minuteMs)), leftOutPackets };
  }

  /** Marks the names of rows before a sweep. */
  markNames(marks: Uint8Array): void {
    for (let record = 0; record < this.#table.count; record += 1) {
      const name = this.#table.keys[record * usageKeyWords + 10]!;
      if (name >= 0) marks[name] = 1;
    }
  }

  /** Applies the new ids of a sweep. */
  renumberNames(renumbered: Int32Array): void {
    const { keys, count } = this.#table;
    for (let record = 0; record < count; record += 1) {
      const name = keys[record * usageKeyWords + 10]!;
      if (name >= 0) keys[record * usageKeyWords + 10] = renumbered[name]!;
    }
    this.#table.reindex();
  }

  /** Starts a new minute. */
  clear(): void {
    this.#table.clear();
    this.#leftOutPackets = 0;
  }

  /**
   * Keeps half of the rows, as many as are reported at most. Byte counts are compared by their first bits, which avoids
   * sorting; within a minute the sums are not final anyway.
   */
  #leaveOut(): void {
    const { sums, count } = this.#table;
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
    this.#table.keepOnly(stay.subarray(0, stayed));
  }

  /** Rank of a row before its bytes, 0 to 5: traffic in both directions, then a spoken name, then a looked-up name. */
  #rank(record: number): number {
    const { sums, words } = this.#table;
    const isBothWays = sums[record * 3]! > 0 && sums[record * 3 + 1]! > 0;
    const evidence = words[record * usageWords]!;
    return (isBothWays ? 3 : 0) + (evidence > Evidence.dns ? 2 : evidence === Evidence.dns ? 1 : 0);
  }

  #row(record: number, minuteMs: number): UsageRow {
    const { keys, words, sums } = this.#table;
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
}

function sentMs(minuteMs: number, offset: number): number {
  return offset === 0 ? 0 : minuteMs + offset - 1;
}
