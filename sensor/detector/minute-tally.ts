/** Adds up what the detector of one capture says of one minute: ticks, largest rates, traffic of attacks. */
import {
  attackDirections,
  type DetectorMinute,
  type DetectorRow,
  detectorRowsMax,
  metrics,
} from '#contracts/sensor-api/detection.ts';
import {
  Bin,
  binLength,
  countedHostsMax,
  Kind,
  kindCount,
  type SlotTable,
} from '#sensor/attack-counters/index.ts';
import { formatWords, KeyedTable, parseWords } from '#sensor/capture/index.ts';
import type { Metric } from './thresholds.ts';
import type { Counts } from './traffic.ts';

const tenSeconds = 10;

/** The rates of one second by metric, in the order of `metrics`. */
export type Rates = Float64Array;

/** Sums of a record: the largest rates of one and of ten seconds, the sums of the open ten seconds, traffic of attacks. */
const Sum = {
  oneSecond: 0,
  tenSeconds: metrics.length,
  open: metrics.length * 2,
  attackPackets: metrics.length * 3,
  attackBytes: metrics.length * 3 + 1,
} as const;
const sumCount = metrics.length * 3 + 2;
/** Words of a key: direction, version, address. */
const keyWords = 6;

export class MinuteTally {
  readonly minute: number;
  ticks = 0;
  overflowed = 0;
  incidentsLost = 0;
  mergedFrames = 0;
  /** The epochs of the seconds that were observed. */
  readonly epochs = new Set<string>();
  /** One word: which ten seconds are open. Addresses are text only when the minute is closed. */
  readonly #table = new KeyedTable({ keyWords, wordCount: 1, sumCount, recordsMax: detectorRowsMax }, 1);
  /** By slot and direction, from one on. */
  readonly #records = new Uint16Array(countedHostsMax * 2);
  #leftOut = 0;

  constructor(minute: number) {
    this.minute = minute;
  }

  noteRates(hosts: SlotTable, slot: number, direction: 0 | 1, second: number, rates: Rates): void {
    const record = this.#recordOf(hosts, slot, direction);
    if (record < 0) return;
    const { words, sums } = this.#table;
    const at = record * sumCount;
    const ten = Math.floor(second / tenSeconds) - this.minute / tenSeconds;
    if (ten !== words[record]) closeTen(sums, at);
    words[record] = ten;
    for (let i = 0; i < metrics.length; i += 1) {
      const rate = rates[i]!;
      if (rate === 0) continue;
      sums[at + Sum.open + i]! += rate;
      if (rate > sums[at + Sum.oneSecond + i]!) sums[at + Sum.oneSecond + i] = rate;
    }
  }

  noteAttack(address: string, direction: 0 | 1, packets: number, bytes: number): void {
    const { version, words } = parseWords(address);
    this.#table.key.set([direction, version, ...words]);
    const record = this.#locate(direction);
    if (record < 0) return;
    const { sums } = this.#table;
    sums[record * sumCount + Sum.attackPackets]! += Math.round(packets);
    sums[record * sumCount + Sum.attackBytes]! += Math.round(bytes);
  }

  /** The minute; `pendingSeconds` of it may still turn out to be an attack. */
  close(pendingSeconds: number): DetectorMinute {
    const [epochId = ''] = this.epochs;
    return {
      ticks: Math.max(0, Math.min(60, this.ticks) - pendingSeconds),
      epochId: this.epochs.size === 1 ? epochId : '',
      overflowed: this.overflowed + this.#leftOut,
      incidentsLost: this.incidentsLost,
      mergedFrames: this.mergedFrames,
      rows: Array.from({ length: this.#table.count }, (_, record) => this.#row(record)),
    };
  }

  /** The record of a slot. It is mostly the one of the second before. */
  #recordOf(hosts: SlotTable, slot: number, direction: 0 | 1): number {
    const { key, keys } = this.#table;
    const known = this.#records[slot * 2 + direction]! - 1;
    if (known >= 0) {
      const at = known * keyWords;
      const isSame =
        keys[at + 5] === hosts.keyWord(slot, 3) &&
        keys[at + 4] === hosts.keyWord(slot, 2) &&
        keys[at + 3] === hosts.keyWord(slot, 1) &&
        keys[at + 2] === hosts.keyWord(slot, 0) &&
        keys[at + 1] === hosts.version(slot) &&
        keys[at] === direction;
      if (isSame) return known;
    }
    key[1] = hosts.version(slot);
    for (let word = 0; word < 4; word += 1) key[2 + word] = hosts.keyWord(slot, word);
    const record = this.#locate(direction);
    this.#records[slot * 2 + direction] = record + 1;
    return record;
  }

  /** The record of the key; -1 without room. */
  #locate(direction: 0 | 1): number {
    this.#table.key[0] = direction;
    const record = this.#table.locate();
    if (record < 0) this.#leftOut += 1;
    return record;
  }

  #row(record: number): DetectorRow {
    const { keys, sums } = this.#table;
    const at = record * sumCount;
    closeTen(sums, at);
    const [direction, version, w0, w1, w2, w3] = keys.subarray(record * keyWords, (record + 1) * keyWords);
    return {
      address: formatWords(version!, w0!, w1!, w2!, w3!),
      direction: attackDirections[direction!]!,
      oneSecond: [...sums.subarray(at + Sum.oneSecond, at + Sum.tenSeconds)],
      tenSeconds: [...sums.subarray(at + Sum.tenSeconds, at + Sum.open)],
      attackBytes: sums[at + Sum.attackBytes]!,
      attackPackets: sums[at + Sum.attackPackets]!,
    };
  }
}

function closeTen(sums: Float64Array, at: number): void {
  for (let i = 0; i < metrics.length; i += 1) {
    const mean = sums[at + Sum.open + i]! / tenSeconds;
    if (mean > sums[at + Sum.tenSeconds + i]!) sums[at + Sum.tenSeconds + i] = mean;
    sums[at + Sum.open + i] = 0;
  }
}

const udpKinds = [Kind.datagram, Kind.reflection, Kind.twoWayDatagram, Kind.twoWayReflection];
const rates = new Float64Array(metrics.length);
const placeOf = Object.fromEntries(metrics.map((metric, i) => [metric, i])) as Record<Metric, number>;

/** The rates of all traffic of a second: what is far below every threshold is compared no closer. The array is used again. */
export function coarseRates(counts: Counts): Rates {
  if (counts.length !== binLength) throw new RangeError('these are no counters');
  rates.fill(0);
  let packets = 0;
  let bytes = 0;
  for (let kind = 0; kind < kindCount; kind += 1) {
    packets += counts[kind]!;
    bytes += counts[Bin.bytes + kind]!;
  }
  let udpPackets = 0;
  let udpBytes = 0;
  for (const kind of udpKinds) {
    udpPackets += counts[kind]!;
    udpBytes += counts[Bin.bytes + kind]!;
  }
  const reflected = counts[Bin.bytes + Kind.reflection]! + counts[Bin.bytes + Kind.twoWayReflection]!;
  rates[placeOf.pps] = packets;
  rates[placeOf.bps] = bytes * 8;
  rates[placeOf.syn_pps] = counts[Kind.opening]!;
  rates[placeOf.udp_pps] = udpPackets;
  rates[placeOf.udp_bps] = udpBytes * 8;
  rates[placeOf.icmp_pps] = counts[Kind.icmp]! + counts[Kind.icmpAnswer]!;
  rates[placeOf.fragment_pps] = counts[Kind.fragment]!;
  rates[placeOf.amplification_bps] = reflected * 8;
  rates[placeOf.connections_per_second] = counts[Bin.opened]!;
  return rates;
}
