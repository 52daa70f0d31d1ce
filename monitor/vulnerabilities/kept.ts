/** How long assessments are kept: as long as their evidence, seven days (NET-8.R4). */
import type { KeptTable } from '#monitor/retention/index.ts';

export const keptVulnerabilities: readonly KeptTable[] = [
  { table: 'vulnerability_services', column: 'observed_at', keptFor: '7 days', isPartitioned: false },
  // Without evidence nothing of them is shown; operations is told of its end.
  { table: 'vulnerability_servers', column: 'evidence_at', keptFor: '3 months', isPartitioned: false },
  // Software that a scan missed once is not new when the next one finds it again.
  { table: 'vulnerability_noted', column: 'gone_at', keptFor: '7 days', isPartitioned: false },
  { table: 'vulnerability_ignores', column: 'ended_at', keptFor: '3 months', isPartitioned: false },
];
