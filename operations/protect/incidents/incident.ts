/** What an incident is as it is stored, and what a list of incidents can be asked for. */
import type { Incident, IncidentAction } from '#contracts/admin-api/incidents.ts';
import type { AttackClass } from '#contracts/attack-classes.ts';
import type { AttackDirection, IncidentState } from '#contracts/incidents.ts';
import type { AlertChannel } from '../settings/index.ts';

/** As the monitor says it, with a class that we know. */
export type IncidentVector = Incident['vectors'][number] & { class: AttackClass };

/** An incident of a server. Times are the sensor's own. */
export interface IncidentRow {
  /** A UUID, the monitor's. */
  id: string;
  serverId: number;
  tenantId: number;
  address: string;
  direction: AttackDirection;
  class: AttackClass;
  severity: 'attack' | 'info';
  /** The strongest first. */
  vectors: IncidentVector[];
  state: IncidentState;
  startedAt: Date;
  detectedAt: Date;
  lastObservedAt: Date;
  recoveredAt: Date | null;
  /** Null while it is unknown. */
  currentBps: number | null;
  currentPps: number | null;
  peakBps: number;
  peakBpsAt: Date;
  peakPps: number;
  peakPpsAt: Date;
  totalBytes: number;
  totalPackets: number;
  coverage: 'complete' | 'partial' | 'unknown';
  isDrill: boolean;
  /** What was done about it, as the monitor says. */
  actions: IncidentAction[];
  /** When the customer was told of its start; null where there was no recipient. */
  alertedAt: Date | null;
  /** The channels by which that was. */
  alertedBy: AlertChannel[];
}

/** Which incidents a list has. */
export interface IncidentFilter {
  states?: readonly IncidentState[] | undefined;
  severity?: 'attack' | 'info' | undefined;
  /** Only incidents that overlap this time. */
  range?: { fromMs: number; toMs: number } | undefined;
}

export interface IncidentQuery extends IncidentFilter {
  /** The last one of the page before. */
  after?: IncidentCursor | undefined;
  /** The largest page. */
  limit: number;
}

/** The place of an incident in a list, newest first. */
export interface IncidentCursor {
  startedMs: number;
  id: string;
}

/** What is not applied, and how it is answered. */
export type Refusal = 'unmatched' | 'identity_conflict' | 'terminal';

/** A measure as customers see it. */
export interface Measure extends Pick<IncidentAction, 'kind' | 'at' | 'ended_at'> {
  /** Packets a second that a filter drops now; null where it does not, or nothing is known of now. */
  dropped_pps: number | null;
}

/** What was done about an incident: by the monitor, and our own alert to the customer. */
export function actionsOf({ actions, alertedAt, state }: IncidentRow): Measure[] {
  const measures = actions.map(({ dropped_pps = null, ...action }) => ({
    ...action,
    dropped_pps: state === 'active' && action.ended_at === null ? dropped_pps : null,
  }));
  if (alertedAt === null) return measures;
  return [...measures, { kind: 'alerted', at: alertedAt.toISOString(), ended_at: null, dropped_pps: null }];
}
