import { CodedError } from '#common/errors/index.ts';
import type {
  ProjectedService,
  Projection,
  VulnerabilitiesRequest,
} from '#contracts/admin-api/vulnerabilities.ts';

/** Times that are further ahead of our clock are a wrong clock, not an observation. */
const aheadMsMax = 5 * 60_000;

type Fault = [field: string, message: string];

/** Throws `protect_findings.invalid` (details: `fields`) for what the schema can't see. */
export function checkProjections(request: VulnerabilitiesRequest, nowMs: number): void {
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
