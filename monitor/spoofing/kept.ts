/** How long spoofed traffic is kept. */
import type { KeptTable } from '#monitor/retention/index.ts';

export const keptSpoofing: readonly KeptTable[] = [
  { table: 'spoofed_traffic', column: 'hour', keptFor: '3 months', isPartitioned: false },
];
