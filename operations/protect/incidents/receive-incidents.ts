/**
 * Stores incidents of the feed, one transaction for each (NET-4.g, NET-4.1).
 *
 * A host target is matched with the generation that had exactly this address when the incident began, in the clusters that
 * sender and project share. The server that is matched first keeps the incident (NET-3.2): later revisions only change what is said
 * of it. The highest revision holds, so a replay changes nothing and a delayed one neither ends nor begins anything.
 */

import { CodedError } from '#common/errors/index.ts';
import { canonicalAddress, isGlobalUnicast, parseAddress } from '#common/ip/index.ts';
import type {
  Incident,
  IncidentOutcome,
  IncidentOutcomes,
  IncidentsRequest,
} from '#contracts/admin-api/incidents.ts';
import type { Addresses, Allocation } from '#operations/addresses/index.ts';
import type { Sender } from '#operations/feeds/index.ts';
import { inTransaction, type Queryable, readNowMs } from '#service-kit/postgres/index.ts';
import { readStanding, type Source } from '../traffic/source-store.ts';
import { type AlertDeps, alertCustomer } from './alert-customer.ts';
import type { Refusal } from './incident.ts';
import * as store from './store.ts';

export interface ReceiveIncidentsDeps extends AlertDeps {
  db: () => Queryable;
  addresses: Addresses;
  isDocumentationGlobal: boolean;
}

/** One incident with who sent it, and the clusters that it may speak about. */
interface Sent {
  incident: Incident;
  source: Source;
  clusterIds: readonly number[];
  nowMs: number;
}

interface Outcome {
  outcome: IncidentOutcome;
  allocationId: number | null;
}

export async function receiveIncidents(
  deps: ReceiveIncidentsDeps,
  sender: Sender,
  request: IncidentsRequest,
): Promise<IncidentOutcomes> {
  const nowMs = await readNowMs(deps.db());
  checkIncidents(request, nowMs);
  const clusterIds = request.cluster_ids.filter((id) => sender.clusterIds?.includes(id) ?? true);
  const source = { projectId: sender.projectId, siteId: request.source_site_id };
  const outcomes: IncidentOutcomes['outcomes'] = [];
  for (const incident of request.incidents) {
    const { outcome, allocationId } = await inTransaction(deps.db(), (tx) =>
      receiveIncident(deps, tx, { incident, source, clusterIds, nowMs }),
    );
    outcomes.push({ id: incident.id, outcome, allocation_id: allocationId });
  }
  return { outcomes };
}

async function receiveIncident(deps: ReceiveIncidentsDeps, tx: Queryable, sent: Sent): Promise<Outcome> {
  const { incident, source } = sent;
  const received = (await applyLater(deps, tx, sent)) ?? (await bindNew(deps, tx, sent));
  // Two first deliveries at the same time: the other one has bound it, so this one is a later one.
  const final = received ?? (await applyLater(deps, tx, sent)) ?? refused('unmatched');
  if (final.outcome === 'applied') await store.forgetRefusal(tx, source, incident.id);
  else if (final.outcome !== 'unchanged') await store.noteRefusal(tx, source, incident, final.outcome);
  return final;
}

const refused = (outcome: Refusal): Outcome => ({ outcome, allocationId: null });

/** A delivery of an incident that is bound already; null where there is none. */
async function applyLater(
  deps: ReceiveIncidentsDeps,
  tx: Queryable,
  { incident, source, clusterIds, nowMs }: Sent,
): Promise<Outcome | null> {
  const held = await store.lockIncident(tx, incident.id, source);
  if (held === null) return null;
  if (!held.isOwner && !held.isSilent) return refused('identity_conflict');
  const allocation = await deps.addresses.lockAllocation(tx, held.allocationId);
  if (!allocation || !clusterIds.includes(allocation.clusterId)) return refused('unmatched');
  const as = (outcome: IncidentOutcome): Outcome => ({ outcome, allocationId: held.allocationId });
  if (incident.revision <= held.revision) {
    await store.touchIncident(tx, incident.id);
    return as('unchanged');
  }
  if (incident.target.kind !== 'host' || canonicalAddress(incident.target.value) !== held.address)
    return as('identity_conflict');
  if (allocation.releasedAt !== null) {
    const at = new Date(incident.last_observed_at);
    const next = await deps.addresses.lockGenerationsAt(tx, { address: held.address, at, clusterIds });
    return as(next.some(({ id }) => id !== allocation.id) ? 'identity_conflict' : 'terminal');
  }
  await store.updateIncident(tx, source, incident);
  await alertCustomer(deps, tx, {
    ...{ of: held, incident, recoveredBefore: held.recoveredAt, actionsBefore: held.actions, nowMs },
  });
  return as('applied');
}

/** The first delivery of an incident; null when another one has bound it in the meantime. */
async function bindNew(deps: ReceiveIncidentsDeps, tx: Queryable, sent: Sent): Promise<Outcome | null> {
  const { incident, source, nowMs } = sent;
  if (await store.isExpired(tx, incident.last_observed_at)) return refused('terminal');
  const allocation = await matchGeneration(deps, tx, sent);
  if (allocation === null || !(await isSpokenFor(tx, allocation.id, source))) return refused('unmatched');
  if (!(await store.insertIncident(tx, allocation, source, incident))) return null;
  await alertCustomer(deps, tx, {
    ...{ of: allocation, incident, recoveredBefore: null, actionsBefore: [], nowMs },
  });
  return { outcome: 'applied', allocationId: allocation.id };
}

/** The generation that had the address when the incident began, and until it was last observed; null where none or several did. */
async function matchGeneration(
  { addresses, isDocumentationGlobal }: ReceiveIncidentsDeps,
  tx: Queryable,
  { incident, clusterIds }: Sent,
): Promise<Allocation | null> {
  if (incident.target.kind !== 'host') return null;
  const address = canonicalAddress(incident.target.value);
  const bytes = address === null ? null : parseAddress(address);
  if (address === null || bytes === null || !isGlobalUnicast(bytes, isDocumentationGlobal)) return null;
  const at = new Date(incident.started_at);
  const found = await addresses.lockGenerationsAt(tx, { address, at, clusterIds });
  const [only] = found;
  if (!only || found.length > 1) return null;
  // What went on after the release is about the next server of this address, and is blamed on neither.
  if (only.releasedAt !== null && Date.parse(incident.last_observed_at) > Date.parse(only.releasedAt))
    return null;
  return only;
}

/** Whether the source may speak about the generation: its owner may, and while there is none, the first that tells of it. */
async function isSpokenFor(tx: Queryable, allocationId: number, source: Source): Promise<boolean> {
  const standing = await readStanding(tx, allocationId, source);
  if (standing !== 'free') return standing === 'owner';
  return !(await store.hasOtherSource(tx, allocationId, source));
}

/** Times that are further ahead of our clock are a wrong clock, not an observation. */
const aheadMsMax = 5 * 60_000;

/** Throws `protect_incidents.invalid` (details: `fields`) for what the schema can't see: times that contradict one another. */
function checkIncidents(request: IncidentsRequest, nowMs: number): void {
  const fields = request.incidents.flatMap((incident, index) =>
    faultsOf(incident, nowMs).map(([field, message]) => ({ path: `incidents.${index}.${field}`, message })),
  );
  if (fields.length === 0) return;
  throw new CodedError('protect_incidents.invalid', 'Some fields are not as they must be.', {
    fields: fields.slice(0, 20),
  });
}

function faultsOf(incident: Incident, nowMs: number): [field: string, message: string][] {
  const faults: [string, string][] = [];
  const startedMs = Date.parse(incident.started_at);
  const lastMs = Date.parse(incident.last_observed_at);
  if (lastMs < startedMs) faults.push(['last_observed_at', 'must not be before started_at']);
  if (lastMs > nowMs + aheadMsMax) faults.push(['last_observed_at', 'is in the future: check the clock']);
  const recovered = incident.recovered_at;
  if (incident.state === 'recovered' && recovered === null)
    faults.push(['recovered_at', 'must be a time when the state is recovered']);
  if (recovered !== null && Date.parse(recovered) < startedMs)
    faults.push(['recovered_at', 'must not be before started_at']);
  if (recovered !== null && Date.parse(recovered) > nowMs + aheadMsMax)
    faults.push(['recovered_at', 'is in the future: check the clock']);
  return faults;
}
