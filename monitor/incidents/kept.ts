/** How long incidents are kept: a year, with everything that belongs to them (NET-8, retention). */
import type { KeptTable } from '#monitor/retention/index.ts';

export const keptIncidents: readonly KeptTable[] = [
  // Observations with their seconds and remote prefixes, and transitions, go with their incident.
  { table: 'incidents', column: 'last_observed_at', keptFor: '1 year', isPartitioned: false },
  {
    table: 'incident_observations',
    column: 'ends_at',
    keptFor: '1 year',
    isPartitioned: false,
    only: 'incident_id is null',
  },
  { table: 'site_correlations', column: 'last_observed_at', keptFor: '1 year', isPartitioned: false },
];
