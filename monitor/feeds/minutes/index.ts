/**
 * The minute feed (NET-2.4, NET-4.3): the traffic of exact addresses, for each allocation generation by itself.
 *
 * Only complete minutes are sent, gaps are not sent at all, and what comes late is sent by the sweep that goes over the
 * last 24 hours again and again.
 */
import { takes } from '#contracts/admin-api/contract.ts';
import {
  minutesContract,
  type TelemetryReceipts,
  type TelemetryRequest,
} from '#contracts/admin-api/schemas.ts';
import type { StoredTarget } from '../allocations/index.ts';
import { defineFeed, type FeedSources } from '../feed.ts';
import type { FeedItem, Round } from '../round.ts';
import { opsDdosCadence } from '../round.ts';
import { buildParcel, rangeAfter, rangesOf, type VisitContext } from './build-parcel.ts';
import { completeUntil, deliveredMinutes } from './plan-visit.ts';
import { type RangeContent, readAhead, type VisitRange } from './read-ahead.ts';

const name = 'telemetry';

interface MinuteItem extends FeedItem {
  target: StoredTarget;
  /** Of its site, made for the first of its items. */
  context(): Promise<VisitContext>;
}

export const minutes = defineFeed<MinuteItem, TelemetryRequest, TelemetryReceipts>({
  name,
  title: 'Minute traffic',
  loop: 'sync_ops_ddos',
  purpose: 'delivers minutes to operations',
  contract: minutesContract,
  items: 'allocations',
  batch: { itemsPerTick: 50, itemsPerRequest: 1, requestsAtOnce: 4 },
  cadence: opsDdosCadence,
  outcomes: {
    ...{ accepted: 'acknowledged', unchanged: 'acknowledged' },
    ...{ unmatched: 'held_back', source_conflict: 'held_back', refused: 'held_back' },
    ...{ empty: 'nothing', waiting: 'nothing' },
  },
  counts: ['targets', 'unsupported', 'unmapped', 'points'],
  observation: { noun: 'minute', seconds: 60 },
  create: (sources) => ({
    prepare: (round) => sources.allocations.refresh(round),
    due: (round) => listDue(sources, round),
    async build(items) {
      const item = items[0]!;
      return buildParcel(await item.context(), item.target);
    },
    settle: (trx, visits) => sources.allocations.dropUnmatched(trx, visits),
  }),
});

async function listDue(sources: FeedSources, round: Round) {
  const { allocations, sites } = sources;
  const mappings = await sites.listClusters();
  const siteOf = new Map(mappings.map(({ clusterId, siteId }) => [clusterId, siteId]));
  const mapped = [...siteOf.keys()];
  const counts = { ...(await allocations.count(mapped)) };
  const due = await allocations.listDue(name, mapped, round);
  const aside = await round.listSetAside(due.map(({ key }) => key));
  const contextOf = createContexts(sources, round, siteOf, due, ({ key }) => aside.get(key) ?? []);
  const items = due.map((target): MinuteItem => {
    const { key, position, clusterId } = target;
    return { key, position, target, context: () => contextOf(clusterId) };
  });
  return { items, counts };
}

/** What all allocations of a site share, read once a tick, with what their visits send. */
function createContexts(
  sources: FeedSources,
  round: Round,
  siteOf: ReadonlyMap<number, number>,
  due: readonly StoredTarget[],
  setAsideOf: VisitContext['setAsideOf'],
): (clusterId: number) => Promise<VisitContext> {
  const contexts = new Map<number, Promise<VisitContext>>();
  return (clusterId) => {
    const siteId = siteOf.get(clusterId)!;
    const known = contexts.get(siteId);
    if (known) return known;
    const made = (async (): Promise<VisitContext> => {
      const captures = await sources.traffic.listCaptures(siteId);
      const nowMs = sources.clock.nowMs();
      const until = completeUntil(captures, nowMs);
      const ranges = due
        .filter((target) => siteOf.get(target.clusterId) === siteId)
        .flatMap((target) => rangesOf(target, until));
      const withReason = takes(round.capabilities, minutesContract, 'protect_telemetry_reason');
      const wanted = {
        ranges,
        nextOf: (range: VisitRange, content: RangeContent) => rangeAfter(range, content, withReason),
      };
      return {
        read: await readAhead(sources, siteId, wanted, deliveredMinutes(captures, nowMs)),
        siteId,
        clusterIds: [...siteOf].filter(([, site]) => site === siteId).map(([cluster]) => cluster),
        completeUntil: until,
        withIdentity: takes(round.capabilities, minutesContract, 'protect_application_identity'),
        withReason,
        withOwnScan: takes(round.capabilities, minutesContract, 'protect_telemetry_own_scan'),
        withDropped: takes(round.capabilities, minutesContract, 'protect_telemetry_dropped'),
        setAsideOf,
      };
    })();
    contexts.set(siteId, made);
    return made;
  };
}
