/** How long results of probes are kept. */
import type { KeptTable } from '#monitor/retention/index.ts';

export const keptProbes: readonly KeptTable[] = [
  { table: 'probe_results', column: 'minute', keptFor: '3 months', isPartitioned: true },
  { table: 'probe_minutes', column: 'minute', keptFor: '3 months', isPartitioned: true },
  { table: 'probe_hours', column: 'hour', keptFor: '3 months', isPartitioned: false },
];
