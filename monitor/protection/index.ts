/**
 * Protection settings: by which thresholds sensors judge attacks, and what they protect beside the addresses of servers.
 *
 * Thresholds have levels: the defaults of the contract, the site, a group of prefixes, a server, one address. Each metric
 * of a level is a rate, "not judged", or left to the level above; the nearest level to an address counts, and of groups
 * the one with the longest prefix. Sensors receive the result with their next plan. Every change is in the audit trail.
 */
import type { WorkLoop } from '#common/lifecycle/work-loop.ts';
import type { Actor } from '#monitor/operators/index.ts';
import type { PlanSection } from '#monitor/sensors/index.ts';
import { nameServers, type ServerName } from '#monitor/views/index.ts';
import * as change from './change-settings.ts';
import type { ProtectionDeps } from './deps.ts';
import { createDetectionSection } from './detection-section.ts';
import type { Drill, DrillInput } from './drill.ts';
import {
  type AddressProtection,
  describeSite,
  explainAddress,
  listAddressesOf,
  type SiteProtection,
} from './explain-address.ts';
import { type GroupReplay, listReplayed, listReplays, type ReplayedAddress } from './group-replay-store.ts';
import { cancelGroupReplay, createReplayWorker, startGroupReplay } from './replay-groups.ts';
import { startDrill, stopDrill } from './run-drills.ts';
import type { ServerKey } from './settings.ts';
import { listDrills } from './store.ts';
import type { ThresholdTexts } from './thresholds.ts';
import { askWhatIf, type Learned, learnThresholds, type WhatIf } from './what-if.ts';

export type { GroupInput } from './change-settings.ts';
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
export interface Protection {
  /** The section of the sensors' plans. */
  readonly section: PlanSection;
  /** Everything that is set for a site, with warnings. */
  describeSite(siteId: number, localCidrs: readonly string[]): Promise<SiteProtection>;
  /** Throws `protection.invalid` for a text that is no address. */
  explainAddress(siteId: number, address: string): Promise<AddressProtection>;
  nameServers(servers: readonly { clusterId: number; vmId: number }[]): Promise<ServerName[]>;
  /** Addresses that a server has now. */
  listAddressesOf(server: { clusterId: number; vmId: number }): Promise<string[]>;
  setSiteThresholds(actor: Actor, siteId: number, texts: ThresholdTexts, revision: number): Promise<void>;
  setAdditionalCidrs(actor: Actor, siteId: number, texts: readonly string[], revision: number): Promise<void>;
  /** Adds a group (`id` null) or replaces one; returns its id, null where the site has no such group. */
  saveGroup(
    actor: Actor,
    siteId: number,
    id: number | null,
    input: change.GroupInput,
    revision: number,
  ): Promise<number | null>;
  removeGroup(actor: Actor, siteId: number, id: number, revision: number): Promise<boolean>;
  /** Of a server or of one address; all blank ends the entry. */
  setServerThresholds(
    actor: Actor,
    siteId: number,
    key: ServerKey,
    texts: ThresholdTexts,
    revision: number,
  ): Promise<void>;
  /** What these thresholds would have found in the last three months; blank texts stand for the present ones. */
  askWhatIf(siteId: number, address: string, texts: ThresholdTexts, nowMs: number): Promise<WhatIf>;
  /** Proposes thresholds that fit the traffic of an address. Changes nothing. */
  learn(siteId: number, address: string, nowMs: number): Promise<Learned>;
  /** Starts a drill of a protected address; returns its id. At most eight of a site wait or run at once. */
  startDrill(actor: Actor, siteId: number, address: string, input: DrillInput): Promise<string>;
  /** False: it has ended, or the site has no such drill. */
  stopDrill(actor: Actor, siteId: number, id: string): Promise<boolean>;
  /** The work of replays of groups; may run in any number of processes. */
  readonly replays: WorkLoop;
  /**
   * Starts a replay of all addresses of a group in the background; returns its id, null where the site has no such group.
   * One of a site waits or runs at once.
   */
  startGroupReplay(
    actor: Actor,
    siteId: number,
    groupId: number,
    texts: ThresholdTexts,
  ): Promise<string | null>;
  /** False: it has ended, or the site has no such replay. */
  cancelGroupReplay(actor: Actor, siteId: number, id: string): Promise<boolean>;
  /** The newest first. */
  listGroupReplays(siteId: number, groupId: number, limit: number): Promise<GroupReplay[]>;
  /** What a replay found so far; the address that would lose most incidents first. */
  listReplayed(siteId: number, id: string): Promise<ReplayedAddress[]>;
  /** The newest first; of one address or of all (null). */
  listDrills(siteId: number, address: string | null, limit: number): Promise<Drill[]>;
}

export function createProtection(deps: ProtectionDeps): Protection {
  const { db } = deps;
  const replays = createReplayWorker(deps);
  return {
    replays,
    async startGroupReplay(...args) {
      const id = await startGroupReplay(deps, ...args);
      replays.wake();
      return id;
    },
    cancelGroupReplay: (...args) => cancelGroupReplay(deps, ...args),
    listGroupReplays: (...args) => listReplays(db(), ...args),
    listReplayed: (...args) => listReplayed(db(), ...args),
    section: createDetectionSection(deps),
    describeSite: (siteId, localCidrs) => describeSite(deps, siteId, localCidrs),
    explainAddress: (siteId, address) => explainAddress(deps, siteId, address),
    nameServers: (servers) => nameServers(db(), servers),
    listAddressesOf: (server) => listAddressesOf(deps, server),
    setSiteThresholds: (...args) => change.setSiteThresholds(db(), ...args),
    setAdditionalCidrs: (...args) => change.setAdditionalCidrs(db(), ...args),
    saveGroup: (...args) => change.saveGroup(db(), ...args),
    removeGroup: (...args) => change.removeGroup(db(), ...args),
    setServerThresholds: (...args) => change.setServerThresholds(db(), ...args),
    askWhatIf: (...args) => askWhatIf(deps, ...args),
    learn: (...args) => learnThresholds(deps, ...args),
    startDrill: (...args) => startDrill(deps, ...args),
    stopDrill: (...args) => stopDrill(deps, ...args),
    listDrills: (...args) => listDrills(db(), ...args),
  };
}
