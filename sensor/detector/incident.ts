/** One incident: what it is, its own times, its rates, and when it is over. Times are unix milliseconds. */
import type { AttackClass } from '#contracts/attack-classes.ts';
import type { TargetKind } from '#contracts/incidents.ts';
import type { IncidentFilter, IncidentReason, Metric } from '#contracts/sensor-api/detection.ts';
import type { HeavyPrefix } from '#sensor/attack-counters/index.ts';
import type { Vector, Verdict } from './classify.ts';
import type { DirectionName } from './thresholds.ts';
import type { Amount } from './traffic.ts';

export interface Target {
  kind: TargetKind;
  /** An address or a prefix in canonical text, or the capture's name. */
  value: string;
  /** Of a capture: the MAC that sends the attack from addresses which are not its own. */
  mac?: string;
}

export interface Rate {
  bps: number;
  pps: number;
}

/** When traffic of one class was a part of an attack, and its strongest second. */
export interface VectorTimes {
  class: AttackClass;
  startedAt: number;
  lastObservedAt: number;
  peak: Rate;
  /** As of its `Vector`. */
  ports: number[];
  sourcePorts: number[];
  protocols: number[];
}

export interface Incident extends Verdict {
  /** UUID. */
  id: string;
  /** An operator's drill, not traffic. */
  drill: boolean;
  target: Target;
  direction: DirectionName;
  /** It follows the attack, as the vectors do: they are those of the latest seconds. */
  class: AttackClass;
  /** All classes that the attack has had, in the order of their beginning. */
  vectorTimes: VectorTimes[];
  state: 'active' | 'recovered';
  startedAt: number;
  detectedAt: number;
  lastObservedAt: number;
  recoveredAt: number | null;
  /** Rates of the last second; null after the recovery. */
  current: Rate | null;
  peak: Rate & { bpsAt: number; ppsAt: number };
  totals: Amount;
  /** Partial when a second was not observed, or packets could not be counted. */
  coverage: 'complete' | 'partial';
  /** The threshold that was exceeded most when it was detected. */
  threshold: { metric: Metric; value: number } | null;
  /** Why it was detected; missing of one that an older sensor stored. */
  reason?: IncidentReason;
  /** The remote prefixes with the most packets: sources of an inbound attack, destinations of an outbound one. */
  remotes: HeavyPrefix[];
  /** What the filter at the uplink did against it; missing without rules for it. */
  filter?: IncidentFilter;
  /** The latest seconds that were observed; who reads them empties them. */
  seconds: (Rate & { at: number })[];
}

/** What one second shows of an incident. */
export interface Observation {
  /** Start of the second. */
  at: number;
  amount: Amount;
  /** Largest ratio to a threshold, and what it may have been at most. */
  ratio: number;
  ratioMax: number;
}

/** The class stays while it has so much of the attack. */
const keptShare = 0.3;
/** Below this ratio a second is healthy. */
const healthyRatio = 0.7;
const recoverySeconds = 60;
/** Seconds that an incident keeps for its reader. */
const secondsMax = 64;

/** An incident and the state of its recovery. */
export class OpenIncident {
  readonly incident: Incident;
  #healthySeconds = 0;
  #strongestRatio = 0;

  constructor(incident: Incident) {
    this.incident = incident;
  }

  /**
   * Adds a second that was observed as a whole. Returns true when it was the strongest so far. `isHealthy` false: packets
   * were lost in it, so that it is no step of the recovery.
   */
  observe({ at, amount, ratio, ratioMax }: Observation, isHealthy = true): boolean {
    const { incident } = this;
    const rate = { bps: amount.bytes * 8, pps: amount.packets };
    incident.current = rate;
    incident.seconds.push({ at, ...rate });
    if (incident.seconds.length > secondsMax) incident.seconds.shift();
    if (rate.bps > incident.peak.bps) [incident.peak.bps, incident.peak.bpsAt] = [rate.bps, at];
    if (rate.pps > incident.peak.pps) [incident.peak.pps, incident.peak.ppsAt] = [rate.pps, at];
    if (ratioMax < healthyRatio) {
      if (isHealthy) this.#healthySeconds += 1;
      if (this.#healthySeconds >= recoverySeconds) this.#recover(at + 1000);
      return false;
    }
    this.#healthySeconds = 0;
    incident.lastObservedAt = Math.max(incident.lastObservedAt, at + 1000);
    const { totals } = incident;
    totals.packets += amount.packets;
    totals.bytes += amount.bytes;
    const isStrongest = ratio > this.#strongestRatio;
    if (isStrongest) this.#strongestRatio = ratio;
    return isStrongest;
  }

  /** Notes what a second of the attack consists of. */
  noteVectors(at: number, amounts: readonly (Amount & { class: AttackClass })[]): void {
    const { vectorTimes } = this.incident;
    for (const { class: name, packets, bytes } of amounts) {
      let times = vectorTimes.find((one) => one.class === name);
      if (!times) {
        times = {
          ...{ class: name, startedAt: at, lastObservedAt: at, peak: { bps: 0, pps: 0 } },
          ...{ ports: [], sourcePorts: [], protocols: [] },
        };
        vectorTimes.push(times);
      }
      times.lastObservedAt = at + 1000;
      times.peak = { bps: Math.max(times.peak.bps, bytes * 8), pps: Math.max(times.peak.pps, packets) };
    }
  }

  /** Takes what the latest seconds are. `isFiltered`: of a vector whose packets were dropped the ports are those of before. */
  follow(seen: Verdict, isFiltered = false): void {
    const { incident } = this;
    const verdict = isFiltered ? { ...seen, vectors: seen.vectors.map((one) => this.#withPorts(one)) } : seen;
    const own = verdict.vectors.find((vector) => vector.class === incident.class);
    if (!own || Math.max(own.packets_share, own.bytes_share) < keptShare) incident.class = verdict.class;
    incident.vectors = verdict.vectors;
    for (const { class: name, ports, source_ports: sourcePorts, protocols } of verdict.vectors) {
      const times = incident.vectorTimes.find((one) => one.class === name);
      if (times) Object.assign(times, { ports, sourcePorts, protocols });
    }
  }

  #withPorts(vector: Vector): Vector {
    const before = this.incident.vectors.find((one) => one.class === vector.class);
    const isKnown = [vector.ports, vector.source_ports, vector.protocols].some(({ length }) => length > 0);
    if (!before || isKnown) return vector;
    const { ports, source_ports, protocols } = before;
    return { ...vector, ports, source_ports, protocols };
  }

  /** A part of the time was not observed. The recovery waits; it never follows from missing data. */
  noteGap(): void {
    this.incident.coverage = 'partial';
  }

  /** The clock was set by so much. */
  shiftTimes(ms: number): void {
    const { incident } = this;
    for (const field of ['startedAt', 'detectedAt', 'lastObservedAt'] as const) incident[field] += ms;
    if (incident.recoveredAt !== null) incident.recoveredAt += ms;
    incident.peak.bpsAt += ms;
    incident.peak.ppsAt += ms;
    for (const second of incident.seconds) second.at += ms;
    for (const times of incident.vectorTimes) {
      times.startedAt += ms;
      times.lastObservedAt += ms;
    }
  }

  reopen(): void {
    this.#healthySeconds = 0;
    this.incident.state = 'active';
    this.incident.recoveredAt = null;
  }

  #recover(at: number): void {
    const { incident } = this;
    incident.state = 'recovered';
    // The clock of a capture may have been set back meanwhile.
    incident.recoveredAt = Math.max(at, incident.detectedAt);
    incident.current = null;
  }
}

/** A new incident without any traffic yet. */
export function newIncident(
  target: Target,
  direction: DirectionName,
  verdict: Verdict,
  startedAt: number,
  detectedAt: number,
): Incident {
  return {
    id: crypto.randomUUID(),
    drill: false,
    target,
    direction,
    class: verdict.class,
    severity: verdict.severity,
    vectors: verdict.vectors,
    vectorTimes: [],
    state: 'active',
    startedAt,
    detectedAt,
    lastObservedAt: startedAt,
    recoveredAt: null,
    current: null,
    peak: { bps: 0, bpsAt: startedAt, pps: 0, ppsAt: startedAt },
    totals: { packets: 0, bytes: 0 },
    coverage: 'complete',
    threshold: null,
    remotes: [],
    seconds: [],
  };
}
