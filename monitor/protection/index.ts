/**
 * Protection settings: by which thresholds sensors judge attacks, and what they protect beside the addresses of servers.
 *
 * Thresholds have levels: the defaults of the contract, the site, a group of prefixes, a server, one address. Each metric
 * of a level is a rate, "not judged", or left to the level above; the nearest level to an address counts, and of groups
 * the one with the longest prefix. Sensors receive the result with their next plan. Every change is in the audit trail.
 */

import type { Clock } from '#common/clock/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import type { Actor } from '#monitor/operators/index.ts';
import type { Sites } from '#monitor/sites/index.ts';
import { nameServers } from '#monitor/views/address-store.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import * as change from './change-settings.ts';
import { createDetectionSection } from './detection-section.ts';
import type { DrillInput } from './drill.ts';
import { describeSite, explainAddress, listAddressesOf } from './explain-address.ts';
import { listReplayed, listReplays } from './group-replay-store.ts';
import { cancelGroupReplay, createReplayWorker, startGroupReplay } from './replay-groups.ts';
import { startDrill, stopDrill } from './run-drills.ts';
import type { ServerKey } from './settings.ts';
import { listDrills } from './store.ts';
import type { ThresholdTexts } from './thresholds.ts';
import { askWhatIf, learnThresholds } from './what-if.ts';

export { resolveAbove } from './compile-plan.ts';
export {
  type Drill,
  type DrillInput,
  drillClasses,
  drillDelaySeconds,
  drillSecondsMax,
  drillState,
  strongestOf,
} from './drill.ts';
export type { AddressProtection, SiteProtection } from './explain-address.ts';
export type { GroupReplay, ReplayedAddress } from './group-replay-store.ts';
export { parsePrefixes } from './prefixes.ts';
export type { ComparedIncident } from './replay.ts';
export { replayAddressesMax } from './replay-groups.ts';
export { groupPrefixesMax, type HostGroup, type ServerKey, type ServerSettings } from './settings.ts';
export {
  isBitRate,
  type Level,
  metricNames,
  noChoices,
  parseRate,
  type ResolvedSet,
  resolveLevels,
  resolveSite,
  type ThresholdChoices,
  type ThresholdTexts,
} from './thresholds.ts';
export { type Learned, type WhatIf, whatIfDays, withProposals } from './what-if.ts';

/**
 * Changes throw `protection.invalid` with the wrong fields in `details.fields`, and `protection.changed` when `revision`
 * is not that of what is stored (0: nothing).
 */
export type Protection = ReturnType<typeof createProtection>;

export function createProtection(deps: ProtectionDeps) {
  const { db } = deps;
  const replays = createReplayWorker(deps);
  return {
    /** The work of replays of groups; may run in any number of processes. */
    replays,
    /**
     * Starts a replay of all addresses of a group in the background; returns its id, null where the site has no such group.
     * One of a site waits or runs at once.
     */
    async startGroupReplay(
      actor: Actor,
      siteId: number,
      groupId: number,
      texts: ThresholdTexts,
    ): Promise<string | null> {
      const id = await startGroupReplay(deps, actor, siteId, groupId, texts);
      replays.wake();
      return id;
    },
    /** False: it has ended, or the site has no such replay. */
    cancelGroupReplay: (actor: Actor, siteId: number, id: string) =>
      cancelGroupReplay(deps, actor, siteId, id),
    /** The newest first. */
    listGroupReplays: (siteId: number, groupId: number, limit: number) =>
      listReplays(db(), siteId, groupId, limit),
    /** What a replay found so far; the address that would lose most incidents first. */
    listReplayed: (siteId: number, id: string) => listReplayed(db(), siteId, id),
    /** The section of the sensors' plans. */
    section: createDetectionSection(deps),
    /** Everything that is set for a site, with warnings. */
    describeSite: (siteId: number, localCidrs: readonly string[]) => describeSite(deps, siteId, localCidrs),
    /** Throws `protection.invalid` for a text that is no address. */
    explainAddress: (siteId: number, address: string) => explainAddress(deps, siteId, address),
    nameServers: (servers: readonly { clusterId: number; serverId: number }[]) => nameServers(db(), servers),
    /** Addresses that a server has now. */
    listAddressesOf: (server: { clusterId: number; serverId: number }) => listAddressesOf(deps, server),
    setSiteThresholds: (actor: Actor, siteId: number, texts: ThresholdTexts, revision: number) =>
      change.setSiteThresholds(db(), actor, siteId, texts, revision),
    setAdditionalCidrs: (actor: Actor, siteId: number, texts: readonly string[], revision: number) =>
      change.setAdditionalCidrs(db(), actor, siteId, texts, revision),
    /** Adds a group (`id` null) or replaces one; returns its id, null where the site has no such group. */
    saveGroup: (
      actor: Actor,
      siteId: number,
      id: number | null,
      input: change.GroupInput,
      revision: number,
    ) => change.saveGroup(db(), actor, siteId, id, input, revision),
    removeGroup: (actor: Actor, siteId: number, id: number, revision: number) =>
      change.removeGroup(db(), actor, siteId, id, revision),
    /** Of a server or of one address; all blank ends the entry. */
    setServerThresholds: (
      actor: Actor,
      siteId: number,
      key: ServerKey,
      texts: ThresholdTexts,
      revision: number,
    ) => change.setServerThresholds(db(), actor, siteId, key, texts, revision),
    /** What these thresholds would have found in the last three months; blank texts stand for the present ones. */
    askWhatIf: (siteId: number, address: string, texts: ThresholdTexts, nowMs: number) =>
      askWhatIf(deps, siteId, address, texts, nowMs),
    /** Proposes thresholds that fit the traffic of an address. Changes nothing. */
    learn: (siteId: number, address: string, nowMs: number) => learnThresholds(deps, siteId, address, nowMs),
    /** Starts a drill of a protected address; returns its id. At most eight of a site wait or run at once. */
    startDrill: (actor: Actor, siteId: number, address: string, input: DrillInput) =>
      startDrill(deps, actor, siteId, address, input),
    /** False: it has ended, or the site has no such drill. */
    stopDrill: (actor: Actor, siteId: number, id: string) => stopDrill(deps, actor, siteId, id),
    /** The newest first; of one address or of all (null). */
    listDrills: (siteId: number, address: string | null, limit: number) =>
      listDrills(db(), siteId, address, limit),
  };
}

export interface ProtectionDeps {
  db: () => Queryable;
  /** Connections that only read, for what plans ask (NET-5.3). */
  reader: () => Queryable;
  sites: Pick<Sites, 'listClusters'>;
  clock: Clock;
  reporter: Reporter;
  /** Whether sensors are asked for capture files of attacks. */
  takesEvidence: boolean;
}
