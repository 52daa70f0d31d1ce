/**
 * The port-scan feed (NET-2.7.9, NET-4.e, NET-4.f): scan requests of operations are fetched and told about, and results are
 * delivered, each until its receipt is there.
 *
 * A request's result is sent under the connection that confirmed the request, also when a sensor found something else
 * later. Of a sensor's own scans the newest complete one of each address and profile is sent, and partial ones since. Only
 * exact public allocations cross: a result belongs to the allocation that the address had when its scan began.
 */
import { booleanSetting, integerSetting } from '#common/config/index.ts';
import {
  type DeliveredScan,
  type PortScanReceipts,
  type PortScansRequest,
  portScansContract,
} from '#contracts/admin-api/port-scans.ts';
import type { DeliverableScan, ScanBody } from '#monitor/scans/index.ts';
import type { Generation } from '../allocations/index.ts';
import { defineFeed, type FeedSources } from '../feed.ts';
import { clustersOfRequest, type FeedItem, type Round, type Visit } from '../round.ts';
import { syncRequests } from './sync-requests.ts';

interface ScanItem extends FeedItem {
  scan: DeliverableScan;
  allocationId: number;
  assignedAt: string;
  siteId: number;
  /** That its request names. */
  clusterIds: readonly number[];
}

export const portScans = defineFeed<ScanItem, PortScansRequest, PortScanReceipts>({
  name: 'port-scans',
  title: 'Port scans',
  loop: 'sync_ops_port_scans',
  purpose: 'fetches scan requests from operations and delivers results of port scans',
  contract: portScansContract,
  items: 'records',
  // Results of 4,096 ports may be 4 MB each; a request that is too large is sent again in two halves.
  batch: { itemsPerTick: 100, itemsPerRequest: 20, requestsAtOnce: 2 },
  cadence: {
    isOn: booleanSetting(
      'SVC_OPS_PORT_SCANS_SYNC',
      true,
      'Whether serve also fetches scan requests from operations and delivers results of port scans.',
    ),
    seconds: integerSetting(
      'SVC_OPS_PORT_SCANS_SYNC_SECONDS',
      5,
      { min: 2, max: 3600, unit: 's' },
      'Pause between two exchanges of scan requests and results with operations.',
    ),
  },
  outcomes: {
    ...{ accepted: 'acknowledged', unchanged: 'acknowledged' },
    ...{ source_conflict: 'held_back', refused: 'held_back' },
    unmatched: 'nothing',
  },
  counts: ['requests', 'claimed', 'running', 'withdrawn', 'due', 'no_allocation'],
  observation: { noun: 'scan result', seconds: 0 },
  create(sources) {
    return {
      async prepare(round) {
        await sources.allocations.refresh(round);
        await syncRequests(sources, round);
      },
      due: (round) => listDue(sources, round),
      groupOf: ({ siteId, clusterIds }) => `${siteId} ${clusterIds[0]}`,
      build: (items) => buildParcel(sources, items),
      async settle(trx, visits) {
        const final = visits.filter(({ outcome }) =>
          ['accepted', 'unchanged', 'unmatched'].includes(outcome),
        );
        await sources.scans.noteDelivered(
          trx,
          final.map(({ key, outcome }) => ({ scanId: key, outcome })),
        );
      },
    };
  },
});

async function listDue({ scans, sites, allocations }: FeedSources, round: Round) {
  const mapped = await sites.listClusters();
  const siteOf = new Map(mapped.map(({ clusterId, siteId }) => [clusterId, siteId]));
  const clustersOf = Map.groupBy(mapped, ({ siteId }) => siteId);
  const all = await scans.listDeliverable([...siteOf.keys()], round.connectionRevision);
  const generations = await allocations.listGenerations(all.filter(({ request }) => request === null));
  const known = all.flatMap((scan) => {
    const generation = scan.request ?? findGeneration(generations, scan);
    return generation ? [{ key: scan.scanId, scan, ...pick(generation) }] : [];
  });
  const due = await round.pickDue(known);
  const items = due.map((item): ScanItem => {
    const siteId = siteOf.get(item.scan.clusterId)!;
    return { ...item, siteId, clusterIds: clustersOfRequest(clustersOf.get(siteId)!, item.scan.clusterId) };
  });
  return { items, counts: { due: known.length, no_allocation: all.length - known.length } };
}

const pick = ({ allocationId, assignedAt }: Pick<Generation, 'allocationId' | 'assignedAt'>) => ({
  allocationId,
  assignedAt,
});

/** The allocation that the address of the server had when its scan began; an address that was assigned later is another's. */
function findGeneration(generations: readonly Generation[], scan: DeliverableScan): Generation | null {
  const isOf = (one: Generation) =>
    one.clusterId === scan.clusterId &&
    one.serverId === scan.serverId &&
    one.address === scan.address &&
    Date.parse(one.assignedAt) <= scan.startedAtMs;
  return generations.find(isOf) ?? null;
}

async function buildParcel({ db, scans }: FeedSources, items: readonly ScanItem[]) {
  const bodies = await scans.readBodies(
    db(),
    items.map(({ scan }) => scan),
  );
  const bodyOf = new Map(bodies.map((body) => [body.scanId, body]));
  const { siteId, clusterIds } = items[0]!;
  return {
    request: {
      contract_version: 1 as const,
      source_site_id: siteId,
      cluster_ids: [...clusterIds],
      results: items.map((item) => toWire(item, bodyOf.get(item.key)!)),
    },
    visits: [],
    take({ receipts }: PortScanReceipts): Visit[] {
      const finishedAt = new Map(items.map(({ key, scan }) => [key, scan.finishedAtMs]));
      return receipts.map(({ scan_id: key, receipt }) => ({
        ...{ key, outcome: receipt, position: null },
        acknowledged: (finishedAt.get(key) ?? 0) / 1000 || null,
      }));
    },
  };
}

/** A result as its sensor said it, with the allocation that it is about and without the sensor's own addresses. */
function toWire({ scan, allocationId, assignedAt }: ScanItem, body: ScanBody): DeliveredScan {
  const { state, phases, services } = body;
  return {
    scan_id: scan.scanId,
    request_id: scan.request?.id ?? null,
    allocation_id: allocationId,
    address: scan.address,
    assigned_at: assignedAt,
    profile: scan.profile,
    state,
    started_at: new Date(scan.startedAtMs).toISOString(),
    finished_at: new Date(scan.finishedAtMs).toISOString(),
    phases,
    services,
    notes: body.notes as DeliveredScan['notes'],
  };
}
