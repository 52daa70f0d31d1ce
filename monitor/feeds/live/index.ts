/**
 * The live feed (NET-2.5, NET-4.4): ten-second buckets of exact addresses, at most a few seconds after their end.
 *
 * Every five seconds all targets are visited, 50 in a tick and 10 in a request, those that waited longest first. Rates are
 * of the address itself, from the strongest of the captures that saw it. What no capture reported is left out, never zero,
 * and expected and attack rates are never part of this feed.
 */
import { booleanSetting, integerSetting } from '#common/config/index.ts';
import {
  type LiveReceipts,
  type LiveRequest,
  liveContract,
  liveTargetsMax,
} from '#contracts/admin-api/live.ts';
import type { StoredTarget } from '../allocations/index.ts';
import { defineFeed, type FeedSources } from '../feed.ts';
import type { FeedItem, Round } from '../round.ts';
import { buildParcel } from './build-parcel.ts';
import { createObservations } from './index-windows.ts';

const name = 'live';

interface LiveItem extends FeedItem {
  target: StoredTarget;
  siteId: number;
  /** All clusters of the site. */
  clusterIds: readonly number[];
}

export const live = defineFeed<LiveItem, LiveRequest, LiveReceipts>({
  name,
  title: 'Live traffic',
  loop: 'sync_ops_protect_live',
  purpose: 'delivers live traffic to operations',
  contract: liveContract,
  items: 'allocations',
  batch: { itemsPerTick: 50, itemsPerRequest: liveTargetsMax, requestsAtOnce: 4 },
  cadence: {
    isOn: booleanSetting(
      'SVC_OPS_PROTECT_LIVE_SYNC',
      true,
      'Whether serve also delivers live traffic to operations; 0 leaves that to "./svc monitor sync_ops_protect_live --loop".',
    ),
    seconds: integerSetting(
      'SVC_OPS_PROTECT_LIVE_SYNC_SECONDS',
      5,
      { min: 1, max: 60, unit: 's' },
      'Pause between two deliveries of live traffic to operations.',
    ),
  },
  outcomes: {
    ...{ accepted: 'acknowledged', unchanged: 'acknowledged' },
    ...{ unmatched: 'held_back', source_conflict: 'held_back' },
    empty: 'nothing',
  },
  counts: ['targets', 'unsupported', 'unmapped', 'points', 'source_limited'],
  observation: { noun: 'ten-second bucket', seconds: 10 },
  create(sources) {
    const observations = createObservations(sources);
    let pass: Date | null = null;
    return {
      prepare: (round) => sources.allocations.refresh(round),
      async due(round) {
        // Ticks of one pass share a read; a tick by itself is a pass.
        if (round.notVisitedSince === null || round.notVisitedSince !== pass) observations.forget();
        pass = round.notVisitedSince;
        return listDue(sources, round);
      },
      groupOf: ({ siteId }) => String(siteId),
      async build(items, round) {
        const { siteId, clusterIds } = items[0]!;
        const read = await observations.read(siteId, () => round.count('source_limited', 1));
        return buildParcel(
          { siteId, clusterIds, observations: read },
          items.map(({ target }) => target),
        );
      },
      settle: (trx, visits) => sources.allocations.dropUnmatched(trx, visits),
    };
  },
});

async function listDue({ allocations, sites }: FeedSources, round: Round) {
  const mappings = await sites.listClusters();
  const clustersOf = Map.groupBy(mappings, ({ siteId }) => siteId);
  const siteOf = new Map(mappings.map(({ clusterId, siteId }) => [clusterId, siteId]));
  const mapped = [...siteOf.keys()];
  const counts = { ...(await allocations.count(mapped)) };
  const due = await allocations.listDue(name, mapped, round);
  const items = due.map((target): LiveItem => {
    const { key, position, clusterId } = target;
    const siteId = siteOf.get(clusterId)!;
    const clusterIds = clustersOf.get(siteId)!.map((mapping) => mapping.clusterId);
    return { key, position, target, siteId, clusterIds };
  });
  return { items, counts };
}
