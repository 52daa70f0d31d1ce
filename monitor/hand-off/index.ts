/**
 * Hand-off: what the monitor does by itself against an attack, by the rules of a site.
 *
 * A rule acts on exact addresses in its prefixes, when an attack on them reaches its peak. By itself it acts only on addresses of
 * servers on a node whose sensor reports the attack; on a host's own address never; on any other an operator starts the action. Nothing is on by default: a rule
 * begins off, and is a dry run before it can be on. Each action begins with the attack and ends only when the attack has
 * recovered and the hold time has passed, or when an operator ends it. A site has actions for a bounded number of addresses
 * at once. Every step is in the audit trail.
 */
import type { Actor } from '#monitor/operators/index.ts';
import * as actions from './actions-store.ts';
import { describePeers, type PeerState } from './bgp/describe-peers.ts';
import { createBgpSpeaker } from './bgp/speaker.ts';
import * as change from './change-rules.ts';
import type { HandOffDeps } from './deps.ts';
import type { RuleInput, RuleMode } from './rule.ts';
import {
  type ListedRule,
  listFailing,
  listRules,
  readLimit,
  ruleSecret,
  type SiteLimit,
} from './rules-store.ts';
import { listCommands } from './run-command.ts';
import { createHandOffWorker } from './work-actions.ts';

export type { Action } from './action.ts';
export type { PeerState } from './bgp/describe-peers.ts';
export { noteHandOff } from './note-incidents.ts';
export {
  addressesMaxMost,
  holdSecondsMax,
  holdSecondsMin,
  prefixesMax,
  type Rule,
  type RuleInput,
  type RuleKind,
  type RuleMode,
  ruleKinds,
  ruleModes,
} from './rule.ts';
export type { FailingRule, ListedRule } from './rules-store.ts';

/** Columns with sealed secrets of hand-off. */
export const handOffSecrets = [ruleSecret] as const;

/** Everything of a site's page. */
export interface SiteHandOff {
  rules: ListedRule[];
  limit: SiteLimit;
  /** Programs that rules may start. */
  commands: string[];
  /** BGP peers that rules may announce routes to. */
  peers: string[];
  /** How the session with each of them goes, of all sites. */
  sessions: PeerState[];
}

/**
 * Changes throw `hand_off.invalid` with the wrong fields in `details.fields`, and `hand_off.changed` when `revision` is not
 * that of what is stored.
 */
export type HandOff = ReturnType<typeof createHandOff>;

/** On the page of an incident. */
const actionsShown = 100;

export function createHandOff(deps: HandOffDeps) {
  const { db } = deps;
  const worker = createHandOffWorker(deps);
  const speaker = createBgpSpeaker(deps);
  return {
    /** Carries out actions; may run in any number of processes. */
    worker,
    /** Tells BGP peers what rules announce; may run in any number of processes. */
    speaker,
    parts: deps.bgp.peers.length > 0 ? [worker, speaker] : [worker],
    async describeSite(siteId: number): Promise<SiteHandOff> {
      const [rules, limit, commands, sessions] = await Promise.all([
        listRules(db(), siteId),
        readLimit(db(), siteId),
        listCommands(deps.commandsFolder),
        describePeers(db(), deps.bgp.peers),
      ]);
      return { rules, limit, commands, sessions, peers: deps.bgp.peers.map(({ name }) => name) };
    },
    /** Adds a rule, which is off. The secret of a webhook is returned only here. */
    addRule: (actor: Actor, siteId: number, input: RuleInput) => change.addRule(deps, actor, siteId, input),
    /** False: the site has no such rule. */
    changeRule: (actor: Actor, siteId: number, id: number, input: RuleInput, revision: number) =>
      change.changeRule(deps, actor, siteId, id, input, revision),
    /** Off, dry run, on; from off only to dry run. What the rule did so far ends. */
    switchRule: (actor: Actor, siteId: number, id: number, mode: RuleMode, revision: number) =>
      change.switchRule(deps, actor, siteId, id, mode, revision),
    removeRule: (actor: Actor, siteId: number, id: number, revision: number) =>
      change.removeRule(deps, actor, siteId, id, revision),
    setLimit: (actor: Actor, siteId: number, text: string, revision: number) =>
      change.setLimit(deps, actor, siteId, text, revision),
    /** Starts an action that waits for an operator. */
    approveAction: (actor: Actor, siteId: number, id: number) =>
      change.approveAction(deps, actor, siteId, id),
    /** Ends an action now, without its hold time. */
    endAction: (actor: Actor, siteId: number, id: number) => change.endAction(deps, actor, siteId, id),
    /** Stops trying to end an action. */
    giveUpAction: (actor: Actor, siteId: number, id: number) => change.giveUpAction(deps, actor, siteId, id),
    /** Every rule that acts, of all sites, with its actions that fail. */
    listFailing: () => listFailing(db()),
    /** Of a site or one of its rules; those that are not ended first, then the newest. */
    listActions: (siteId: number, ruleId: number | null, limit: number) =>
      actions.listActions(db(), siteId, ruleId, limit),
    /** What was done, or would have been done, against an incident; the oldest first. */
    listActionsOf: (incidentId: string) => actions.listActionsOf(db(), incidentId, actionsShown),
  };
}
