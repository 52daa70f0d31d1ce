/**
 * The traffic of one uplink as a whole: what all protected addresses behind it receive together.
 *
 * It is a target where it fills 80 % of the link, or where it has four times what it usually has. Traffic of hosts and
 * prefixes that have an incident of their own is no attack on the capture, and does not count for the second rule. A link
 * of unknown speed, and a capture that is too young, are not judged by what is not known of them.
 */
import { type Metric, metrics } from '#contracts/sensor-api/detection.ts';
import { Direction, isNetwork, TrafficDetail } from '#sensor/attack-counters/index.ts';
import { aloneRatio, type CountedTargets, HostSums, prefixText, secondsUpTo } from './host-sums.ts';
import type { Target } from './incident.ts';
import type { Judge } from './judge.ts';
import { volumeRatio } from './ratios.ts';
import type { TargetSecond, TargetWindow } from './target-window.ts';
import type { ThresholdSet } from './threshold-book.ts';
import type { DirectionThresholds } from './thresholds.ts';
import { type Amount, amountOf, attackPart, type Counts, emptyCounts, totalOf } from './traffic.ts';
import { windowSeconds } from './trigger.ts';

/** Minutes that are looked at, and how many of them must have been observed as a whole and without an attack. */
const minutesBack = 30;
const healthyMin = 5;

interface MeanRate {
  pps: number;
  bps: number;
}

interface OpenMinute {
  minute: number;
  healthySeconds: number;
  packets: number;
  bytes: number;
}

class CaptureBaseline {
  #open: OpenMinute | null = null;
  #healthy: (MeanRate & { minute: number })[] = [];

  /** Adds one second, in unix seconds. A minute counts when each of its seconds was healthy. */
  note(unixSecond: number, amount: { packets: number; bytes: number }, isHealthy: boolean): void {
    const minute = Math.floor(unixSecond / 60);
    if (this.#open?.minute !== minute) {
      this.#close(minute);
      this.#open = { minute, healthySeconds: 0, packets: 0, bytes: 0 };
    }
    if (!isHealthy) return;
    this.#open.healthySeconds += 1;
    this.#open.packets += amount.packets;
    this.#open.bytes += amount.bytes;
  }

  /** The mean; null while too little is known. */
  mean(): MeanRate | null {
    const count = this.#healthy.length;
    if (count < healthyMin) return null;
    const of = (field: 'pps' | 'bps') => this.#healthy.reduce((sum, one) => sum + one[field], 0) / count;
    return { pps: of('pps'), bps: of('bps') };
  }

  /** Minutes in the future are of a clock that was set back since. */
  #close(now: number): void {
    const one = this.#open;
    if (one && one.healthySeconds >= 60)
      this.#healthy.push({ minute: one.minute, pps: one.packets / 60, bps: (one.bytes * 8) / 60 });
    this.#healthy = this.#healthy.filter(({ minute }) => minute < now && minute >= now - minutesBack);
  }
}

export interface WatchedCapture {
  /** The interface's name, or the file's. */
  name: string;
  /** Speed of its link in bits a second; null: unknown. Asked once a minute. */
  linkBps(): number | null;
}

/** Part of the link's speed, and multiple of what is usual. */
const linkShare = 0.8;
const usualFactor = 4;
/** Part of a threshold from which the addresses are looked at one by one. */
const lookedAtRatio = 0.2;
/** Part of a threshold from which it matters which packets belong to conversations. */
const nearRatio = 0.5;
/** Preamble, Ethernet header, checksum and pause of a frame, and the least that a frame takes of the link. */
const frameOverhead = 38;
const frameBytesMin = 84;

const notJudged = Object.fromEntries(metrics.map((metric) => [metric, Number.POSITIVE_INFINITY])) as Record<
  Metric,
  number
>;

interface Watched {
  counters: CountedTargets;
  /** By the group of a slot. */
  sets: readonly ThresholdSet[];
  judge: Judge;
}

export class CaptureWatch {
  readonly target: Target;
  readonly #capture: WatchedCapture;
  readonly #baseline = new CaptureBaseline();
  /** All inbound traffic of the latest seconds. */
  #totals = new Map<number, Counts>();
  #linkBps: number | null = null;
  #linkMinute = -1;
  /** By what the capture was judged last while it had no incident. */
  #judgedBy: DirectionThresholds | null = null;

  constructor(capture: WatchedCapture) {
    this.#capture = capture;
    this.target = { kind: 'capture', value: capture.name };
  }

  /**
   * Notes what all addresses received in the closed `second`. `isHealthy`: it was observed as a whole, without loss. Call it
   * before `window`.
   */
  count(second: number, unixSecond: number, isHealthy: boolean, total: Counts, judge: Judge): void {
    this.#totals.set(second, total);
    for (const at of this.#totals.keys()) if (at <= second - windowSeconds) this.#totals.delete(at);
    const isQuiet = !judge.openIncidents().some(({ severity, drill }) => severity === 'attack' && !drill);
    this.#baseline.note(unixSecond, totalOf(total), isHealthy && isQuiet);
    const minute = Math.floor(unixSecond / 60);
    if (minute !== this.#linkMinute) this.#linkBps = this.#capture.linkBps();
    this.#linkMinute = minute;
  }

  /** True for half of what the capture may have, or more. */
  isNear(received: Amount, sets: readonly ThresholdSet[]): boolean {
    const ratio = Math.max(this.#linkRatio(received), volumeRatio(received, this.#thresholdsNow(sets)));
    return ratio >= nearRatio;
  }

  /** The capture as a target, null when it is not worth judging. Call it after the windows of hosts and prefixes. */
  window(second: number, { counters, sets, judge }: Watched): TargetWindow | null {
    const thresholds = this.#thresholds(sets, judge);
    const seconds = secondsUpTo(second);
    const totals = seconds.map((at) => this.#totals.get(at) ?? emptyCounts());
    const { target } = this;
    const isHot = totals.some((one) => volumeRatio(totalOf(one), thresholds) >= lookedAtRatio);
    if (!isHot && !judge.hasOpen(target, 'inbound')) return null;
    const rest = new RestOfCapture(seconds, { counters, sets, judge });
    const parts = rest.seconds.map(({ counts, opposite }) =>
      amountOf(attackPart(counts, opposite, 'inbound')),
    );
    const volume = totals.map((total, i) =>
      Math.max(this.#linkRatio(totalOf(total)), volumeRatio(totalOf(rest.seconds[i]!.counts), thresholds)),
    );
    return {
      ...{ target, direction: 'inbound', thresholds, detail: rest.detail() },
      seconds: totals.map((counts, i) => ({
        ...{ counts, opposite: emptyCounts(), unassigned: rest.seconds[i]! },
      })),
      overall: { attack: parts.map((part) => this.#linkRatio(part)), volume },
    };
  }

  /** What the traffic takes of the link, divided by what it may. */
  #linkRatio({ packets, bytes }: Amount): number {
    if (this.#linkBps === null) return 0;
    const onLink = Math.max(bytes + packets * frameOverhead, packets * frameBytesMin) * 8;
    return onLink / (this.#linkBps * linkShare);
  }

  /**
   * What the capture may have. While an incident goes on they stay as they are, because minutes of an attack are not
   * usual ones, and after a restart they are those that the incident exceeded.
   */
  #thresholds(sets: readonly ThresholdSet[], judge: Judge): DirectionThresholds {
    const now = this.#thresholdsNow(sets);
    const isUnknown = now.pps === Number.POSITIVE_INFINITY && now.bps === Number.POSITIVE_INFINITY;
    const isKept =
      judge.isAttacked(this.target, 'inbound') || (isUnknown && judge.hasOpen(this.target, 'inbound'));
    if (!isKept) this.#judgedBy = now;
    return this.#judgedBy ?? this.#exceeded(judge) ?? now;
  }

  #thresholdsNow(sets: readonly ThresholdSet[]): DirectionThresholds {
    const usual = this.#baseline.mean();
    // As much as makes a prefix a target is the least that makes a capture one.
    const least = sets[0]!.prefix.inbound;
    const of = (metric: 'pps' | 'bps') =>
      usual ? Math.max(least[metric], usual[metric] * usualFactor) : Number.POSITIVE_INFINITY;
    const ofLink = this.#linkBps === null ? Number.POSITIVE_INFINITY : this.#linkBps * linkShare;
    return { ...notJudged, pps: of('pps'), bps: Math.min(of('bps'), ofLink) };
  }

  #exceeded(judge: Judge): DirectionThresholds | null {
    const incident = judge
      .openIncidents()
      .find(({ target, direction }) => target.kind === 'capture' && direction === 'inbound');
    if (!incident?.threshold) return null;
    return { ...notJudged, [incident.threshold.metric]: incident.threshold.value };
  }
}

/** The inbound traffic of a capture without that of hosts and prefixes that are targets of their own. */
class RestOfCapture {
  readonly seconds: TargetSecond[];
  readonly #counters: CountedTargets;
  readonly #hosts: number[] = [];
  readonly #prefixes: number[] = [];

  constructor(seconds: readonly number[], { counters, sets, judge }: Watched) {
    this.#counters = counters;
    this.seconds = seconds.map(() => ({ counts: emptyCounts(), opposite: emptyCounts() }));
    const { hosts, prefixes } = counters;
    const sums = new HostSums(counters, sets);
    const first = seconds[0] ?? 0;
    const attacked = new Set<number>();
    for (let slot = 0; slot < prefixes.count; slot += 1) {
      if (isNetwork(prefixes, slot)) continue;
      if (judge.hasOpen({ kind: 'prefix', value: prefixText(prefixes, slot) }, 'inbound')) attacked.add(slot);
      else {
        this.#prefixes.push(slot);
        if (prefixes.lastSecond(slot) < first) continue;
        for (const [i, at] of seconds.entries())
          prefixes.addBin(slot, Direction.inbound, at, this.seconds[i]!.counts);
      }
    }
    for (let slot = 0; slot < hosts.count; slot += 1) {
      if (hosts.lastSecond(slot) < first || attacked.has(counters.prefixOf(slot))) continue;
      if (sums.hasIncident(slot, judge) || sums.isInAttackedNetwork(slot, judge)) continue;
      if (seconds.some((at) => sums.ratioOf(slot, at) >= aloneRatio)) continue;
      this.#hosts.push(slot);
      sums.addHost(slot, seconds, this.seconds);
    }
  }

  /** Sources and ports of what is looked at among it: of prefixes, else of their hosts; of the heavier IP version. */
  detail(): TrafficDetail | null {
    const counters = this.#counters;
    const { hosts, prefixes } = counters;
    const ofPrefixes = new Map(
      this.#prefixes.flatMap((slot) => {
        const detail = counters.detailOf(prefixes, slot, Direction.inbound);
        return detail ? [[slot, detail.summary()] as const] : [];
      }),
    );
    const ofHosts = this.#hosts.flatMap((slot) => {
      const detail = ofPrefixes.has(counters.prefixOf(slot))
        ? null
        : counters.detailOf(hosts, slot, Direction.inbound);
      return detail ? [detail.summary()] : [];
    });
    const all = [...ofPrefixes.values(), ...ofHosts];
    const weightOf = (version: number) =>
      all.reduce((sum, one) => sum + (one.version === version ? one.weight : 0), 0);
    const version = weightOf(6) > weightOf(4) ? 6 : 4;
    const joined = all.filter((one) => one.version === version && one.weight > 0);
    if (joined.length === 0) return null;
    const detail = new TrafficDetail();
    for (const one of joined) detail.join(one);
    return detail;
  }
}
