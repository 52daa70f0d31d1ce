import { CodedError } from '#common/errors/index.ts';
import type { DeliveredScan, PortScansRequest } from '#contracts/admin-api/port-scans.ts';

/** Times that are further ahead of our clock are a wrong clock, not an observation. */
const aheadMsMax = 5 * 60_000;

/** Throws `port_scans.invalid` (details: `fields`) for what the schema can't see. */
export function checkScans(request: PortScansRequest, nowMs: number): void {
  const fields = request.results.flatMap((scan, index) =>
    faultsOf(scan, nowMs).map(([field, message]) => ({ path: `results.${index}.${field}`, message })),
  );
  if (fields.length === 0) return;
  throw new CodedError('port_scans.invalid', 'Some fields are not as they must be.', {
    fields: fields.slice(0, 20),
  });
}

function faultsOf(scan: DeliveredScan, nowMs: number): [field: string, message: string][] {
  const faults: [string, string][] = [];
  const finishedMs = Date.parse(scan.finished_at);
  if (finishedMs < Date.parse(scan.started_at)) faults.push(['finished_at', 'must not be before started_at']);
  if (finishedMs > nowMs + aheadMsMax) faults.push(['finished_at', 'is in the future: check the clock']);
  const transports = scan.phases.map(({ transport }) => transport);
  if (new Set(transports).size < transports.length) faults.push(['phases', 'has a transport more than once']);
  const seen = new Set<string>();
  for (const [index, { transport, port, observed_at }] of scan.services.entries()) {
    const key = `${transport}/${port}`;
    if (seen.has(key)) faults.push([`services.${index}.port`, `appears twice: ${key}`]);
    if (Date.parse(observed_at) > nowMs + aheadMsMax)
      faults.push([`services.${index}.observed_at`, 'is in the future: check the clock']);
    seen.add(key);
  }
  return faults;
}
