import { CodedError } from '#common/errors/index.ts';
import type { Incident, IncidentsRequest } from '#contracts/admin-api/incidents.ts';

/** Times that are further ahead of our clock are a wrong clock, not an observation. */
const aheadMsMax = 5 * 60_000;

/** Throws `protect_incidents.invalid` (details: `fields`) for what the schema can't see: times that contradict one another. */
export function checkIncidents(request: IncidentsRequest, nowMs: number): void {
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
