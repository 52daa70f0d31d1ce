/** The tables of this feature: only its own SQL names them (tools/boundaries). */
export const tables = [
  'protection_drills',
  'protection_groups',
  'protection_replay_addresses',
  'protection_replays',
  'protection_servers',
  'protection_sites',
] as const;
