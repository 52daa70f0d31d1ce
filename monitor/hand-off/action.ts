/** Actions: what a rule does about one address, from its start to its end. */
import type { AttackDirection } from '#contracts/incidents.ts';
import type { Incident, IncidentAction } from '#monitor/incidents/index.ts';
import type { RuleKind, RuleTarget } from './rule.ts';

export const actionStates = ['waiting', 'active', 'ending', 'ended', 'failed'] as const;
export type ActionState = (typeof actionStates)[number];

/** A part of an attack. `protocols`: IP protocols of a `protocol_flood`. */
export interface AttackVector {
  class: string;
  ports: readonly number[];
  protocols?: readonly number[];
}

/** What receivers are told of an attack. */
export interface Attack {
  incidentId: string;
  class: string;
  direction: AttackDirection;
  /** Peaks at the time of the action. */
  pps: number;
  bps: number;
  startedAtMs: number;
  detectedAtMs: number;
  vectors: AttackVector[];
}

export interface Action {
  id: number;
  /** UUID; the same in every attempt. */
  publicId: string;
  siteId: number;
  ruleId: number;
  ruleName: string;
  isRuleRemoved: boolean;
  incidentId: string | null;
  kind: RuleKind;
  isDryRun: boolean;
  address: string;
  target: RuleTarget;
  holdSeconds: number;
  attack: Attack;
  state: ActionState;
  createdAtMs: number;
  /** Null: it had no effect yet. */
  startedAtMs: number | null;
  releasedAtMs: number | null;
  endedAtMs: number | null;
  stoppedBy: string | null;
  wasTried: boolean;
  hasFailed: boolean;
  attempts: number;
  nextAttemptAtMs: number;
  /** What the command wrote, or what a dry run would have done. */
  output: string;
  lastError: string | null;
  /** It waits for an operator. */
  needsApproval: boolean;
  /** Of a filter: when it drops, or dropped; null: it only counts. */
  dropAtMs: number | null;
  /** Who let it drop by hand. */
  dropBy: string | null;
}

/** The two steps of an action, in FastNetMon's words. */
export type Step = 'ban' | 'unban';

/** How operations and the customer are told of each kind. */
export const toldKinds: Readonly<Record<RuleKind, IncidentAction['kind']>> = {
  webhook: 'webhook',
  command: 'command',
  blackhole: 'blackholed',
  flowspec: 'filtered',
  filter: 'dropped',
};

/** The incident as receivers are told of it. */
export function attackOf(incident: Incident): Attack {
  const { measured } = incident;
  return {
    incidentId: incident.id,
    class: incident.class,
    direction: incident.direction,
    pps: Math.round(measured.peak.pps),
    bps: Math.round(measured.peak.bps),
    startedAtMs: incident.startedAtMs,
    detectedAtMs: incident.detectedAtMs,
    vectors: measured.vectors.map(({ class: name, ports, details }) => ({
      ...{ class: name, ports },
      ...(details && details.protocols.length > 0 && { protocols: details.protocols }),
    })),
  };
}

/** FastNetMon's word for a direction. */
export const directionWord = (direction: AttackDirection) =>
  direction === 'inbound' ? 'incoming' : 'outgoing';

/** What a command reads on its standard input, and the data of a webhook. */
export function describeStep(action: Action, step: Step): Record<string, unknown> {
  const { attack } = action;
  const time = (ms: number) => new Date(ms).toISOString();
  return {
    version: 1,
    action: step,
    action_id: action.publicId,
    address: action.address,
    direction: directionWord(attack.direction),
    pps: attack.pps,
    bps: attack.bps,
    incident: {
      id: attack.incidentId,
      class: attack.class,
      started_at: time(attack.startedAtMs),
      detected_at: time(attack.detectedAtMs),
      vectors: attack.vectors,
    },
    rule: { id: action.ruleId, name: action.ruleName },
    site_id: action.siteId,
  };
}
