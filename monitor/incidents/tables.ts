/** The tables of this feature: only its own SQL names them (tools/boundaries). */
export const tables = [
  'incidents',
  'incident_observations',
  'incident_remotes',
  'incident_seconds',
  'incident_transitions',
  'site_correlations',
] as const;
