/**
 * Protection settings: by which thresholds sensors judge attacks, and what they protect beside the addresses of servers.
 *
 * Thresholds have levels: the defaults of the contract, the site, a group of prefixes, a server, one address. Each metric
 * of a level is a rate, "not judged", or left to the level above; the nearest level to an address counts, and of groups
 * the one with the longest prefix. Sensors receive the result with their next plan. Every change is in the audit trail.
 */

import { bind } from '#common/bind/index.ts';
import type { Clock } from '#common/clock/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import type { Actor } from '#monitor/operators/index.ts';
import type { Sites } from '#monitor/sites/index.ts';
import { nameServers } from '#monitor/views/address-store.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import * as change from './change-settings.ts';
import { createDetectionSection } from './detection-section.ts';
import { describeSite, explainAddress, listAddressesOf } from './explain-address.ts';
import { listReplayed, listReplays } from './group-replay-store.ts';
import { cancelGroupReplay, createReplayWorker, startGroupReplay } from './replay-groups.ts';
import { startDrill, stopDrill } from './run-drills.ts';
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
    ...bind(() => deps, {
      ...{ cancelGroupReplay, describeSite, explainAddress, listAddressesOf, startDrill, stopDrill },
      ...{ askWhatIf, learn: learnThresholds },
    }),
    ...bind(db, { ...change, nameServers, listDrills, listReplayed, listGroupReplays: listReplays }),
    /** The section of the sensors' plans. */
    section: createDetectionSection(deps),
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
