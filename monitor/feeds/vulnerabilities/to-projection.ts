/** A check of an address in the words of the contract, within its bounds. */
import { findingsMax, type ProjectedFinding, type Projection } from '#contracts/admin-api/vulnerabilities.ts';
import { scanServicesMax } from '#contracts/port-scan/index.ts';
import type { Finding, PlaceProjection } from '#monitor/vulnerabilities/index.ts';

/** Of one projection; the rest of a request's 8 MiB is its frame. */
const bytesMax = 7 * 1024 * 1024;

export interface AssignedAddress {
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
