/** How long destroyed servers and changes of servers are remembered. */
import type { KeptTable } from '#monitor/retention/index.ts';

export const keptTombstones: readonly KeptTable[] = [
  { table: 'vm_tombstones', column: 'received_at', keptFor: '3 months', isPartitioned: false },
];

export const keptVmChanges: readonly KeptTable[] = [
  { table: 'vm_changes', column: 'occurred_at', keptFor: '3 months', isPartitioned: false },
];
