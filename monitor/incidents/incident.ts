/** Incidents and the observations that they are made of. Times are unix milliseconds, of the sensors. */
import type { AttackClass } from '#contracts/attack-classes.ts';
import type { ActionKind, AttackDirection, IncidentSeverity, IncidentState } from '#contracts/incidents.ts';
import type { IncidentObservation, IncidentTarget } from '#contracts/sensor-api/detection.ts';

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
export type Said = Omit<IncidentObservation, 'seconds'>;

/** The last that a sensor said of one of its incidents. */
export interface Observation extends IncidentKey {
  /** Of its row. */
  rowId: number;
  sensorId: number;
  /** The incident that it was found to belong to; null: not yet, or it is foreign. */
  incidentId: string | null;
  said: Said;
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
  extends Pick<Said, 'vectors' | 'current' | 'peak' | 'totals' | 'coverage' | 'isSpoofed'> {
  /** The threshold that was exceeded most, by the strongest capture. */
  threshold: Said['threshold'];
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
