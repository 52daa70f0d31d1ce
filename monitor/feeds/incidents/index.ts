/**
 * The incident feed (NET-4.1, NET-4.2, NET-4.g): attacks on and by exact addresses, for operations to match with servers.
 *
 * A tick takes at most 100 incidents that changed since operations answered about them, or that are active. What operations
 * has as it is now is not sent again, except once after a restart. Attacks on prefixes and captures stay here: nothing tells
 * whose they were. A changed incident starts a run at once (`wake.ts`); the interval serves wake-ups that were lost.
 */
import { takes } from '#contracts/admin-api/contract.ts';
import {
  type IncidentOutcomes,
  type IncidentsRequest,
  incidentsContract,
  type VectorDetails as WireDetails,
  type Incident as WireIncident,
} from '#contracts/admin-api/incidents.ts';
import { classForReceiver } from '#contracts/attack-classes.ts';
import type { VectorDetails } from '#contracts/sensor-api/detection.ts';
import type { DeliverableIncident } from '#monitor/incidents/index.ts';
import { listMailedDrills } from '#monitor/views/mailed-drill-store.ts';
import { defineFeed, type FeedSources } from '../feed.ts';
import { clustersOfRequest, type FeedItem, opsDdosCadence, type Round, type Visit } from '../round.ts';

interface IncidentItem extends FeedItem {
  incident: DeliverableIncident;
  /** Of a drill about which operations is asked to mail the customer. */
  isMailedDrill: boolean;
  /** Operations takes details of vectors. */
  hasDetails: boolean;
  /** Operations takes actions of filters. */
  hasFilters: boolean;
  /** Of the table of classes, that operations knows. */
  classes: number;
  /** That its request names. */
  clusterIds: readonly number[];
}

/** Incidents of one tick, and of one request (NET-8.6). */
const incidentsMax = 100;

export const incidents = defineFeed<IncidentItem, IncidentsRequest, IncidentOutcomes>({
  name: 'incidents',
  title: 'Incidents',
  loop: 'sync_ops_ddos incidents',
  purpose: 'delivers incidents to operations',
  contract: incidentsContract,
  items: 'records',
  batch: { itemsPerTick: incidentsMax, itemsPerRequest: incidentsMax, requestsAtOnce: 2 },
  cadence: opsDdosCadence,
  outcomes: {
    ...{ applied: 'acknowledged', unchanged: 'acknowledged' },
    ...{ identity_conflict: 'held_back', refused: 'held_back' },
    ...{ unmatched: 'nothing', terminal: 'nothing' },
  },
  counts: ['due'],
  observation: { noun: 'incident', seconds: 0 },
  create(sources) {
    /** Revisions that this process has delivered: a restart sends active incidents once more (NET-4.2). */
    const delivered = new Map<string, number>();
    return {
      due: (round) => listDue(sources, round, delivered),
      groupOf: ({ incident, clusterIds }) => `${incident.siteId} ${clusterIds[0]}`,
      build: async (items) => buildParcel(items),
      async settle(trx, visits) {
        const answered = visits.flatMap(({ key, outcome, position }) =>
          isAnswer(outcome) && position ? [{ id: key, revision: Number(position.revision), outcome }] : [],
        );
        await sources.incidents.noteDelivered(trx, answered);
        for (const { id, revision } of answered) delivered.set(id, revision);
      },
    };
  },
});

const isAnswer = (outcome: string) =>
  ['applied', 'unchanged', 'unmatched', 'identity_conflict', 'terminal'].includes(outcome);

async function listDue(
  { db, incidents: source, sites, allocations }: FeedSources,
  round: Round,
  delivered: Map<string, number>,
) {
  const clustersOf = Map.groupBy(await sites.listClusters(), ({ siteId }) => siteId);
  const all = await source.listDeliverable([...clustersOf.keys()]);
  const active = new Set(all.map(({ id }) => id));
  for (const id of delivered.keys()) if (!active.has(id)) delivered.delete(id);
  const changed = all.filter(({ id, revision, isPending }) => isPending || delivered.get(id) !== revision);
  const due = await round.pickDue(changed.map((incident) => ({ key: incident.id, incident })));
  const drills = due.flatMap(({ incident }) => (incident.isDrill ? [incident.id] : []));
  const mailed = takes(round.capabilities, incidentsContract, 'ddos_drill_mail')
    ? await listMailedDrills(db(), drills)
    : new Set<string>();
  const hasFilters = takes(round.capabilities, incidentsContract, 'ddos_incident_filter');
  const hasDetails = takes(round.capabilities, incidentsContract, 'ddos_incident_vectors');
  // An operations without the number knows the classes that came with details of vectors.
  const classes = Number(round.capabilities.ddos_incident_classes_version ?? (hasDetails ? 1 : 0));
  const clusterOf = await allocations.findClusters(due.map(({ incident }) => incident.target.value));
  const items = due.map((item): IncidentItem => {
    const { siteId, target } = item.incident;
    const ofSite = clustersOf.get(siteId)!;
    const known = clusterOf.get(target.value)?.find((id) => ofSite.some(({ clusterId }) => clusterId === id));
    const isMailedDrill = mailed.has(item.incident.id);
    return {
      ...item,
      isMailedDrill,
      ...{ hasDetails, hasFilters, classes },
      clusterIds: clustersOfRequest(ofSite, known),
    };
  });
  return { items, counts: { due: changed.length } };
}

function buildParcel(items: readonly IncidentItem[]) {
  const { incident, clusterIds } = items[0]!;
  return {
    request: {
      contract_version: 1 as const,
      source_site_id: incident.siteId,
      cluster_ids: [...clusterIds],
      incidents: items.map(toWire),
    },
    visits: [],
    take({ outcomes }: IncidentOutcomes): Visit[] {
      const byId = new Map(items.map((item) => [item.key, item.incident]));
      return outcomes.map(({ id, outcome }) => ({
        key: id,
        outcome,
        position: { revision: byId.get(id)?.revision ?? 0 },
        acknowledged: byId.has(id) ? byId.get(id)!.lastObservedAtMs / 1000 : null,
      }));
    },
  };
}

/** An incident as operations knows it: with the sensors' times, and without any remote address. */
function toWire({ incident, isMailedDrill, hasDetails, hasFilters, classes }: IncidentItem): WireIncident {
  const { measured, recoveredAtMs } = incident;
  const { peak, totals, current } = measured;
  const time = (ms: number) => new Date(ms).toISOString();
  return {
    id: incident.id,
    revision: incident.revision,
    target: incident.target,
    direction: incident.direction,
    class: classForReceiver(incident.class, classes),
    severity: incident.severity,
    vectors: measured.vectors.map((vector) => ({
      class: classForReceiver(vector.class, classes),
      packets_share: vector.packetsShare,
      bytes_share: vector.bytesShare,
      ports: vector.ports,
      ...(hasDetails && vector.details && { details: detailsOf(vector.details) }),
    })),
    state: incident.state,
    started_at: time(incident.startedAtMs),
    last_observed_at: time(incident.lastObservedAtMs),
    recovered_at: recoveredAtMs === null ? null : time(recoveredAtMs),
    detected_at: time(incident.detectedAtMs),
    current: current && { bps: current.bps, pps: current.pps },
    peak: { bps: peak.bps, bps_at: time(peak.bpsAtMs), pps: peak.pps, pps_at: time(peak.ppsAtMs) },
    totals: { bytes: totals.bytes, packets: totals.packets },
    coverage: measured.coverage,
    drill: incident.isDrill,
    ...(isMailedDrill && { drill_is_mailed: true }),
    actions: incident.actions.map(({ kind, atMs, endedAtMs }) => ({
      kind: kind === 'dropped' && !hasFilters ? 'filtered' : kind,
      at: time(atMs),
      ended_at: endedAtMs === null ? null : time(endedAtMs),
      ...(kind === 'dropped' && hasFilters && endedAtMs === null && measured.filter?.isDropping
        ? { dropped_pps: measured.filter.current.pps }
        : {}),
    })),
  };
}

function detailsOf({
  sourcePorts,
  protocols,
  startedAtMs,
  lastObservedAtMs,
  peak,
}: VectorDetails): WireDetails {
  return {
    source_ports: sourcePorts,
    protocols,
    started_at: new Date(startedAtMs).toISOString(),
    last_observed_at: new Date(lastObservedAtMs).toISOString(),
    peak: { bps: peak.bps, pps: peak.pps },
  };
}
