import { Type } from 'typebox';
import type { Incidents, StoredIncident } from '#monitor/incidents/index.ts';
import { HttpError } from '#service-kit/http/index.ts';
import { SiteParams } from '../frame.ts';

export const IncidentParams = Type.Object({
  ...SiteParams.properties,
  incidentId: Type.String({ pattern: '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' }),
});

/** The incident of this site, or a 404. */
export async function findIncident(
  incidents: Pick<Incidents, 'find'>,
  siteId: number,
  incidentId: string,
): Promise<StoredIncident> {
  const incident = await incidents.find(siteId, incidentId);
  if (incident) return incident;
  throw new HttpError(404, { code: 'not_found', message: 'This incident does not exist.' });
}
