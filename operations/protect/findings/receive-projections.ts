/**
 * Stores what a monitor says of potential vulnerabilities, one transaction for each projection (NET-2.6.5, NET-4.d).
 *
 * A projection must be about an address that its server has now: allocation, address, assignment, cluster, evidence that was
 * observed after the assignment, and no scan of another server. Ownership is checked in the transaction that stores. The
 * newest check holds in any order of delivery, so a retry never brings back what an older check said.
 */
import type {
  Projection,
  ProjectionAcknowledgements,
  ProjectionOutcome,
  VulnerabilitiesRequest,
} from '#contracts/admin-api/vulnerabilities.ts';
import { fingerprintSoftware } from '#contracts/port-scan/index.ts';
import type { Addresses, Allocation } from '#operations/addresses/index.ts';
import type { Sender } from '#operations/feeds/index.ts';
import { type Queryable, readNowMs } from '#service-kit/postgres/index.ts';
import { isTargetOf, liesInGeneration } from '../generation.ts';
import { hasForeignScan, isDeliveredByOther } from '../scans/index.ts';
import { readStandings, type Source } from '../traffic/index.ts';
import { type AlertDeps, alertCustomer } from './alert-customer.ts';
import { checkProjections } from './check-projections.ts';
import * as store from './store.ts';

export interface ReceiveProjectionsDeps extends AlertDeps {
  db: () => Queryable;
  addresses: Pick<Addresses, 'lockAllocation'>;
  isDocumentationGlobal: boolean;
}

/** One projection with who sent it, and the clusters that it may speak about. */
interface Sent {
  projection: Projection;
  source: Source;
  clusterIds: readonly number[];
  nowMs: number;
}

export async function receiveProjections(
  deps: ReceiveProjectionsDeps,
  sender: Sender,
  request: VulnerabilitiesRequest,
): Promise<ProjectionAcknowledgements> {
  const nowMs = await readNowMs(deps.db());
  checkProjections(request, nowMs);
  const clusterIds = request.cluster_ids.filter((id) => sender.clusterIds?.includes(id) ?? true);
  const source = { projectId: sender.projectId, siteId: request.source_site_id };
  const acknowledgements: ProjectionAcknowledgements['acknowledgements'] = [];
  for (const given of request.projections) {
    const projection = withFingerprints(given);
    const outcome = await deps
      .db()
      .transaction()
      .execute((tx) => receiveProjection(deps, tx, { projection, source, clusterIds, nowMs }));
    const { allocation_id, scan_id } = projection;
    acknowledgements.push({ allocation_id, scan_id, outcome });
  }
  return { acknowledgements };
}

/** Earlier monitors send fingerprints of further text, which changes with every scan: an ignore would not survive it. */
const withFingerprints = (projection: Projection): Projection => ({
  ...projection,
  services: projection.services.map((service) => ({ ...service, fingerprint: fingerprintSoftware(service) })),
});

async function receiveProjection(
  deps: ReceiveProjectionsDeps,
  tx: Queryable,
  sent: Sent,
): Promise<ProjectionOutcome> {
  const { projection, source, nowMs } = sent;
  const allocation = await deps.addresses.lockAllocation(tx, projection.allocation_id);
  if (!allocation || !isAbout(deps, allocation, sent)) return 'unmatched';
  const scanIds = new Set([projection.scan_id, ...projection.services.map(({ scan_id }) => scan_id)]);
  if (await hasForeignScan(tx, allocation.id, [...scanIds])) return 'unmatched';
  const age = await claim(tx, allocation, sent);
  if (age === null) {
    await store.noteRefusal(tx, allocation.id);
    return 'source_conflict';
  }
  if (age !== 'newer') {
    await store.noteDelivery(tx, allocation.id, source);
    return age === 'older' ? 'superseded' : 'unchanged';
  }
  const changed = await store.putProjection(tx, allocation.id, source, projection);
  await alertCustomer(deps, tx, { of: allocation, projection, changed, nowMs });
  return 'accepted';
}

/** Null where another source delivers minutes, scans or projections of the generation. */
async function claim(
  tx: Queryable,
  allocation: Allocation,
  { projection, source }: Sent,
): Promise<store.Age | null> {
  const standing = (await readStandings(tx, [allocation.id], source)).get(allocation.id);
  if (standing === 'held') return null;
  const ownsMinutes = standing === 'owned';
  if (!ownsMinutes && (await isDeliveredByOther(tx, allocation.id, source))) return null;
  const checkedAt = projection.checked_at;
  return store.claimProjection(tx, allocation, source, { checkedAt, ownsMinutes });
}

/** The projection is of this very generation, which has not ended, and so is all its evidence. */
function isAbout(
  { isDocumentationGlobal }: ReceiveProjectionsDeps,
  allocation: Allocation,
  { projection, clusterIds }: Sent,
): boolean {
  const times = [projection.checked_at, ...projection.services.map(({ observed_at }) => observed_at)];
  return (
    allocation.releasedAt === null &&
    isTargetOf(allocation, projection, clusterIds, isDocumentationGlobal) &&
    times.every((time) => liesInGeneration(Date.parse(time), 0, allocation))
  );
}
