/** How long it is known where servers were. */
import type { KeptTable } from '#monitor/retention/index.ts';

export const keptPlacements: readonly KeptTable[] = [
  { table: 'vm_placements', column: 'ended_at', keptFor: '3 months', isPartitioned: false },
];
