/** How long a name can be found after it was last seen. */
import type { KeptTable } from '#monitor/retention/index.ts';

export const keptNames: readonly KeptTable[] = [
  { table: 'application_names', column: 'last_seen_at', keptFor: '3 months', isPartitioned: false },
];
