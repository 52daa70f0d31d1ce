/** The tables of this feature: only its own SQL names them (tools/boundaries). */
export const tables = [
  'protection_drills',
  'protection_groups',
  'protection_servers',
  'protection_sites',
] as const;
