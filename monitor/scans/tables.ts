/** The tables of this feature: only its own SQL names them (tools/boundaries). */
export const tables = [
  'scan_attempts',
  'scan_identifications',
  'scan_observations',
  'scan_plans',
  'scan_requests',
  'scan_schedules',
  'scan_targets',
] as const;
