/** The tables of this feature: only its own SQL names them (tools/boundaries). */
export const tables = [
  'inventory_interfaces',
  'inventory_state',
  'inventory_vms',
  'vm_changes',
  'vm_tombstones',
] as const;
