/** How long rows that were left out are named. */
import type { KeptTable } from '#monitor/retention/index.ts';

export const keptSetAsides: readonly KeptTable[] = [
  { table: 'set_aside_hosts', column: 'minute', keptFor: '3 months', isPartitioned: false },
];
