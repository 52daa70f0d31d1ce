/** How long ended bindings and conflicts are kept; devices stay. */
import type { KeptTable } from '#monitor/retention/index.ts';

export const keptDevices: readonly KeptTable[] = [
  { table: 'ip_bindings', column: 'last_seen_at', keptFor: '3 months', isPartitioned: false },
  { table: 'ip_conflicts', column: 'resolved_at', keptFor: '3 months', isPartitioned: false },
  { table: 'retired_macs', column: 'retired_at', keptFor: '3 months', isPartitioned: false },
];
