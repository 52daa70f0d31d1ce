/** How long port scans are kept: what was observed seven days (NET-8.R4), what targets were three months. */
import type { KeptTable } from '#monitor/retention/index.ts';

export const keptScans: readonly KeptTable[] = [
  { table: 'scan_attempts', column: 'reported_at', keptFor: '7 days', isPartitioned: false },
  { table: 'scan_identifications', column: 'identified_at', keptFor: '7 days', isPartitioned: false },
  { table: 'scan_observations', column: 'observed_at', keptFor: '7 days', isPartitioned: false },
  { table: 'scan_requests', column: 'listed_at', keptFor: '7 days', isPartitioned: false },
  { table: 'scan_targets', column: 'named_at', keptFor: '3 months', isPartitioned: false },
];
