/**
 * The vulnerability feed (NET-2.6.5, NET-4.d): the newest check of each address, as one projection that takes the place of the one
 * before.
 *
 * An address is due when its server was checked since operations answered: after a scan, after the records changed, after an
 * operator ignored a finding. A projection holds what was observed since the address was assigned, and who it is assigned to is
 * read again when it is built. Checks have times that only grow, so a late or repeated request never replaces a newer one.
 */
import { booleanSetting, integerSetting } from '#common/config/index.ts';
import {
  findingsMax,
  type ProjectedFinding,
  type Projection,
  type ProjectionAcknowledgements,
  type VulnerabilitiesRequest,
  vulnerabilitiesContract,
} from '#contracts/admin-api/vulnerabilities.ts';
import { scanServicesMax } from '#contracts/port-scan/index.ts';
import type { DeliverablePlace, Finding, PlaceProjection } from '#monitor/vulnerabilities/index.ts';
import type { Generation } from '../allocations/index.ts';
import { defineFeed, type FeedSources } from '../feed.ts';
import { clustersOfRequest, type FeedItem, type Round, type Visit } from '../round.ts';

interface ProjectionItem extends FeedItem {
  place: DeliverablePlace;
  allocationId: number;
  assignedAt: string;
  siteId: number;
  /** That its request names. */
  clusterIds: readonly number[];
}

export const vulnerabilities = defineFeed<ProjectionItem, VulnerabilitiesRequest, ProjectionAcknowledgements>(
  {
    name: 'vulnerabilities',
    title: 'Potential vulnerabilities',
    loop: 'sync_ops_vulnerabilities',
    purpose: 'delivers assessments of open ports to operations',
    contract: vulnerabilitiesContract,
    items: 'allocations',
    // A request that is too large is sent again in two halves.
    batch: { itemsPerTick: 200, itemsPerRequest: 20, requestsAtOnce: 2 },
    cadence: {
      isOn: booleanSetting(
        'SVC_OPS_VULNERABILITIES_SYNC',
        true,
        'Whether serve also delivers potential vulnerabilities to operations.',
      ),
      seconds: integerSetting(
        'SVC_OPS_VULNERABILITIES_SYNC_SECONDS',
        10,
        { min: 2, max: 3600, unit: 's' },
        'Pause between two deliveries of potential vulnerabilities to operations.',
      ),
    },
    outcomes: {
      ...{ accepted: 'acknowledged', unchanged: 'acknowledged' },
      ...{ source_conflict: 'held_back', refused: 'held_back' },
      ...{ superseded: 'nothing', unmatched: 'nothing', no_evidence: 'nothing', reassigned: 'nothing' },
    },
    counts: ['due', 'no_allocation'],
    observation: { noun: 'check', seconds: 0 },
    create(sources) {
      return {
        prepare: (round) => sources.allocations.refresh(round),
        due: (round) => listDue(sources, round),
        groupOf: ({ siteId, clusterIds }) => `${siteId} ${clusterIds[0]}`,
        build: (items, round) => buildParcel(sources, items, round),
        async settle(trx, visits) {
          const answers = visits.flatMap(({ outcome, position }) =>
            position && isAnswer(outcome) ? [{ ...readPosition(position), outcome }] : [],
          );
          await sources.vulnerabilities.noteAnswers(trx, answers);
        },
      };
    },
  },
);

const isAnswer = (outcome: string) =>
  ['accepted', 'unchanged', 'superseded', 'unmatched', 'source_conflict', 'no_evidence'].includes(outcome);

async function listDue({ vulnerabilities: source, sites, allocations }: FeedSources, round: Round) {
  const mapped = await sites.listClusters();
  const siteOf = new Map(mapped.map(({ clusterId, siteId }) => [clusterId, siteId]));
  const clustersOf = Map.groupBy(mapped, ({ siteId }) => siteId);
  const places = await source.listDeliverable([...siteOf.keys()], round.connectionRevision);
  const generations = indexGenerations(await allocations.listGenerations(places));
  const known = places.flatMap((place) => {
    const generation = generations.get(placeKey(place));
    return generation ? [{ ...generation, key: keyOf(generation), place }] : [];
  });
  const due = await round.pickDue(known);
  const items = due.map(({ key, position, place, allocationId, assignedAt }): ProjectionItem => {
    const siteId = siteOf.get(place.clusterId)!;
    return {
      key,
      position,
      place,
      allocationId,
      assignedAt,
      siteId,
      clusterIds: clustersOfRequest(clustersOf.get(siteId)!, place.clusterId),
    };
  });
  return { items, counts: { due: known.length, no_allocation: places.length - known.length } };
}

/** The generation of each address; the newest where an address was listed twice. */
function indexGenerations(generations: readonly Generation[]): Map<string, Generation> {
  const byAge = generations.toSorted((a, b) => Date.parse(a.assignedAt) - Date.parse(b.assignedAt));
  return new Map(byAge.map((one) => [placeKey(one), one]));
}

const placeKey = ({ clusterId, serverId, address }: Pick<Generation, 'clusterId' | 'serverId' | 'address'>) =>
  `${clusterId} ${serverId} ${address}`;

/** As cursors of allocations are named. */
const keyOf = ({ allocationId, assignedAt }: Pick<Generation, 'allocationId' | 'assignedAt'>) =>
  `${allocationId} ${assignedAt}`;

async function buildParcel(
  { db, vulnerabilities: source, allocations }: FeedSources,
  items: readonly ProjectionItem[],
  { connectionRevision }: Round,
) {
  const places = items.map(({ place }) => place);
  const owners = indexGenerations(await allocations.listGenerations(places));
  const read = new Map((await source.readProjections(db(), places)).map((one) => [placeKey(one), one]));
  const visits: Visit[] = [];
  const sent = items.flatMap((item) => {
    const { key, place } = item;
    const owner = owners.get(placeKey(place));
    if (!owner || keyOf(owner) !== key) {
      visits.push({ key, outcome: 'reassigned', position: null });
      return [];
    }
    const found = read.get(placeKey(place));
    const projection = found && toProjection(found, item);
    const { clusterId, serverId, address } = place;
    const checkedAtMs = found?.checkedAtMs ?? place.checkedAtMs;
    const position = { clusterId, serverId, address, checkedAtMs, connectionRevision };
    if (!projection) {
      visits.push({ key, outcome: 'no_evidence', position });
      return [];
    }
    return [{ key, position, projection }];
  });
  const { siteId, clusterIds } = items[0]!;
  return {
    request:
      sent.length === 0
        ? null
        : {
            contract_version: 1 as const,
            source_site_id: siteId,
            cluster_ids: [...clusterIds],
            projections: sent.map(({ projection }) => projection),
          },
    visits,
    take({ acknowledgements }: ProjectionAcknowledgements): Visit[] {
      const byId = new Map(sent.map((one) => [one.projection.allocation_id, one]));
      return acknowledgements.map(({ allocation_id: id, scan_id: scanId, outcome }) => {
        const one = byId.get(id);
        // About another scan, it proves nothing: no item has an empty key.
        if (!one || one.projection.scan_id !== scanId) return { key: '', outcome, position: null };
        return {
          ...{ key: one.key, outcome, position: one.position },
          acknowledged: one.position.checkedAtMs / 1000,
        };
      });
    },
  };
}

function readPosition(position: Readonly<Record<string, number | string>>) {
  const { clusterId, serverId, address, checkedAtMs, connectionRevision } = position;
  return {
    ...{ clusterId: Number(clusterId), serverId: Number(serverId), address: String(address) },
    ...{ checkedAtMs: Number(checkedAtMs), connectionRevision: Number(connectionRevision) },
  };
}

// A check of an address in the words of the contract, within its bounds.

/** Of one projection; the rest of a request's 8 MiB is its frame. */
const bytesMax = 7 * 1024 * 1024;

interface AssignedAddress {
  allocationId: number;
  assignedAt: string;
}

/**
 * What was observed since the address was assigned; null where nothing was. Where it is too large, every service keeps its most
 * severe findings.
 */
export function toProjection(
  place: PlaceProjection,
  { allocationId, assignedAt }: AssignedAddress,
): Projection | null {
  const since = Date.parse(assignedAt);
  const services = place.services.filter(({ observedAtMs }) => observedAtMs >= since);
  const newest = services.toSorted(
    (a, b) => b.observedAtMs - a.observedAtMs || (a.scanId < b.scanId ? -1 : 1),
  )[0];
  const scanId = newest?.scanId ?? (place.evidenceAtMs >= since ? place.scanId : null);
  if (scanId === null) return null;
  const listed = services.slice(0, scanServicesMax);
  const ages = listed.flatMap(({ databaseAtMs }) => databaseAtMs ?? []);
  const assessed = listed.filter(({ reason }) => reason === null);
  const sum = (of: typeof listed, numberOf: (one: (typeof listed)[number]) => number) =>
    of.reduce((total, one) => total + numberOf(one), 0);
  const make = (perService: number): Projection => ({
    allocation_id: allocationId,
    address: place.address,
    assigned_at: assignedAt,
    scan_id: scanId,
    checked_at: time(place.checkedAtMs),
    database_at: ages.length === 0 ? null : time(Math.min(...ages)),
    services: listed.map((one) => ({
      ...{
        transport: one.transport,
        port: one.port,
        scan_id: one.scanId,
        observed_at: time(one.observedAtMs),
      },
      ...{ fingerprint: one.fingerprint, product: one.product, version: one.version },
      ...{ assessment: one.reason === null ? 'assessed' : 'unable', reason: one.reason },
      findings: one.findings.slice(0, perService).map(toWire),
    })),
    counts: {
      active: sum(assessed, ({ findings, leftOut }) => findings.length + leftOut),
      ignored: sum(assessed, ({ ignoredCount }) => ignoredCount),
      unable: listed.length - assessed.length,
      truncated: sum(
        assessed,
        ({ findings, leftOut }) => leftOut + Math.max(0, findings.length - perService),
      ),
    },
  });
  for (let perService = findingsMax; ; perService = Math.floor(perService / 2)) {
    const projection = make(perService);
    if (perService === 0 || Buffer.byteLength(JSON.stringify(projection)) <= bytesMax) return projection;
  }
}

const time = (ms: number) => new Date(ms).toISOString();

function toWire({ cve, severity, summary, publishedAt, modifiedAt, ...finding }: Finding): ProjectedFinding {
  return {
    cve_id: cve,
    severity: severity?.rating ?? null,
    score: severity?.score ?? null,
    cvss_version: severity?.version ?? null,
    cvss_vector: severity?.vector ?? null,
    summary,
    published_at: publishedAt,
    modified_at: modifiedAt,
    incomplete: doubtOf(finding),
    disputed: finding.isDisputed,
    known_exploited: finding.isKnownExploited,
    ...(finding.package ? { package: { fixed_in: finding.package.fixedIn } } : {}),
  };
}

function doubtOf({ incomplete }: Pick<Finding, 'incomplete'>): ProjectedFinding['incomplete'] {
  if (incomplete.length === 0) return null;
  return incomplete.includes('platform') ? 'platform' : 'bounded';
}
