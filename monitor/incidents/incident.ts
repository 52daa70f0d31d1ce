/** Incidents and the observations that they are made of. Times are unix milliseconds, of the sensors. */
import { type AttackClass, titleOfClass } from '#contracts/attack-classes.ts';
import type { ActionKind, AttackDirection, IncidentSeverity, IncidentState } from '#contracts/incidents.ts';
import type { IncidentObservation, IncidentTarget, Metric } from '#contracts/sensor-api/detection.ts';

/** What is correlated: observations of different keys never are of one incident. */
export interface IncidentKey {
  siteId: number;
  target: IncidentTarget;
  /** Tells targets apart: an address with its segment where it is not unique, a capture with its sensor. */
  targetKey: string;
  direction: AttackDirection;
  severity: IncidentSeverity;
  isDrill: boolean;
}

/** What a sensor said, without the seconds. */
export type ReportedIncident = Omit<IncidentObservation, 'seconds'>;

/** The last that a sensor said of one of its incidents. */
export interface Observation extends IncidentKey {
  /** Of its row. */
  rowId: number;
  sensorId: number;
  /** The incident that it was found to belong to; null: not yet, or it is foreign. */
  incidentId: string | null;
  said: ReportedIncident;
}

/** What observations make of an incident, in any order in which they may come. */
export interface IncidentView {
  class: AttackClass;
  state: IncidentState;
  startedAtMs: number;
  detectedAtMs: number;
  lastObservedAtMs: number;
  recoveredAtMs: number | null;
  measured: Measured;
}

/** What is shown of an incident and never searched. */
export interface Measured
  extends Pick<
    ReportedIncident,
    'vectors' | 'current' | 'peak' | 'totals' | 'coverage' | 'isSpoofed' | 'filter'
  > {
  /** The threshold that was exceeded most, by the strongest capture. */
  threshold: ReportedIncident['threshold'];
  deviceKey: string;
  /** Observations that it is made of. */
  observations: number;
  hasEvidence: boolean;
}

/** What was done against an attack, as operations and the customer are told. */
export interface IncidentAction {
  kind: Exclude<ActionKind, 'alerted'>;
  atMs: number;
  endedAtMs: number | null;
}

/** An incident of the monitor. */
export interface Incident extends IncidentKey, IncidentView {
  /** UUID, the monitor's own. */
  id: string;
  /** Grows with every change that can be seen. */
  revision: number;
  /** Incidents of the site that began together with it. */
  correlationId: string | null;
  /** The incident that it turned out to be a part of: it goes on and ends with that one. */
  mergedInto: string | null;
  /** None of its observations counts any more. */
  isWithdrawn: boolean;
  /** In the order of time, at most eight; set by `setIncidentActions` alone. */
  actions: IncidentAction[];
}

/** What happened to an incident. */
export const transitionKinds = [
  'detected',
  'joined',
  'class_changed',
  'stale',
  'observed_again',
  'recovered',
  'reopened',
  'merged',
  'withdrawn',
] as const;
export type TransitionKind = (typeof transitionKinds)[number];

export interface Transition {
  kind: TransitionKind;
  atMs: number;
  details: Readonly<Record<string, string | number | boolean | null>>;
}

/** `SYN flood`; an incident of severity info is no attack. */
export function nameOfClass(name: string, severity: Incident['severity'] = 'attack'): string {
  return name === 'other' && severity === 'info' ? 'Scan' : titleOfClass(name);
}

/** `SYN flood on 198.51.100.7`, `UDP flood by 198.51.100.7`, `UDP flood on capture eth0`. */
export function titleOfIncident(
  incident: Pick<Incident, 'class' | 'severity' | 'direction' | 'target' | 'isDrill'>,
): string {
  const word = incident.direction === 'inbound' ? 'on' : 'by';
  const target = targetText(incident);
  return `${incident.isDrill ? 'Drill: ' : ''}${nameOfClass(incident.class, incident.severity)} ${word} ${target}`;
}

/** An attack that a capture sends is one whose sender is not known; one on a capture is on all servers behind it. */
function targetText({ target, direction }: Pick<Incident, 'target' | 'direction'>): string {
  if (target.kind !== 'capture') return target.value;
  return direction === 'inbound' ? `capture ${target.value}` : `a server behind ${target.value}`;
}

/** True for metrics in bits a second; the others count packets or connections. */
export const isBitMetric = (metric: Metric): boolean => metric.endsWith('bps');

/** The rate that is compared with the threshold. */
export function comparedRate(metric: Metric, rate: { bps: number; pps: number }): number {
  return isBitMetric(metric) ? rate.bps : rate.pps;
}
