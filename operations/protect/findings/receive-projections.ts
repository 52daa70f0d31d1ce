/**
 * Stores what a monitor says of potential vulnerabilities, one transaction for each projection (NET-2.6.5, NET-4.d).
 *
 * A projection must be about an address that its server has now: allocation, address, assignment, cluster, evidence that was
 * observed after the assignment, and no scan of another server. Ownership is checked in the transaction that stores. The
 * newest check holds in any order of delivery, so a retry never brings back what an older check said.
 */

import { CodedError } from '#common/errors/index.ts';
import type {
  ProjectedService,
  Projection,
  ProjectionAcknowledgements,
  ProjectionOutcome,
  VulnerabilitiesRequest,
} from '#contracts/admin-api/vulnerabilities.ts';
import { fingerprintSoftware } from '#contracts/port-scan/index.ts';
import type { Addresses, Allocation } from '#operations/addresses/index.ts';
import type { Sender } from '#operations/feeds/index.ts';
import { inTransaction, type Queryable, readNowMs } from '#service-kit/postgres/index.ts';
import { isTargetOf, liesInGeneration } from '../generation.ts';
import { hasForeignScan, isDeliveredByOther } from '../scans/index.ts';
import { readStandings, type Source } from '../traffic/index.ts';
import { type AlertDeps, alertCustomer } from './alert-customer.ts';
import * as store from './store.ts';

interface ReceiveProjectionsDeps extends AlertDeps {
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
    const outcome = await inTransaction(deps.db(), (tx) =>
      receiveProjection(deps, tx, { projection, source, clusterIds, nowMs }),
    );
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

/** Times that are further ahead of our clock are a wrong clock, not an observation. */
const aheadMsMax = 5 * 60_000;

type Fault = [field: string, message: string];

/** Throws `protect_findings.invalid` (details: `fields`) for what the schema can't see. */
function checkProjections(request: VulnerabilitiesRequest, nowMs: number): void {
  const fields = request.projections.flatMap((projection, index) =>
    faultsOf(projection, nowMs).map(([field, message]) => ({
      path: `projections.${index}.${field}`,
      message,
    })),
  );
  if (fields.length === 0) return;
  throw new CodedError('protect_findings.invalid', 'Some fields are not as they must be.', {
    fields: fields.slice(0, 20),
  });
}

function faultsOf(projection: Projection, nowMs: number): Fault[] {
  const { checked_at, database_at, services } = projection;
  const isAhead = (time: string) => Date.parse(time) > nowMs + aheadMsMax;
  const faults: Fault[] = [];
  if (isAhead(checked_at)) faults.push(['checked_at', 'is in the future: check the clock']);
  if (database_at !== null && isAhead(database_at))
    faults.push(['database_at', 'is in the future: check the clock']);
  const seen = new Set<string>();
  for (const [index, service] of services.entries()) {
    const key = `${service.transport}/${service.port}`;
    if (seen.has(key)) faults.push([`services.${index}.port`, `appears twice: ${key}`]);
    seen.add(key);
    if (isAhead(service.observed_at))
      faults.push([`services.${index}.observed_at`, 'is in the future: check the clock']);
    faults.push(
      ...serviceFaults(service).map(([field, message]): Fault => [`services.${index}.${field}`, message]),
    );
  }
  return faults;
}

function serviceFaults({ assessment, reason, product, version, findings }: ProjectedService): Fault[] {
  const faults: Fault[] = [];
  if ((assessment === 'unable') !== (reason !== null))
    faults.push(['reason', 'must be given where the assessment is `unable`, and only there']);
  if (!isKeepable(product)) faults.push(['product', unkeepable]);
  if (!isKeepable(version)) faults.push(['version', unkeepable]);
  const seen = new Set<string>();
  for (const [index, { cve_id, cvss_vector, summary }] of findings.entries()) {
    if (seen.has(cve_id)) faults.push([`findings.${index}.cve_id`, `appears twice: ${cve_id}`]);
    seen.add(cve_id);
    if (!isKeepable(summary)) faults.push([`findings.${index}.summary`, unkeepable]);
    if (!isKeepable(cvss_vector)) faults.push([`findings.${index}.cvss_vector`, unkeepable]);
  }
  return faults;
}

const unkeepable = 'must not contain U+0000 or half a surrogate pair';
/** PostgreSQL keeps neither. */
const isKeepable = (text: string | null) => text === null || (!text.includes('\0') && text.isWellFormed());
