/** Adds up what the detector of one capture says of one minute: ticks, largest rates, traffic of attacks. */
import {
  attackDirections,
  type DetectorMinute,
  type DetectorRow,
  detectorRowsMax,
  metrics,
} from '#contracts/sensor-api/detection.ts';
import { Bin, binLength, Kind, kindCount } from '#sensor/attack-counters/index.ts';
import type { Metric } from './thresholds.ts';
import type { Counts } from './traffic.ts';

const tenSeconds = 10;

/** The rates of one second by metric, in the order of `metrics`. */
export type Rates = Float64Array;

interface Tally {
  row: DetectorRow;
  /** Sums of the open ten seconds, and which ten seconds these are. */
  sums: Float64Array;
  ten: number;
}

export class MinuteTally {
  readonly minute: number;
  ticks = 0;
  overflowed = 0;
  incidentsLost = 0;
  mergedFrames = 0;
  /** The epochs of the seconds that were observed. */
  readonly epochs = new Set<string>();
  readonly #tallies = new Map<string, Tally>();
  #leftOut = 0;

  constructor(minute: number) {
    this.minute = minute;
  }

  noteRates(address: string, direction: 0 | 1, second: number, rates: Rates): void {
    const tally = this.#tally(address, direction);
    if (!tally) return;
    const { row, sums } = tally;
    const ten = Math.floor(second / tenSeconds);
    if (ten !== tally.ten) closeTen(tally);
    tally.ten = ten;
    for (let i = 0; i < metrics.length; i += 1) {
      sums[i]! += rates[i]!;
      if (rates[i]! > row.oneSecond[i]!) row.oneSecond[i] = rates[i]!;
    }
  }

  noteAttack(address: string, direction: 0 | 1, packets: number, bytes: number): void {
    const tally = this.#tally(address, direction);
    if (!tally) return;
    tally.row.attackPackets += Math.round(packets);
    tally.row.attackBytes += Math.round(bytes);
  }

  /** The minute; `pendingSeconds` of it may still turn out to be an attack. */
  close(pendingSeconds: number): DetectorMinute {
    for (const tally of this.#tallies.values()) closeTen(tally);
    const [epochId = ''] = this.epochs;
    return {
      ticks: Math.max(0, Math.min(60, this.ticks) - pendingSeconds),
      epochId: this.epochs.size === 1 ? epochId : '',
      overflowed: this.overflowed + this.#leftOut,
      incidentsLost: this.incidentsLost,
      mergedFrames: this.mergedFrames,
      rows: Array.from(this.#tallies.values(), ({ row }) => row),
    };
  }

  #tally(address: string, direction: 0 | 1): Tally | null {
    const key = `${direction} ${address}`;
    const known = this.#tallies.get(key);
    if (known) return known;
    if (this.#tallies.size >= detectorRowsMax) {
      this.#leftOut += 1;
      return null;
    }
    const zeros = () => metrics.map(() => 0);
    const made: Tally = {
      row: {
        address,
        direction: attackDirections[direction],
        oneSecond: zeros(),
        tenSeconds: zeros(),
        attackBytes: 0,
        attackPackets: 0,
      },
      sums: new Float64Array(metrics.length),
      ten: -1,
    };
    this.#tallies.set(key, made);
    return made;
  }
}

function closeTen({ row, sums }: Tally): void {
  for (let i = 0; i < metrics.length; i += 1) {
    const mean = sums[i]! / tenSeconds;
    if (mean > row.tenSeconds[i]!) row.tenSeconds[i] = mean;
  }
  sums.fill(0);
}

const udpKinds = [Kind.datagram, Kind.reflection, Kind.twoWayDatagram, Kind.twoWayReflection];
const rates = new Float64Array(metrics.length);

/** The rates of all traffic of a second: what is far below every threshold is compared no closer. The array is used again. */
export function coarseRates(counts: Counts): Rates {
  if (counts.length !== binLength) throw new RangeError('these are no counters');
  rates.fill(0);
  const set = (metric: Metric, value: number) => {
    rates[metrics.indexOf(metric)] = value;
  };
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
  set('pps', packets);
  set('bps', bytes * 8);
  set('syn_pps', counts[Kind.opening]!);
  set('udp_pps', udpPackets);
  set('udp_bps', udpBytes * 8);
  set('icmp_pps', counts[Kind.icmp]! + counts[Kind.icmpAnswer]!);
  set('fragment_pps', counts[Kind.fragment]!);
  set('amplification_bps', reflected * 8);
  set('connections_per_second', counts[Bin.opened]!);
  return rates;
}
