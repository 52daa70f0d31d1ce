/** Adds up what the detector of one capture says of one minute: ticks, largest rates, traffic of attacks. */
import { type AttackDirection, attackDirections } from '#contracts/incidents.ts';
import {
  type DetectorMinute,
  type DetectorRow,
  detectorRowsMax,
  type Metric,
  metrics,
} from '#contracts/sensor-api/detection.ts';
import { Bin, countedHostsMax, Kind, kindCount, type SlotTable } from '#sensor/attack-counters/index.ts';
import { formatWords, KeyedTable, parseWords } from '#sensor/capture/index.ts';

const tenSeconds = 10;

/** The rates of one second by metric, in the order of `metrics`. */
export type Rates = Float64Array;

/** The rates of hosts that were worth a closer look. */
export interface ExactRates {
  /** By slot and direction: 1 for those hosts. */
  hot: Uint8Array;
  ratesOf(slot: number, direction: AttackDirection): Rates;
}

/**
 * Sums of a record: of each metric the largest rates of one and of ten seconds and the sum of the open ten seconds, side by side
 * because they change together; then traffic of attacks.
 */
const Sum = {
  oneSecond: 0,
  tenSeconds: 1,
  open: 2,
  metric: 3,
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

  /**
   * Notes the rates of all hosts in a second of the counters. `exact` has those of hosts that were worth a closer look, by slot
   * and direction; those of all others are the rates of all their traffic.
   */
  noteSecond(hosts: SlotTable, second: number, unixSecond: number, exact: ExactRates): void {
    // The first packet of a slot in the second has put it among the active ones.
    const active = hosts.activeSecond === second ? hosts.activeCount : 0;
    const ten = Math.floor(unixSecond / tenSeconds) - this.minute / tenSeconds;
    const { hot, ratesOf } = exact;
    for (let i = 0; i < active; i += 1) {
      const slot = hosts.active[i]!;
      for (let direction = 0; direction < 2; direction += 1) {
        if (!readRates(hosts, slot, direction, second)) continue;
        const isHot = hot[slot * 2 + direction] === 1;
        const own = isHot ? ratesOf(slot, attackDirections[direction]!) : rates;
        this.#noteRates(this.#recordOf(hosts, slot, direction), ten, own);
      }
    }
  }

  #noteRates(record: number, ten: number, own: Rates): void {
    if (record < 0) return;
    const { words, sums } = this.#table;
    const first = record * sumCount;
    if (ten !== words[record]) closeTen(sums, first);
    words[record] = ten;
    for (let i = 0; i < metrics.length; i += 1) {
      const rate = own[i]!;
      if (rate === 0) continue;
      const at = first + i * Sum.metric;
      sums[at + Sum.open]! += rate;
      if (rate > sums[at + Sum.oneSecond]!) sums[at + Sum.oneSecond] = rate;
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
  #recordOf(hosts: SlotTable, slot: number, direction: number): number {
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
  #locate(direction: number): number {
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
      oneSecond: metrics.map((_, i) => sums[at + i * Sum.metric + Sum.oneSecond]!),
      tenSeconds: metrics.map((_, i) => sums[at + i * Sum.metric + Sum.tenSeconds]!),
      attackBytes: sums[at + Sum.attackBytes]!,
      attackPackets: sums[at + Sum.attackPackets]!,
    };
  }
}

function closeTen(sums: Float64Array, first: number): void {
  for (let i = 0; i < metrics.length; i += 1) {
    const at = first + i * Sum.metric;
    const sum = sums[at + Sum.open]!;
    if (sum === 0) continue;
    const mean = sum / tenSeconds;
    if (mean > sums[at + Sum.tenSeconds]!) sums[at + Sum.tenSeconds] = mean;
    sums[at + Sum.open] = 0;
  }
}

const isUdp = new Uint8Array(kindCount);
for (const kind of [Kind.datagram, Kind.reply, Kind.reflection, Kind.twoWayReflection]) isUdp[kind] = 1;
/** Used again for each host. */
const rates = new Float64Array(metrics.length);
const placeOf = Object.fromEntries(metrics.map((metric, i) => [metric, i])) as Record<Metric, number>;

/**
 * Reads the rates of all traffic of a host's second into `rates`: what is far below every threshold is compared no closer. False
 * without a packet.
 */
function readRates(hosts: SlotTable, slot: number, direction: number, second: number): boolean {
  const { counters } = hosts;
  const { low, isLow } = counters;
  const bin = hosts.binOf(slot, direction, second);
  const get = (at: number) => (isLow ? low[at]! : counters.get(at));
  let packets = 0;
  let bytes = 0;
  let udpPackets = 0;
  let udpBytes = 0;
  for (let kind = 0; kind < kindCount; kind += 1) {
    const ofKind = get(bin + kind * 2);
    if (ofKind === 0) continue;
    const bytesOfKind = get(bin + kind * 2 + 1);
    packets += ofKind;
    bytes += bytesOfKind;
    if (isUdp[kind] === 0) continue;
    udpPackets += ofKind;
    udpBytes += bytesOfKind;
  }
  if (packets === 0) return false;
  const packetsOf = (kind: number) => get(bin + kind * 2);
  const bytesOf = (kind: number) => (packetsOf(kind) === 0 ? 0 : get(bin + kind * 2 + 1));
  rates[placeOf.pps] = packets;
  rates[placeOf.bps] = bytes * 8;
  rates[placeOf.syn_pps] = packetsOf(Kind.opening);
  rates[placeOf.udp_pps] = udpPackets;
  rates[placeOf.udp_bps] = udpBytes * 8;
  rates[placeOf.icmp_pps] = packetsOf(Kind.icmp) + packetsOf(Kind.icmpAnswer);
  rates[placeOf.fragment_pps] = packetsOf(Kind.fragment);
  rates[placeOf.amplification_bps] = (bytesOf(Kind.reflection) + bytesOf(Kind.twoWayReflection)) * 8;
  rates[placeOf.connections_per_second] = get(bin + Bin.opened);
  return true;
}
