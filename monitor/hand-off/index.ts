/**
 * Hand-off: what the monitor does by itself against an attack, by the rules of a site.
 *
 * A rule acts on exact addresses in its prefixes, when an attack on them reaches its peak. By itself it acts only on addresses of
 * servers on a node whose sensor reports the attack; on a host's own address never; on any other an operator starts the action. Nothing is on by default: a rule
 * begins off, and is a dry run before it can be on. Each action begins with the attack and ends only when the attack has
 * recovered and the hold time has passed, or when an operator ends it. A site has actions for a bounded number of addresses
 * at once. Every step is in the audit trail.
 */

import { bind } from '#common/bind/index.ts';
import type { Clock } from '#common/clock/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { type IncidentChange, setIncidentActions } from '#monitor/incidents/index.ts';
import { findAttackedOwners } from '#monitor/views/address-store.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { Secrets } from '#service-kit/secrets/index.ts';
import type { TargetRules } from '#service-kit/webhooks/index.ts';
import { attackOf } from './action.ts';
import * as actions from './actions-store.ts';
import type { BgpPeer } from './bgp/peer.ts';
import { createBgpSpeaker, describePeers, type PeerState } from './bgp/speaker.ts';
import * as change from './change-rules.ts';
import * as store from './note-store.ts';
import { isActionable, isFor } from './rule.ts';
import {
  type ListedRule,
  listFailing,
  listRules,
  listWatching,
  readLimit,
  ruleSecret,
  type SiteLimit,
} from './rules-store.ts';
import { listCommands } from './run-command.ts';
import { createHandOffWorker } from './work-actions.ts';

export type { Action } from './action.ts';
export type { PeerState } from './bgp/speaker.ts';
export { createFilterSection } from './filter-section.ts';
export {
  addressesMaxMost,
  countSecondsMax,
  holdSecondsMax,
  holdSecondsMin,
  maxSecondsDefault,
  maxSecondsMax,
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
    ...bind(() => deps, change),
    ...bind(db, { listFailing, listActions: actions.listActions }),
    /** What was done, or would have been done, against an incident; the oldest first. */
    listActionsOf: (incidentId: string) => actions.listActionsOf(db(), incidentId, actionsShown),
  };
}

/** What hand-off needs from the rest of the program. */
export interface HandOffDeps {
  db: () => Queryable;
  secrets: Secrets;
  clock: Clock;
  reporter: Reporter;
  /** Allowed target addresses of webhooks. */
  webhooks: TargetRules;
  /** The folder with the programs that rules may start; null: rules start none. */
  commandsFolder: string | null;
  bgp: {
    /** Peers that rules may announce routes to. */
    peers: readonly BgpPeer[];
    /** Null: that of each peer. */
    ownAs: number | null;
    /** How long a peer keeps the routes when its session is lost. */
    keepSeconds: number;
  };
}

// Actions follow incidents, in the transaction that changes the incident: an attack that a rule is for makes an action, and
// the end of all attacks on its address releases it. An action on an address that no server of the reporting node has waits for
// an operator. Nothing is done to the network here; workers do that.

/** Call it for every change of incidents, with their site locked. An incident that is stale keeps what it has. */
export async function noteHandOff(trx: Queryable, changes: readonly IncidentChange[]): Promise<void> {
  const attacks = changes.map(({ incident }) => incident).filter(isActionable);
  const isGone = (one: (typeof attacks)[number]) => one.isWithdrawn || one.mergedInto !== null;
  const over = attacks.filter((one) => one.state === 'recovered' || isGone(one));
  if (over.length > 0)
    await store.leaveIncidents(
      trx,
      over.map(({ id }) => id),
    );
  const active = attacks.filter((one) => one.state === 'active' && !isGone(one));
  if (active.length === 0) return;
  const filtered = await store.listFiltered(
    trx,
    active.map(({ id }) => id),
  );
  if (filtered.length > 0) await setIncidentActions(trx, await store.listTold(trx, filtered));
  const rules = await listWatching(trx, [...new Set(active.map(({ siteId }) => siteId))]);
  const matches = active.flatMap((incident) =>
    rules
      .filter((rule) => isFor(rule, incident))
      .map(
        (rule): Omit<store.Match, 'needsApproval'> => ({
          ruleId: rule.id,
          siteId: incident.siteId,
          incidentId: incident.id,
          kind: rule.kind,
          isDryRun: rule.mode === 'dry_run',
          address: incident.target.value,
          targetKey: incident.targetKey,
          target: rule.target,
          holdSeconds: rule.holdSeconds,
          attack: attackOf(incident),
        }),
      ),
  );
  const owners = matches.length > 0 ? await findAttackedOwners(trx, matches) : [];
  // A sensor's word alone must not cut off what no server of its node has, and never a gateway.
  const allowed = matches.flatMap((match, i) =>
    owners[i] === 'host' ? [] : [{ ...match, needsApproval: owners[i] !== 'server' }],
  );
  if (allowed.length === 0) return;
  const joined = await store.joinActions(trx, allowed);
  if (joined.length > 0) await setIncidentActions(trx, await store.listTold(trx, joined));
}
