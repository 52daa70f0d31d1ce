/**
 * The words of attack detection that sensors and monitors share: classes, metrics with their default thresholds, and the
 * limits of what travels. docs/detection.md says how a sensor decides.
 */
import { type Static, Type } from 'typebox';
import type { AttackClass } from '../attack-classes.ts';
import type { AttackDirection, IncidentCoverage, IncidentSeverity, TargetKind } from '../incidents.ts';

/** What has a threshold: packets and bits of one second, by kind of traffic. */
export const metrics = [
  'pps',
  'bps',
  'syn_pps',
  'udp_pps',
  'udp_bps',
  'icmp_pps',
  'fragment_pps',
  'amplification_bps',
  'amplification_spread_bps',
  'connections_per_second',
] as const;
export type Metric = (typeof metrics)[number];

/** Metrics of one detector minute; a newer sensor may have more than we know. */
export const metricsMax = 32;

/** Two of three seconds at this many thresholds are an incident; so is a mean of five at one. */
export const fastTriggerRatio = 1.7;

/** What is ordinary traffic and no part of an attack, with its words. */
export const ordinaryRules = {
  pairs: 'packets of established pairs',
  connections: 'segments of accepted connections',
  handshakes: 'openings of completed connections',
  answers: 'answers to packets of the other direction',
} as const;
export type OrdinaryRule = keyof typeof ordinaryRules;

/** What makes an incident of seconds, with its words. */
export const triggers = {
  two_of_three: `two of three seconds at ${fastTriggerRatio} times a threshold`,
  mean_of_five:
    'a mean of five seconds at a threshold, at least two of them at it; one counts for half of it at most',
  pulses: `three separate seconds within a minute at ${fastTriggerRatio} times a threshold`,
} as const;
export type Trigger = keyof typeof triggers;

/** The rule by which sensors count what may be an attack: 1 by flows, 2 by pairs of addresses. */
export const countingRule = 2;

/** Rates of one address in one direction; null: not judged. */
export type ThresholdValues = Readonly<Record<Metric, number | null>>;
export type ThresholdSet = Readonly<Record<AttackDirection, ThresholdValues>>;

/** The rates that a threshold may have. */
export const thresholdMin = 1;
export const thresholdMax = 1e15;

/**
 * Defaults for one address. Outbound, other attacks are seen by their packets and bytes; what a server reflects is amplification for
 * those who receive it.
 */
export const thresholdDefaults: ThresholdSet = {
  inbound: {
    pps: 50_000,
    bps: 900e6,
    syn_pps: 10_000,
    udp_pps: 30_000,
    udp_bps: 400e6,
    icmp_pps: 5000,
    fragment_pps: 5000,
    amplification_bps: 150e6,
    amplification_spread_bps: 100e6,
    connections_per_second: 10_000,
  },
  outbound: {
    pps: 80_000,
    bps: 900e6,
    syn_pps: 3000,
    udp_pps: null,
    udp_bps: null,
    icmp_pps: null,
    fragment_pps: null,
    amplification_bps: 150e6,
    amplification_spread_bps: 100e6,
    connections_per_second: null,
  },
};

/** Vectors of an incident, ports of a vector, remote prefixes of an observation. */
export const vectorsMax = 3;
export const vectorPortsMax = 8;
export const remotesMax = 20;
/** Seconds of a decision. */
export const decisionSecondsMax = 5;
/** Observations of one upload, and seconds of one observation. */
export const incidentsMax = 256;
export const incidentSecondsMax = 64;
/** Addresses with traffic in one detector minute, each in both directions. */
export const detectorRowsMax = 2 * 4096;
/** Epochs of one upload, and prefixes of one epoch: protected targets and additional protected CIDRs. */
export const epochsMax = 64;
export const additionalCidrsMax = 128;
export const epochPrefixesMax = 4096 + additionalCidrsMax;
export const thresholdGroupsMax = 512;
export const drillsMax = 8;

const Threshold = Type.Union([Type.Number({ minimum: thresholdMin, maximum: thresholdMax }), Type.Null()], {
  description: 'Null: not judged.',
});
const PlanThresholds = Type.Record(Type.String(), Threshold, {
  description:
    'By metric. A metric that is missing has its default; amplification outbound what it has inbound.',
});

/** The plan's section of attack detection. */
export const PlanDetection = Type.Object({
  additional_cidrs: Type.Array(Type.String(), {
    maxItems: additionalCidrsMax,
    description: 'Protected beside the targets.',
  }),
  inbound: PlanThresholds,
  outbound: PlanThresholds,
  groups: Type.Array(
    Type.Object({
      prefixes: Type.Array(Type.String(), { maxItems: 4096 }),
      inbound: PlanThresholds,
      outbound: PlanThresholds,
    }),
    {
      maxItems: thresholdGroupsMax,
      description: 'Addresses with thresholds of their own, whole; the longest prefix counts.',
    },
  ),
  takes_evidence: Type.Boolean({ description: 'Capture files of incidents are wanted.' }),
  drills: Type.Array(
    Type.Object({
      id: Type.String(),
      target: Type.String(),
      direction: Type.Union([Type.Literal('inbound'), Type.Literal('outbound')]),
      class: Type.String(),
      pps: Type.Number(),
      bps: Type.Number(),
      started_at: Type.String({ description: 'RFC 3339, UTC.' }),
      seconds: Type.Integer({ minimum: 1, maximum: 3600 }),
    }),
    { maxItems: drillsMax, description: 'Synthetic counters; their incidents are marked.' },
  ),
});
export type PlanDetection = Static<typeof PlanDetection>;

/** What one sensor sees of one incident; a later revision stands for all before. Times are unix milliseconds. */
export interface IncidentObservation {
  /** UUID, made by the sensor. */
  id: string;
  /** From 1, one higher with each observation. */
  revision: number;
  /** The interface's name. */
  capture: string;
  target: IncidentTarget;
  direction: AttackDirection;
  class: AttackClass;
  severity: IncidentSeverity;
  vectors: IncidentVector[];
  state: 'active' | 'recovered';
  startedAtMs: number;
  detectedAtMs: number;
  lastObservedAtMs: number;
  recoveredAtMs: number | null;
  /** Rates of the last second; null after the recovery. */
  current: IncidentRate | null;
  peak: IncidentRate & { bpsAtMs: number; ppsAtMs: number };
  totals: IncidentAmount;
  /** `unknown`: nothing more was observed since the revision before. */
  coverage: IncidentCoverage;
  /** Local `segment|MAC` of the target's packets; blank when unknown or contradictory. */
  deviceKey: string;
  /** The threshold that was exceeded most when it was detected. */
  threshold: { metric: Metric; value: number } | null;
  /** The heaviest remote prefixes: sources of an inbound attack, destinations of an outbound one. */
  remotes: { prefix: string; share: number }[];
  /** Seconds that were observed since the revision before, in order. */
  seconds: (IncidentRate & { atMs: number })[];
  /** An operator's drill, not traffic. */
  drill: boolean;
  /** A capture file of it is on its way. */
  hasEvidence: boolean;
  /** Why it is an incident; missing from older sensors. */
  reason?: IncidentReason;
  /** Its packets carry made-up sources: not the target's addresses, whose MAC sent them. */
  isSpoofed?: true;
  /** What the filter at the uplink did against it; missing without rules for it. */
  filter?: IncidentFilter;
}

/** What the rules of a filter did against an incident so far. */
export interface IncidentFilter {
  /** What they matched and no established pair of addresses carried: it was dropped, or would have been. */
  matched: IncidentAmount;
  dropped: IncidentAmount;
  /** What they matched and pairs carried that were established before the attack. */
  passed: IncidentAmount;
  /** Matched in the last second. */
  current: IncidentRate;
  isDropping: boolean;
  /** Why nothing is filtered, or only counted; blank where all is well. */
  problem: string;
}
export const filterProblemMax = 400;

/** Why the seconds of a decision are an incident. Amounts are those of the strongest of them. */
export interface IncidentReason {
  trigger: Trigger;
  /** How far each second exceeded a threshold, 1 is at it; the newest last. */
  ratios: number[];
  all: IncidentAmount;
  /** What of it was taken off as ordinary; the rest may be an attack. */
  ordinary: (IncidentAmount & { rule: OrdinaryRule })[];
  /** Pairs of the target with traffic in the newest second; null: not known, as of prefixes and captures. */
  pairs: { established: number; others: number } | null;
  /** About so many remote addresses; null: not known. */
  remotes: number | null;
}

export interface IncidentAmount {
  packets: number;
  bytes: number;
}

export interface IncidentTarget {
  kind: TargetKind;
  /** An address, a prefix, or the capture's name. */
  value: string;
}

export interface IncidentRate {
  bps: number;
  pps: number;
}

export interface IncidentVector {
  class: AttackClass;
  /** 0 to 1, in steps of a millionth; as are the shares of remote prefixes. */
  packetsShare: number;
  bytesShare: number;
  /** Of the target; of amplification, and of a reflector, those of the source. */
  ports: number[];
  /** Missing from an older sensor. */
  details?: VectorDetails;
}

/** A vector over the whole incident. */
export interface VectorDetails {
  /** From which a UDP flood comes. */
  sourcePorts: number[];
  /** IP protocols of a `protocol_flood`. */
  protocols: number[];
  startedAtMs: number;
  lastObservedAtMs: number;
  /** The largest rates of its seconds. */
  peak: IncidentRate;
}

/** What was protected from a moment on; another set is another epoch. */
export interface DetectorEpoch {
  /** UUID. */
  id: string;
  sinceMs: number;
  /** Canonical prefixes and addresses. */
  prefixes: string[];
  /** The sensor's `countingRule`; missing from older sensors, which count by rule 1. */
  countingRule?: number;
}

/** What the detector of one capture can say of one minute. */
export interface DetectorMinute {
  /** Seconds of the minute that were observed as a whole and judged in time, at most 60. */
  ticks: number;
  /** The epoch that lasted the whole minute; blank: none did. */
  epochId: string;
  /** Packets of protected addresses without counters of their own. */
  overflowed: number;
  /** Incidents that found no room. */
  incidentsLost: number;
  /** Frames that offload merged out of an unknown number of packets: packets were judged by the least that there were. */
  mergedFrames: number;
  /** Protected addresses with traffic, each once for each direction. */
  rows: DetectorRow[];
}

export interface DetectorRow {
  address: string;
  direction: AttackDirection;
  /** By metric, in the order of `metrics`: the largest rate of one second, and the largest mean of ten seconds. */
  oneSecond: number[];
  tenSeconds: number[];
  /** Traffic of this minute that belongs to an incident of severity attack whose target is this address. */
  attackBytes: number;
  attackPackets: number;
}
